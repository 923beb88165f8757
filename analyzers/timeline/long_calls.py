"""The longest calls, and a histogram of call durations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch
from vani.analyzers.tables.factorized import Factorized
from vani.analyzers.tables.int_table import IntTable
from vani.analyzers.tables.keys import KINDS, pack

Ints = NDArray[np.int64]

MOST: Final = 100
"""Number of calls that are listed."""
EDGES: Final = np.array([first * 10**power for power in range(13) for first in (1, 2, 5)], np.int64)
"""Durations (ns) at which classes begin, except the class of calls that took no time."""
DURATIONS: Final = (KINDS, len(EDGES) + 1)
"""Widths of keys of kind and duration class."""


@dataclass(frozen=True, eq=False)
class Long:
    """Some calls; shape (n,) each, longest first; ties are ordered by start and process."""

    duration: Ints
    start: Ints
    process: Ints
    file: Ints
    function: Ints
    kind: Ints
    bytes: Ints

    @staticmethod
    def joined(some: list[Long]) -> Long:
        """The longest calls of several lists."""
        if not some:
            return Long(*(np.zeros(0, np.int64) for _ in Long.__annotations__))
        columns = [np.concatenate([getattr(long, name) for long in some]) for name in Long.__annotations__]
        return Long(*columns).first(MOST)

    def first(self, count: int) -> Long:
        """The longest of these, in order."""
        order = np.lexsort((self.bytes, self.function, self.file, self.process, self.start, -self.duration))[
            :count
        ]
        return Long(*(getattr(self, name)[order] for name in Long.__annotations__))


def by_duration(kind: Ints, duration: Ints) -> IntTable:
    """Columns calls and time (ns) by `DURATIONS`."""
    dense = Factorized.of(pack((kind, np.searchsorted(EDGES, duration, side="right")), DURATIONS))
    return IntTable(dense.keys, {"calls": dense.count(), "time": dense.sum(duration)})


def longest(batch: Batch, rows: Ints) -> Long:
    """The longest of some calls in a batch."""
    duration = batch.duration[rows].astype(np.int64)
    if len(rows) > MOST:
        # Keep all calls as long as the last one that counts; ties are resolved later.
        least = np.partition(duration, len(rows) - MOST)[len(rows) - MOST]
        chosen = np.flatnonzero(duration >= least)
        if len(chosen) > 8 * MOST:
            # There are many ties: keep those that begin first, by process.
            order = np.lexsort((batch.process[rows[chosen]], batch.start[rows[chosen]], -duration[chosen]))
            chosen = chosen[order[: 8 * MOST]]
        rows, duration = rows[chosen], duration[chosen]
    columns = (batch.start, batch.process, batch.file, batch.function, batch.kind, batch.bytes)
    return Long(duration, *(column[rows].astype(np.int64) for column in columns)).first(MOST)
