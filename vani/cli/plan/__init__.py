"""`vani plan`."""

from __future__ import annotations

import click

from vani.cli.lazy_group import commands_from

__all__ = ["plan"]

_COMMANDS = {
    "snapshot": ("vani.cli.plan.snapshot:snapshot", "Record the current state of the storage."),
    "forward": ("vani.cli.plan.forward:forward", "Share the I/O nodes of a pool among jobs."),
    "place": ("vani.cli.plan.place:place", "Choose OSTs for new files."),
    "path": ("vani.cli.plan.path:path", "Assign each job's I/O a path through the machine."),
    "simulate": ("vani.cli.plan.simulate:simulate", "Simulate jobs that share a machine."),
    "check": ("vani.cli.plan.check:check", "Check whether a plan is still valid."),
    "job": ("vani.cli.plan.job:job", "Plan for one starting job, from a scheduler's prolog."),
    "rehearse": ("vani.cli.plan.rehearse:rehearse", "Show what the hook would have done with past jobs."),
    "watch": ("vani.cli.plan.watch:watch", "Compare running jobs with their predictions."),
    "learn": ("vani.cli.plan.learn:learn", "Learn from a history what future jobs need."),
    "outcome": ("vani.cli.plan.outcome:outcome", "Store measured and expected I/O times of finished jobs."),
    "scored": ("vani.cli.plan.scored:scored", "Show how accurate plans were, by application."),
    "publish": ("vani.cli.plan.publish:publish", "Publish the load of this server."),
    "listen": ("vani.cli.plan.listen:listen", "Write a snapshot of the figures that servers publish."),
    "store": ("vani.cli.plan.store:store", "Store the placement of files in a database."),
    "interactions": ("vani.cli.plan.interactions:interactions", "Write the stored placements of files, as CSV."),
}


@click.group(cls=commands_from(_COMMANDS))
def plan() -> None:
    """Plan how the jobs of a machine share its storage."""
