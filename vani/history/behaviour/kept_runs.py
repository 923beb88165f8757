"""Runs of a history as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from vani.database.runs import read
from vani.history.behaviour.runs import TOTALS, Runs, categories_of
from vani.units import counted

if TYPE_CHECKING:
    import sqlalchemy as sa

__all__ = ["kept_runs"]

_NAMES: Final = ("application", "user", "processes")
_FIGURES: Final = (*TOTALS, "reads", "writes", "files", "runtime_s", "in_io_s")
_COLUMNS: Final = (*_NAMES, "submitted", "digest", *_FIGURES)


def kept_runs(connection: sa.Connection, application: str | None = None, user: str | None = None) -> Runs:
    """Read runs of an application, of all where it is None; those that do not tell their totals are left out."""
    rows = read.figures_of(connection, _COLUMNS, application, user)
    columns = (
        dict(zip(_COLUMNS, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(_COLUMNS, ())
    )
    figures = {name: np.array(columns[name], np.float64) for name in _FIGURES}
    known = np.ones(len(rows), np.bool_)
    for name in TOTALS:
        known &= figures[name] >= 0
    submitted = np.array(columns["submitted"], np.float64)
    # How long a run took is not always known; that there is a log of it says that it has ended.
    ended = submitted + np.maximum(np.nan_to_num(figures["runtime_s"]), 0.0)
    names, category = categories_of(*(columns[name] for name in _NAMES))
    left = len(rows) - int(known.sum())
    notes = (f"{counted(left, 'run')} left out that do not tell how much they moved",) if left else ()
    runs = Runs(names, category, submitted, ended, figures, columns["digest"], notes)
    return runs.only(known) if left else runs
