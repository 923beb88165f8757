"""`vani table`: compares many runs, one per line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vani import api
from vani.cli.options import FILE, format_option, output_option, quiet_option
from vani.cli.output import emit
from vani.cli.output_guard import check_outputs
from vani.cli.scheduler_options import decoding_options, scheduler_files
from vani.cli.work import working
from vani.render.formats import RUNS

if TYPE_CHECKING:
    from vani.engine.scheduler import Scheduler

@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=FILE)
@click.option(
    "--sort",
    metavar="COLUMN",
    help="Sort by a column of the CSV, such as io_s: numbers from large to small, text from A to Z.",
)
@click.option("--reverse", is_flag=True, help="Reverse the order.")
@format_option(RUNS, default=None, help="Output format; by default from the suffix of -o, else text.")
@output_option()
@decoding_options
@quiet_option
def table(
    runs: tuple[Path, ...], sort: str | None, reverse: bool, kind: str | None, output: Path | None,
    store: Path | None, scheduler: Scheduler, quiet: bool,
) -> None:  # fmt: skip
    """Compare many runs, one line each.

    A RUN is a profile, a folder of profiles, or a trace. The text has the most common columns; CSV, JSON and
    Parquet have all, named as in the profile. Unreadable files are reported, and the rest is written.
    """
    kind = kind or (RUNS.of_file(output) if output is not None else None) or "text"
    with working(*runs, quiet=quiet) as progress:
        check_outputs([output], [*runs, *scheduler_files(scheduler)])
        runs_read = api.table(*runs, sort=sort, reverse=reverse, store=store, scheduler=scheduler, progress=progress)
    for run in runs_read.unread:
        click.echo(f"vani: left out: {run.why}", err=True)
    emit(RUNS.render(kind, runs_read), output)
