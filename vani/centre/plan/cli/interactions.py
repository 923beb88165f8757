"""`vani plan interactions`."""

from __future__ import annotations

from pathlib import Path

import click

from vani import centre
from vani.centre.plan.cli.options import database_file, database_option
from vani.cli.options import output_option
from vani.cli.output import emit
from vani.cli.output_guard import check_outputs
from vani.errors import one_line


@click.command()
@click.argument("path", required=False)
@database_option
@output_option()
def interactions(path: str | None, database: str, output: Path | None) -> None:
    """Write the stored placement of the file PATH, or of all files, as CSV.

    PATH is exact, as the program names the file. The columns are the columns of Tarazu's tables; `vani plan store`
    reads them.
    """
    from vani.centre.placement_library.interactions import write_csv  # noqa: PLC0415

    check_outputs([output], [database_file(database)])
    rows = centre.plan_interactions(database, path)
    emit(write_csv(rows), output)
    if path is not None and not rows:
        click.echo(f"vani: nothing is stored for {one_line(path)}", err=True)
