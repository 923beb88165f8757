"""Lengths of unions of intervals of processes whose calls come batch after batch, process after process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.tables.int_table import IntTable, group
from vani.analyzers.tables.intervals import Intervals, merge, total_length
from vani.analyzers.tables.keys import beside, pack, unpack
from vani.distinct import distinct
from vani.kernels.unions import KEYS, Calls, Unions

__all__ = ["OfProcesses", "RunningUnion", "RunningUnions"]

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
        self._lengths: list[IntTable] = []

    def add(self, key: Ints, start: Ints, end: Ints, *, current: int, latest: int) -> None:
        """Take intervals in any order.

        Parameters
        ----------
        current
            The process that may have more calls; those of others are complete.
        latest
            Start of its last call so far, ns.
        """
        self._held = Intervals.joined([self._held, merge(key, start, end)])
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
        self._lengths.append(IntTable(keys, {"time": lengths}))
        if len(self._lengths) > 64:
            self._lengths = [IntTable.merged(self._lengths)]
        self._held = Intervals(held.group[~done], held.start[~done], held.end[~done])

    def result(self) -> IntTable:
        """Column `time` (ns) by group; no more intervals come."""
        self._book(np.ones(len(self._held), np.bool_))
        return IntTable.merged(self._lengths)


@dataclass(frozen=True, eq=False)
class OfProcesses:
    """Calls of a batch in groups, as `vani.kernels.unions.Calls`, but with the process of each group."""

    codes: NDArray[Any]
    rows: NDArray[Any] | None
    start: Ints
    duration: Ints
    shift: int
    keys: Ints
    process: Ints
    count: Ints


class RunningUnions:
    """The same by a kernel, of calls in groups: keys are those of the process and a union below `KEYS`."""

    def __init__(self, threaded: Ints) -> None:
        self._threaded = threaded
        self._owner = -1
        self._open = Unions()
        self._lengths: list[IntTable] = []
        self.stopped = False
        """It was handed over."""

    def add(self, calls: Sequence[OfProcesses], current: int, latest: int) -> bool:
        """Take calls; False if numpy decides, to which all of them go. As `RunningUnion.add`."""
        calls = [one for one in calls if one.keys.any()]
        if not calls and not self._open.count:
            return True
        if self._owner == current and all((one.process == current).all() for one in calls):
            processes = np.array([current])
        else:
            processes = distinct(np.array([self._owner, current]), *(one.process for one in calls))
        slot_of = {process: int(np.searchsorted(processes, process)) for process in (self._owner, current)}
        back = _LOOK_BACK_NS if current in self._threaded else 0
        times = self._open.add(
            [
                Calls(
                    one.codes,
                    one.rows,
                    one.start,
                    one.duration,
                    one.shift,
                    one.keys,
                    np.searchsorted(processes, one.process),
                    one.count,
                )
                for one in calls
            ],
            slot_of[self._owner],
            len(processes),
            going_on=slot_of[current],
            until=latest - back,
            most=_MOST_HELD,
        )
        if times is None:
            return False
        self._owner = current
        slot, key = np.nonzero(times)
        self._book(processes[slot], key, times[slot, key])
        return True

    def _book(self, process: NDArray[Any], key: NDArray[Any], time: Ints) -> None:
        if len(time):
            self._lengths.append(group(pack((process, key), beside(KEYS)), {"time": time}))
        if len(self._lengths) > 64:
            self._lengths = [IntTable.merged(self._lengths)]

    def stop(self, instead: RunningUnion) -> None:
        """Hand over what is not complete; no more calls come."""
        self.stopped = True
        key, start, end = self._open.columns()
        if len(key):
            owner = np.full(len(key), self._owner)
            keys = pack((owner, key), beside(KEYS))
            instead.add(keys, start, end, current=self._owner, latest=int(start.max()))
        self._open = Unions()

    def result(self) -> IntTable:
        """Column `time` (ns) by key; no more calls come."""
        key, start, end = self._open.columns()
        self._book(np.full(len(key), self._owner), key, end - start)
        self._open = Unions()
        return IntTable.merged(self._lengths)
