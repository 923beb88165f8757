"""Commands of `vani history` that carry it elsewhere: export, import, upgrade."""

from __future__ import annotations

from pathlib import Path

import click

from vani.cli.history.options import db_option
from vani.cli.options import FILE, output_option
from vani.cli.places import check_places
from vani.units import counted

__all__ = ["export", "import_", "upgrade"]


@click.command()
@db_option
@output_option(help="The file.", required=True)
def export(db: str | None, output: Path) -> None:
    """Write all that is kept to one file (lines of JSON, compressed with gzip), for another database."""
    from vani import api  # noqa: PLC0415 - `vani --help` pays for no library

    check_places([output], [Path(db) if db else None])
    click.echo(f"{counted(api.history_export(output, db=db), 'run')} exported", err=True)


@click.command("import")
@click.argument("file", type=FILE)
@db_option
def import_(file: Path, db: str | None) -> None:
    """Add the runs of FILE, which `vani history export` wrote: all of them, or none."""
    from vani import api  # noqa: PLC0415 - `vani --help` pays for no library

    new, number = api.history_import(file, db=db)
    click.echo(f"{counted(new, 'run')} of {number:,} were new", err=True)


@click.command()
@db_option
def upgrade(db: str | None) -> None:
    """Bring a history that an older Vani made to the newest layout; a copy of it is kept first."""
    from vani import api  # noqa: PLC0415 - `vani --help` pays for no library

    layout, copy = api.history_upgrade(db=db)
    click.echo(
        "it has the newest layout already"
        if copy is None
        else f"layout {int(layout)} upgraded; its copy is {copy}",
        err=True,
    )
