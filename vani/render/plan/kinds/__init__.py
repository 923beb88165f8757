"""What is particular to each kind of plan: a module of its name has `body(plan)` and `missing(plan)`, lists of text."""
