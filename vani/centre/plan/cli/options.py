"""Options shared by commands of `vani plan`: `--database`, `--snapshot`, `--max-age`."""

from __future__ import annotations

from pathlib import Path

import click

from vani.cli.options import FILE

database_option = click.option(
    "--database",
    required=True,
    envvar="VANI_DATABASE",
    metavar="URL|FILE",
    help="An SQLite file or postgresql://USER@HOST/DATABASE; by default the variable VANI_DATABASE, which keeps a "
    "password from other users.",
)


def database_file(database: str) -> Path | None:
    """The file that `--database` names; None for a database server."""
    from vani.centre.database import address_of  # noqa: PLC0415 - loads SQL

    return address_of(database).file


snapshot_option = click.option(
    "--snapshot", type=FILE, required=True, metavar="FILE", help="Current state of the machine: a snapshot.yaml."
)

max_age_option = click.option(
    "--max-age",
    type=float,
    metavar="SECONDS",
    help="Reject a snapshot that is older, is ahead of the clock, or has no time; by default any is accepted.",
)
