"""Figures of all runs of an application as arrays: for millions of runs, objects would be too slow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, Final

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from vani.centre.history.runs import tables
from vani.centre.history.runs.sums import Period

_AT_ONCE: Final = 10_000
"""Number of rows that are fetched at a time."""
_FIGURES: Final = 5
_UNKNOWN: Final = -1e308
"""A number in place of null, which numpy does not accept in rows."""


def category_figures(
    connection: sa.Connection, application: str, user: str | None, period: Period
) -> Iterator[tuple[str, int, NDArray[np.float64]]]:
    """User, processes, and figures of each category's runs, the oldest first, shape (5, runs).

    Figures are `submitted`, `runtime_s`, `in_io_s`, `waiting_s` and bytes moved. Unknown ones are NaN, unknown bytes 0.
    """
    of = tables.runs.c
    key = (of.user, of.processes)
    whose = (of.application == application) & period.of(of.submitted)
    if user is not None:
        whose &= of.user == user
    categories = connection.execute(sa.select(*key, sa.func.count()).where(whose).group_by(*key).order_by(*key)).all()
    known = [sa.func.coalesce(column, _UNKNOWN) for column in (of.submitted, of.runtime_s, of.in_io_s, of.waiting_s)]
    read, written = (sa.func.coalesce(sa.cast(column, sa.Double), 0.0) for column in (of.bytes_read, of.bytes_written))
    # Two queries in the order of an index with all these columns: reading names with each run takes twice as long.
    ordered = sa.select(*known, read + written).where(whose).order_by(*key, of.submitted)
    figures = np.empty((_FIGURES, sum(runs for *_, runs in categories)))
    # The driver's own tuples, because numpy takes ten times as long for SQLAlchemy's rows.
    cursor: Any = connection.execute(ordered).cursor
    rows = iter(cursor)
    for begin in range(0, figures.shape[1], _AT_ONCE):
        some = np.fromiter(chain.from_iterable(islice(rows, _AT_ONCE)), np.float64)
        figures[:, begin : begin + _AT_ONCE] = some.reshape(-1, _FIGURES).T
    figures[figures == _UNKNOWN] = np.nan
    end = 0
    for name, processes, runs in categories:
        begin, end = end, end + runs
        yield name, processes, figures[:, begin:end]
