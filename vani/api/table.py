"""Implements `vani table`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import vani
from vani.api.arguments import PathLike
from vani.api.gate_inputs import figures_of
from vani.api.run import Run
from vani.centre.history.run_rows import row_of, sorted_rows
from vani.errors import InputError
from vani.schema.run_table import RunTable, Unread
from vani.schema.syntax.detection import first_bytes

if TYPE_CHECKING:
    from vani.engine.executor import Progress
    from vani.engine.scheduler import SchedulerLike
    from vani.schema.profile import Profile

def table(
    *runs: PathLike | Profile,
    sort: str | None = None,
    reverse: bool = False,
    store: PathLike | None = None,
    scheduler: SchedulerLike = None,
    progress: Progress | None = None,
) -> RunTable:
    """Tabulate the figures of many runs, one row per run.

    Parameters
    ----------
    runs
        Profiles, their paths, folders of profiles, or traces, which are profiled first.
    sort
        Column to sort by (`vani.schema.run_table.COLUMNS`): numbers in descending order, texts in ascending order,
        unknown values last. None keeps the order of `runs`.
    reverse
        Reverse the order.
    store, scheduler, progress
        As in `profile`, for traces.

    Raises
    ------
    InputError
        No run can be read, or the column does not exist. Single runs that cannot be read are listed in `unread`.
    """
    sorted_rows((), sort, reverse=reverse)
    rows, unread = [], []
    named = [each for run in runs for each in _runs_of(run)]
    for source in named:
        try:
            with Run([source], store=store, scheduler=scheduler, progress=progress) as run:
                figures = figures_of(run, source, (), 1)
        except InputError as error:
            unread.append(Unread(run=str(source), why=str(error)))
        else:
            rows.append(row_of(figures.model, figures.path))
    if not rows:
        raise InputError(
            f"none of {len(named)} runs can be read ({unread[0].why})" if unread else "no run was named",
            todo="name profiles or traces",
        )
    return RunTable(
        schema="vani.table/1",
        version=vani.__version__,
        rows=sorted_rows(rows, sort, reverse=reverse),
        unread=unread,
    )


def _runs_of(source: PathLike | Profile) -> Sequence[PathLike | Profile]:
    """The path itself, or the profiles in a folder that contains some; any other folder is a trace."""
    if not isinstance(source, (str, Path)) or not Path(source).is_dir():
        return [source]
    try:
        within = sorted(
            path
            for path in Path(source).iterdir()
            if path.suffix in (".yaml", ".yml", ".json") and path.is_file()
        )
    except OSError:
        return [source]
    return [path for path in within if b"vani.profile/" in (first_bytes(path) or b"")] or [source]
