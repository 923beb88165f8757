"""`vani plan`."""

from __future__ import annotations

import click

from vani.cli.lazy_group import commands_from

__all__ = ["plan"]

_COMMANDS = {
    "forward": ("vani.cli.plan.forward:forward", "Share the I/O nodes of a pool among jobs."),
    "store": ("vani.cli.plan.store:store", "Keep in a database where files are to lie."),
    "interactions": ("vani.cli.plan.interactions:interactions", "Write what such a database keeps, as CSV."),
}


@click.group(cls=commands_from(_COMMANDS))
def plan() -> None:
    """Plan for all jobs of a machine: who gets which part of it."""
