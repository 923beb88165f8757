"""A heat map of DXT calls that are too many to keep: they are added up as they are read, by process and time bin."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_STRETCHES: Final = 200
_SHORTEST_S: Final = 0.1
_MOST_PROCESSES: Final = 1 << 17
"""Maximum number of rows in the table: 400 MiB."""


class HeatOfCalls:
    """A heat map like Darshan's own: bins of 0.1 s, doubled until at most 200 cover the run.

    The bytes of a call that spans several bins are spread evenly over its time.
    """

    def __init__(self, runtime_s: float) -> None:
        self.width_s = _SHORTEST_S
        while self.width_s * _STRETCHES < runtime_s:
            self.width_s *= 2
        self._row_of: dict[int, int] = {}
        self._moved = np.zeros((64, 2, _STRETCHES), np.int64)

    def add(self, ranks: list[int], counts: list[tuple[int, int]], calls: NDArray[Any]) -> None:
        """Add calls, one record after the other.

        Parameters
        ----------
        ranks, counts
            Rank of each record; numbers of its writing and reading calls here.
        calls
            Shape (calls, words): offset, length, and then start and end, whose words are the bits of floats.
        """
        for rank in ranks:
            if rank not in self._row_of and len(self._row_of) < _MOST_PROCESSES:
                self._row_of[rank] = len(self._row_of)
        if len(self._row_of) > len(self._moved):
            more = np.zeros((2 * len(self._row_of), *self._moved.shape[1:]), np.int64)
            more[: len(self._moved)] = self._moved
            self._moved = more
        each = np.array(counts, np.int64)
        row = np.repeat([self._row_of.get(rank, -1) for rank in ranks], each.sum(axis=1))
        side = np.repeat(np.tile([1, 0], len(counts)), each.ravel())
        size = calls[:, 1]
        start, end = (np.ascontiguousarray(calls[:, at]).view(np.float64) for at in (2, 3))
        with np.errstate(invalid="ignore"):
            sound = (row >= 0) & (size >= 0) & (start >= 0) & (start <= end) & (end < self.width_s * _STRETCHES)
        row, side, size = (column[sound].astype(np.int64) for column in (row, side, size))
        start, end = start[sound], end[sound]
        first, last = ((moment / self.width_s).astype(np.int64) for moment in (start, end))
        done = np.zeros(len(size), np.int64)
        for step in range(int((last - first).max(initial=-1)) + 1):
            now = np.flatnonzero(first + step <= last)
            ends_here = first[now] + step == last[now]
            share = ((first[now] + step + 1) * self.width_s - start[now]) / np.maximum(end[now] - start[now], 1e-12)
            until = np.where(ends_here, size[now], np.minimum((size[now] * share).astype(np.int64), size[now]))
            np.add.at(self._moved, (row[now], side[now], first[now] + step), until - done[now])
            done[now] = until

    def table(self, heat_id: int) -> dict[str, NDArray[Any]] | None:
        """The table in the form of `Records.heat`; None if there were too many processes for it."""
        if len(self._row_of) >= _MOST_PROCESSES:
            return None
        rows = len(self._row_of)
        return {
            "id": np.full(rows, heat_id, np.uint64),
            "rank": np.array(list(self._row_of), np.int64),
            "width": np.full(rows, self.width_s),
            "read": self._moved[:rows, 0],
            "write": self._moved[:rows, 1],
        }
