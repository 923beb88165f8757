"""`vani table` for programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import vani
from vani.api.arguments import PathLike
from vani.api.gate_inputs import figures_of
from vani.api.run import Run
from vani.errors import InputError
from vani.history.run_rows import row_of, sorted_rows
from vani.schema.run_table import RunTable, Unread
from vani.schema.syntax.detection import first_bytes

if TYPE_CHECKING:
    from vani.engine.executor import Progress
    from vani.engine.scheduler import SchedulerLike
    from vani.schema.profile import Profile

__all__ = ["table"]


def table(
    *runs: PathLike | Profile,
    sort: str | None = None,
    reverse: bool = False,
    store: PathLike | None = None,
    scheduler: SchedulerLike = None,
    progress: Progress | None = None,
) -> RunTable:
    """One line of figures for each of many runs.

    Parameters
    ----------
    runs
        Profiles, their paths, folders of them, or traces, which are profiled first.
    sort
        Column to sort by (`vani.schema.run_table.COLUMNS`): numbers from the largest on, texts from the first on,
        unknown values last; None: as they are given.
    reverse
        The other way round.
    store, scheduler, progress
        As in `profile`, for traces.

    Raises
    ------
    InputError
        No run could be read, or there is no such column. A run that cannot be read is in `unread`.
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
    """The paths themselves, or the profiles of a folder that has some; any other folder is a trace."""
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
