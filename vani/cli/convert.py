"""`vani convert`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vani.cli.options import FILE, quiet_option
from vani.cli.output import progress_bar, shows_progress, summary_console
from vani.cli.scheduler_options import scheduler_options
from vani.cli.work import keep_freed_memory
from vani.errors import one_line

if TYPE_CHECKING:
    from vani.engine.scheduler import Scheduler

__all__ = ["convert"]


@click.command()
@click.argument("trace", type=FILE)
@click.argument("store", type=FILE)
@click.option(
    "--call-sites", is_flag=True, help="Keep from which place in a program or library each call was made."
)
@scheduler_options
@quiet_option
def convert(trace: Path, store: Path, call_sites: bool, scheduler: Scheduler, quiet: bool) -> None:
    """Decode TRACE into a Parquet dataset in the folder STORE.

    STORE appears whole or not at all. Its calls lie in calls/*.parquet, for pyarrow, pandas, duckdb, polars.
    A directory of several traces becomes a folder of several stores.
    """
    from vani.api import convert as run  # noqa: PLC0415 - loads Arrow, which --help does not need

    keep_freed_memory()
    with progress_bar(show=shows_progress(quiet=quiet)) as progress:
        places = run(trace, store, call_sites=call_sites, scheduler=scheduler, progress=progress)
    if shows_progress(quiet=quiet):
        console = summary_console()
        for place in places:
            console.print(f"wrote {one_line(str(place))}", markup=False, soft_wrap=True)
