"""`--snapshot` and `--max-age`, which several commands of `vani plan` have."""

from __future__ import annotations

import click

from vani.cli.options import FILE

__all__ = ["max_age_option", "snapshot_option"]

snapshot_option = click.option(
    "--snapshot", type=FILE, required=True, metavar="FILE", help="What the machine does now: a snapshot.yaml."
)

max_age_option = click.option(
    "--max-age",
    type=float,
    metavar="SECONDS",
    help="Refuse a snapshot that is older, is ahead of the clock, or tells no time; any by default.",
)
