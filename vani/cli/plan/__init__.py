"""`vani plan`."""

from __future__ import annotations

import click

from vani.cli.lazy_group import commands_from

__all__ = ["plan"]

_COMMANDS = {
    "check": ("vani.cli.plan.check:check", "Say whether a plan still holds."),
    "forward": ("vani.cli.plan.forward:forward", "Share the I/O nodes of a pool among jobs."),
    "path": ("vani.cli.plan.path:path", "Give the I/O of each job a path through the machine."),
}


@click.group(cls=commands_from(_COMMANDS))
def plan() -> None:
    """Plan for all jobs of a machine: who gets which part of it."""
