"""Lengths of unions of intervals of processes whose calls come batch after batch, process after process."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.intervals import Intervals, merge, total_length
from vani.analyzers.keyed import Keyed
from vani.analyzers.keys import beside, unpack

__all__ = ["RunningUnion"]

_LOOK_BACK_NS = 10_000_000_000
"""No call is recorded later than this after calls that began after it (see the repair of time stamps)."""
_MOST_HELD = 1 << 18

Ints = NDArray[np.int64]


class RunningUnion:
    """Adds up by group: a key of the process and something below `width` (`keys.beside`).

    Intervals of the last process stay until no later call can touch them: of one that runs calls at the same time as
    others, calls may be recorded long after calls that began later.
    """

    def __init__(self, width: int, threaded: Ints) -> None:
        self._widths = beside(width)
        self._threaded = threaded
        self._held = Intervals()
        self._lengths: list[Keyed] = []

    def add(self, group: Ints, start: Ints, end: Ints, *, current: int, latest: int) -> None:
        """Take intervals in any order.

        Parameters
        ----------
        current
            The process that may have more calls; those of others are complete.
        latest
            Start of its last call so far, ns.
        """
        self._held = Intervals.joined([self._held, merge(group, start, end)])
        mine = unpack(self._held.group, self._widths)[0] == current
        done = ~mine
        if int(mine.sum()) > _MOST_HELD:
            back = _LOOK_BACK_NS if current in self._threaded else 0
            done |= self._held.end < latest - back
        self._book(done)

    def _book(self, done: NDArray[np.bool_]) -> None:
        if not done.any():
            return
        held = self._held
        keys, lengths = total_length(Intervals(held.group[done], held.start[done], held.end[done]))
        self._lengths.append(Keyed(keys, {"time": lengths}))
        if len(self._lengths) > 64:
            self._lengths = [Keyed.merged(self._lengths)]
        self._held = Intervals(held.group[~done], held.start[~done], held.end[~done])

    def result(self) -> Keyed:
        """Column `time` (ns) by group; no more intervals come."""
        self._book(np.ones(len(self._held), np.bool_))
        return Keyed.merged(self._lengths)
