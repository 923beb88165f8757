"""`vani convert`."""

from __future__ import annotations

from pathlib import Path

import click

from vani.cli.output import eyes, progress_bar, quiet_option, watched

__all__ = ["convert"]


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.argument("store", type=click.Path(path_type=Path))
@click.option("--scheduler", metavar="ADDRESS|threads|processes", help="Where to work: here (threads), or on a Dask cluster.")
@quiet_option
def convert(trace: Path, store: Path, scheduler: str | None, quiet: bool) -> None:
    """Decode TRACE into a Parquet dataset in the folder STORE.

    STORE appears whole or not at all. Its calls lie in calls/*.parquet, for pyarrow, pandas, duckdb or polars.
    """
    from vani.api import convert as run  # noqa: PLC0415 - loads Arrow, which --help does not need

    look = watched(quiet=quiet)
    with progress_bar(show=look) as progress:
        places = run(trace, store, scheduler=scheduler, progress=progress)
    if look:
        console = eyes()
        for place in places:
            console.print(f"wrote {place}", markup=False)
