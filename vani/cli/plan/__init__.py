"""`vani plan`."""

from __future__ import annotations

import click

from vani.cli.lazy_group import commands_from

__all__ = ["plan"]

_COMMANDS = {
    "forward": ("vani.cli.plan.forward:forward", "Share the I/O nodes of a pool among jobs."),
    "place": ("vani.cli.plan.place:place", "Choose OSTs for files to come."),
    "snapshot": ("vani.cli.plan.snapshot:snapshot", "Write down what the storage does now."),
}


@click.group(cls=commands_from(_COMMANDS))
def plan() -> None:
    """Plan for all jobs of a machine: who gets which part of it."""
