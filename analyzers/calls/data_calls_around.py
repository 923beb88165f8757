"""Calls of MPI-IO that a data call of a library above made: what H5Dwrite and its like hand down.

A call of a library does not tell how much it moves (a selection is a pointer to the tracer). What it asks MPI-IO for,
that call tells. Calls that the library makes on its own account (headers, indices) lie outside its data calls.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch

__all__ = ["DataCallsAround"]

Ints = NDArray[np.int64]


class DataCallsAround:
    """Finds them batch after batch, of one library and one direction."""

    def __init__(self) -> None:
        self._last = np.empty((3, 0), np.int64)
        """Rank, start and end of the last data call of the batch before, which may have made calls of this one."""

    def inside(self, batch: Batch, around: Ints, calls: Ints) -> Ints:
        """Of `calls`, those that one of the data calls `around` made; ascending places among all calls."""
        rank, start, duration = (batch.all_calls(name) for name in ("rank", "start_ns", "duration_ns"))
        outer = np.stack([rank[around], start[around], start[around] + duration[around]]).astype(np.int64)
        outer = np.concatenate((self._last, outer), axis=1)
        self._last = outer[:, -1:]
        if not len(calls) or not outer.shape[1]:
            return calls[:0]
        inner = np.stack([rank[calls], start[calls], start[calls] + duration[calls]]).astype(np.int64)
        both = np.concatenate((outer, inner), axis=1)
        outers = outer.shape[1]
        order = np.lexsort((np.arange(both.shape[1]) >= outers, both[1], both[0]))
        nearest = np.maximum.accumulate(np.where(order < outers, np.arange(len(order)), -1))
        known = nearest >= 0
        place, near = order[known], order[nearest[known]]
        within = (place >= outers) & (both[0, place] == both[0, near]) & (both[2, place] <= both[2, near])
        return np.sort(calls[place[within] - outers])
