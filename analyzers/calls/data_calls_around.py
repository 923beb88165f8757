"""MPI-IO calls made by a data call of a higher library, such as H5Dwrite.

A library call does not show how much it moves (to the tracer, a selection is a pointer), but its MPI-IO calls
do. Calls that the library makes for itself (headers, indices) are outside its data calls.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch

Ints = NDArray[np.int64]


class DataCallsAround:
    """Finds them batch by batch, for one library and one direction."""

    def __init__(self) -> None:
        self._rank, self._start, self._end = -1, 0, 0
        """Rank and times of the last data call of previous batches, which may have made calls of this one."""

    def inside(self, batch: Batch, around: Ints, calls: Ints) -> Ints:
        """Indices among all calls, ascending, of those in `calls` that one of the data calls `around` made."""
        rank, start, duration = (batch.all_calls(name) for name in ("rank", "start_ns", "duration_ns"))
        owner, since = np.append(self._rank, rank[around]), np.append(self._start, start[around])
        until = np.append(self._end, start[around] + duration[around])
        self._rank, self._start, self._end = int(owner[-1]), int(since[-1]), int(until[-1])
        # A call is recorded before the calls that it makes.
        nearest = np.searchsorted(around, calls)
        begin, end = start[calls], start[calls] + duration[calls]
        within = (owner[nearest] == rank[calls]) & (since[nearest] <= begin) & (until[nearest] >= end)
        inner: Ints = calls[within]
        return inner
