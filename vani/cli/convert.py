"""`vani convert`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vani import api
from vani.cli.options import FILE, output_option, quiet_option
from vani.cli.output import progress_bar, shows_progress, summary_console
from vani.cli.output_guard import check_outputs
from vani.cli.scheduler_options import scheduler_options
from vani.cli.work import keep_freed_memory
from vani.errors import InputError, one_line
from vani.units import counted

if TYPE_CHECKING:
    from vani.engine.executor import Progress
    from vani.engine.scheduler import Scheduler

@click.command()
@click.argument("trace", type=FILE)
@click.argument("store", type=FILE, required=False)
@output_option("Write a timeline for Perfetto instead: .json or .json.gz.")
@click.option(
    "--call-sites", is_flag=True, help="Store the place in the program or library that made each call."
)
@scheduler_options
@quiet_option
def convert(
    trace: Path, store: Path | None, output: Path | None, call_sites: bool, scheduler: Scheduler, quiet: bool
) -> None:
    """Decode TRACE into a Parquet dataset in the folder STORE, or into a timeline.

    STORE is written completely or not at all. Its calls are in calls/*.parquet, for pyarrow, pandas, duckdb, polars.
    A directory of several traces becomes a folder of several stores.

    With -o FILE the calls become events that ui.perfetto.dev opens: a track for each process and thread, a slice for
    each call with its file, bytes and offset.
    """
    keep_freed_memory()
    with progress_bar(show=shows_progress(quiet=quiet)) as progress:
        if output is not None:
            written = _timeline(trace, store, output, call_sites, progress)
        elif store is None:
            raise InputError("no destination is given", todo="name a folder STORE, or a timeline with -o run.json")
        else:
            places = api.convert(trace, store, call_sites=call_sites, scheduler=scheduler, progress=progress)
            written = [f"wrote {place}" for place in places]
    if shows_progress(quiet=quiet):
        console = summary_console()
        for line in written:
            console.print(one_line(line), markup=False, soft_wrap=True)


def _timeline(
    trace: Path, store: Path | None, output: Path, call_sites: bool, progress: Progress | None
) -> list[str]:
    if store is not None or call_sites:
        raise InputError(
            "a timeline is not a store",
            where="-o",
            todo=f"leave {'STORE' if store is not None else '--call-sites'} out",
        )
    check_outputs([output], [trace])
    timeline = api.events(trace, output, progress=progress)
    written = f"wrote {output}: {counted(timeline.calls, 'call')} of {counted(timeline.processes, 'process')}"
    return [written, *(f"left out: {problem}" for problem in timeline.problems[:5])]
