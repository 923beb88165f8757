"""`vani plan rehearse`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from vani.centre.plan.cli.job import sharing_options
from vani.cli.options import FILE, output_option
from vani.cli.output import emit
from vani.cli.output_guard import check_outputs


@click.command()
@click.argument("accounting", type=FILE, metavar="SACCT")
@click.option("--history", metavar="FILE|URL", help="The history with the I/O time of each job, by its number.")
@sharing_options
@output_option("Also write a row for each job here, as CSV.")
def rehearse(accounting: Path, history: str | None, output: Path | None, **rules: Any) -> None:
    """Show what the hook would have done with past jobs: a dry run before it is switched on.

    SACCT is the output of `sacct`, as for `vani history import`. The jobs start and end again, and the
    planner of `vani plan job` plans for each. The comparison is with `--policy static` by --nodes-per-io-node.
    """
    from vani.centre.plan.pools import SharingRules  # noqa: PLC0415 - `vani --help` pays for none of it
    from vani.centre.plan.rehearse import (  # noqa: PLC0415
        csv_of_jobs,
        rehearse_files,
        text_of,
    )

    if output is not None:
        check_outputs([output], [accounting])
    def say(text: str) -> None:
        click.echo(f"vani: {text}", err=True)

    done = rehearse_files(accounting, SharingRules(**rules), history, say)
    click.echo(text_of(done), nl=False)
    if output is not None:
        emit(csv_of_jobs(done), output)
