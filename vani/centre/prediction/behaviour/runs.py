"""Runs of many applications as columns, read from a history, with the figures that distinguish their behaviours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from vani.centre.prediction.behaviour.clustering import behaviour_ids
from vani.units import counted

if TYPE_CHECKING:
    import sqlalchemy as sa

TOTALS: Final = ("bytes_read", "bytes_written", "metadata")
"""Figures that distinguish behaviours."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Runs:
    """Runs in order of submission.

    Attributes
    ----------
    names
        Application, user and number of processes of each category.
    category
        Index into `names` for each run, shape (runs,).
    submitted, ended
        Seconds since 1970, shape (runs,).
    figures
        Arrays by name, shape (runs,); NaN if unknown. The figures in `TOTALS` are always known.
    digests
        Digest of each run, if the runs are from a store.
    notes
        Notes on runs that were left out.
    """

    names: Sequence[tuple[str, str, int]]
    category: Ints
    submitted: Floats
    ended: Floats
    figures: Mapping[str, Floats]
    digests: Sequence[str] = ()
    notes: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.category)

    @cached_property
    def ids(self) -> Ints:
        """The behaviour of each run, numbered within its category, shape (runs,)."""
        return behaviour_ids(self.category, np.column_stack([self.figures[name] for name in TOTALS]))

    def only(self, chosen: Bools) -> Runs:
        """The runs selected by `chosen`, shape (runs,); categories keep their numbers."""
        return Runs(
            self.names,
            self.category[chosen],
            self.submitted[chosen],
            self.ended[chosen],
            {name: values[chosen] for name, values in self.figures.items()},
            [digest for digest, taken in zip(self.digests, chosen.tolist(), strict=True) if taken]
            if self.digests
            else (),
            self.notes,
        )


def categories_of(
    applications: Sequence[str], users: Sequence[str], processes: Sequence[int]
) -> tuple[list[tuple[str, str, int]], Ints]:
    """Categories in order of their first run, and the category of each run, shape (runs,)."""
    known: dict[tuple[str, str, int], int] = {}
    numbers = [
        known.setdefault(names, len(known)) for names in zip(applications, users, processes, strict=True)
    ]
    return list(known), np.array(numbers, np.int64)


_NAMES: Final = ("application", "user", "processes")
_FIGURES: Final = (*TOTALS, "reads", "writes", "files", "runtime_s", "in_io_s")
_COLUMNS: Final = (*_NAMES, "submitted", "digest", *_FIGURES)


def kept_runs(connection: sa.Connection, application: str | None = None, user: str | None = None) -> Runs:
    """Read the runs of an application (None: of all), without those whose totals are unknown."""
    from vani.centre.history.runs import read  # noqa: PLC0415 - loads SQLAlchemy, which tables in CSV do not need

    rows = read.figures_of(connection, _COLUMNS, application, user)
    columns = (
        dict(zip(_COLUMNS, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(_COLUMNS, ())
    )
    figures = {name: np.array(columns[name], np.float64) for name in _FIGURES}
    known = np.ones(len(rows), np.bool_)
    for name in TOTALS:
        known &= figures[name] >= 0
    submitted = np.array(columns["submitted"], np.float64)
    # The run time may be unknown, but a run with a log has ended.
    ended = submitted + np.maximum(np.nan_to_num(figures["runtime_s"]), 0.0)
    names, category = categories_of(*(columns[name] for name in _NAMES))
    left = len(rows) - int(known.sum())
    notes = (f"{counted(left, 'run')} without the bytes moved were left out",) if left else ()
    runs = Runs(names, category, submitted, ended, figures, columns["digest"], notes)
    return runs.only(known) if left else runs
