"""`vani plan`."""

from __future__ import annotations

import click

from vani.cli.lazy_group import commands_from

__all__ = ["plan"]

_COMMANDS = {
    "forward": ("vani.cli.plan.forward:forward", "Share the I/O nodes of a pool among jobs."),
    "simulate": ("vani.cli.plan.simulate:simulate", "Play what happens when jobs share a machine."),
}


@click.group(cls=commands_from(_COMMANDS))
def plan() -> None:
    """Plan for all jobs of a machine: who gets which part of it."""
