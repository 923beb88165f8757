"""`vani convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from vani.cli.output import eyes, progress_bar, quiet_option, watched
from vani.cli.where import where_options
from vani.errors import one_line

__all__ = ["convert"]


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.argument("store", type=click.Path(path_type=Path))
@where_options
@quiet_option
def convert(trace: Path, store: Path, scheduler: Any, quiet: bool) -> None:
    """Decode TRACE into a Parquet dataset in the folder STORE.

    STORE appears whole or not at all. Its calls lie in calls/*.parquet, for pyarrow, pandas, duckdb, polars.
    A directory of several traces becomes a folder of several stores.
    """
    from vani.api import convert as run  # noqa: PLC0415 - loads Arrow, which --help does not need
    from vani.engine.allocator import keep_freed_memory  # noqa: PLC0415

    keep_freed_memory()
    look = watched(quiet=quiet)
    with progress_bar(show=look) as progress:
        places = run(trace, store, scheduler=scheduler, progress=progress)
    if look:
        console = eyes()
        for place in places:
            console.print(f"wrote {one_line(str(place))}", markup=False, soft_wrap=True)
