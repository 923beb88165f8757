"""`vani plan store`."""

from __future__ import annotations

from pathlib import Path

import click

from vani import centre
from vani.centre.plan.cli.options import database_file, database_option
from vani.cli.options import FILE, quiet_option
from vani.cli.output_guard import check_outputs
from vani.errors import one_line
from vani.units import counted

_SHOWN = 5


@click.command()
@click.argument("plan", type=FILE)
@database_option
@quiet_option
def store(plan: Path, database: str, quiet: bool) -> None:
    """Store the placement of files, for the placement library and for other plans.

    PLAN is a plan of kind `place`, or a CSV with the columns that `vani plan interactions` writes. Earlier rows
    of the same files are replaced. Either everything is stored or nothing.
    """
    check_outputs([file for file in [database_file(database)] if file is not None], [plan])
    done = centre.plan_store(plan, database)
    for objection in done.objections[:_SHOWN]:
        click.echo(
            f"vani: Lustre will refuse this layout and use its default: {one_line(objection)}", err=True
        )
    if (more := len(done.objections) - _SHOWN) > 0:
        click.echo(f"vani: and the layouts of {counted(more, 'other file')}", err=True)
    if not quiet:
        click.echo(f"stored {counted(done.extents, 'extent')} of {counted(done.files, 'file')}", err=True)
