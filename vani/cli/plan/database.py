"""`--database`, which several commands of `vani plan` have."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["database_file", "database_option"]

database_option = click.option(
    "--database",
    required=True,
    envvar="VANI_DATABASE",
    metavar="URL|FILE",
    help="A file of SQLite, or postgresql://USER@HOST/DATABASE or mariadb://USER@HOST/DATABASE; "
    "by default the environment's VANI_DATABASE, where a password is seen by nobody else.",
)


def database_file(database: str) -> Path | None:
    """The file that `--database` names; None where it is a server's."""
    from vani.database.address import address_of  # noqa: PLC0415 - loads SQL

    return address_of(database).file
