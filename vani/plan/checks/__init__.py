"""Needs of each kind of plan: a module per kind, each with a function that `vani.plan.check` lists.

Such a function takes the plan and a snapshot, both documents that are valid by themselves, and gives `Findings`. It
reads no file and no clock. What the plan uses and the snapshot does not name is broken, since nobody can rely on it;
a figure that is missing of something that is there is unknown.
"""
