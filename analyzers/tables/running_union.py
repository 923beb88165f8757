"""Lengths of unions of processes' intervals, for calls that come batch by batch, process by process."""

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
from vani.kernels.library import available, call, dtype_of

_LOOK_BACK_NS = 10_000_000_000
"""Maximum delay with which a call is recorded after calls that began later (see the repair of time stamps)."""
_MOST_HELD = 1 << 18
_LONG_AGO = np.iinfo(np.int64).min
KEYS = 16
"""Number of unions per process that one kernel tracks."""

Ints = NDArray[np.int64]


class RunningUnion:
    """Adds up union lengths by group, a key of the process and a number below `width` (`keys.beside`).

    Intervals of the last process are kept until no later call can touch them. If a process runs calls concurrently,
    calls may be recorded long after calls that began later.
    """

    def __init__(self, width: int, threaded: Ints) -> None:
        self._widths = beside(width)
        self._threaded = threaded
        self._pending = Intervals()
        self._lengths: list[IntTable] = []

    def add(self, key: Ints, start: Ints, end: Ints, *, current: int, latest: int) -> None:
        """Add intervals in any order.

        Parameters
        ----------
        current
            The process that may have more calls; other processes are complete.
        latest
            Start of its last call so far, in ns.
        """
        self._pending = Intervals.joined([self._pending, merge(key, start, end)])
        is_current = unpack(self._pending.group, self._widths)[0] == current
        done = ~is_current
        if int(is_current.sum()) > _MOST_HELD:
            back = _LOOK_BACK_NS if current in self._threaded else 0
            done |= self._pending.end < latest - back
        self._book(done)

    def _book(self, done: NDArray[np.bool_]) -> None:
        if not done.any():
            return
        intervals = self._pending
        keys, lengths = total_length(
            Intervals(intervals.group[done], intervals.start[done], intervals.end[done])
        )
        self._lengths.append(IntTable(keys, {"time": lengths}))
        if len(self._lengths) > 64:
            self._lengths = [IntTable.merged(self._lengths)]
        self._pending = Intervals(intervals.group[~done], intervals.start[~done], intervals.end[~done])

    def result(self) -> IntTable:
        """Column `time` (ns) by group; call it after the last interval."""
        self._book(np.ones(len(self._pending), np.bool_))
        return IntTable.merged(self._lengths)


@dataclass(frozen=True, eq=False)
class OfProcesses:
    """Calls of a batch, shape (n,), and their groups, shape (groups,)."""

    codes: NDArray[Any]
    """Group of each call."""
    rows: NDArray[Any] | None
    """Index of each call in the two columns below; None if it equals the call's own."""
    start: Ints
    """In ns."""
    duration: Ints
    shift: int
    """Added to the starts."""
    keys: Ints
    """Bits of each group: one for each of the `KEYS` unions that its calls belong to."""
    process: Ints
    """Process of each group, which owns the unions."""
    count: Ints
    """Number of calls in each group."""


class RunningUnions:
    """`RunningUnion` with a kernel, for calls in groups: keys are made of the process and a union below `KEYS`.

    The kernel identifies processes by their slot in the arrays passed to it.
    """

    def __init__(self, threaded: Ints) -> None:
        self._threaded = threaded
        self._owner = -1
        """Process whose unions may still grow."""
        self._intervals = np.empty(0, dtype_of("unions_add", "intervals"))
        """Start, end, and the row of its union's previous interval (-1: none); unused rows follow `_count`."""
        self._count = 0
        """Number of intervals that may grow, including some that were merged into others."""
        self._last = np.full((1, KEYS), -1)
        """The last interval of each union, -1 if there is none."""
        self._lengths: list[IntTable] = []
        self.stopped = False
        """Whether numpy has taken over."""

    def add(self, calls: Sequence[OfProcesses], current: int, latest: int) -> bool:
        """Add calls, like `RunningUnion.add`; False if numpy must do it, which then needs all of them.

        Some of them may have been added already, but adding them again changes no union.
        """
        calls = [batch for batch in calls if batch.keys.any()]
        if not calls and not self._count:
            return True
        if not available():
            return False
        if self._owner == current and all((batch.process == current).all() for batch in calls):
            processes = np.array([current])
        else:
            processes = distinct(np.array([self._owner, current]), *(batch.process for batch in calls))
        owner, going_on = np.searchsorted(processes, [self._owner, current]).tolist()
        self._make_room(sum(int((np.bitwise_count(c.keys.astype(np.uint16)) * c.count).sum()) for c in calls))
        last = np.full((len(processes), KEYS), -1)
        last[owner] = self._last[0]
        count = np.array([self._count])
        done = all(
            call(
                "unions_add",
                codes=batch.codes,
                rows=batch.rows,
                start=batch.start,
                duration=batch.duration,
                shift=batch.shift,
                keys=batch.keys,
                slot=np.searchsorted(processes, batch.process),
                slots=len(processes),
                intervals=self._intervals,
                count=count,
                last=last,
            )
            is not None
            for batch in calls
        )
        self._count, self._last = int(count[0]), last[owner : owner + 1]
        # Usually all calls belong to one process without complete unions.
        if done and (len(processes) > 1 or self._count > _MOST_HELD):
            until = latest - (_LOOK_BACK_NS if current in self._threaded else 0)
            times = self._settle(last, going_on, until, _MOST_HELD)
            done = times is not None
            if times is not None:
                slot, key = np.nonzero(times)
                self._book(processes[slot], key, times[slot, key])
        if done:
            self._owner = current
        return done

    def _make_room(self, more: int) -> None:
        room = self._count + more
        if room > len(self._intervals):
            before = self._intervals[: self._count]
            self._intervals = np.empty(max(room, 2 * len(before)), before.dtype)
            self._intervals[: len(before)] = before

    def _settle(self, last: Ints, going_on: int, until: int, most: int) -> Ints | None:
        """Times of complete unions, shape (slots, KEYS); the other intervals are kept, union by union and in order.

        Intervals of the slot `going_on` are not complete; but if there are more than `most`, those that end before
        `until` are. None if numpy must do it.
        """
        unions = {"intervals": self._intervals, "last": last, "slots": len(last), "count": self._count}
        out = call("unions_settle", **unions, going_on=going_on, until=_LONG_AGO)
        if out is not None and len(out["left"]) > most:
            out = call("unions_settle", **unions, going_on=going_on, until=until)
        if out is None:
            return None
        self._intervals, self._count = out["left"], len(out["left"])
        self._last = out["left_last"].reshape(1, KEYS)
        return out["times"].reshape(-1, KEYS)

    def _open(self) -> tuple[Ints, Ints, Ints]:
        """Key, start and end of each interval that may grow, union by union and in order."""
        if self._count:
            self._settle(self._last, 0, _LONG_AGO, self._count)
        last, intervals = self._last[0], self._intervals[: self._count]
        used = last >= 0
        key = np.repeat(np.flatnonzero(used), np.diff(np.append(-1, last[used])))
        return key, intervals["start"], intervals["end"]

    def _book(self, process: NDArray[Any], key: NDArray[Any], time: Ints) -> None:
        if len(time):
            self._lengths.append(group(pack((process, key), beside(KEYS)), {"time": time}))
        if len(self._lengths) > 64:
            self._lengths = [IntTable.merged(self._lengths)]

    def stop(self, instead: RunningUnion) -> None:
        """Pass on incomplete unions; no more calls may follow."""
        self.stopped = True
        key, start, end = self._open()
        if len(key):
            owner = np.full(len(key), self._owner)
            keys = pack((owner, key), beside(KEYS))
            instead.add(keys, start, end, current=self._owner, latest=int(start.max()))
        self._count, self._last = 0, np.full((1, KEYS), -1)

    def result(self) -> IntTable:
        """Column `time` (ns) by key; call it after the last call."""
        key, start, end = self._open()
        self._book(np.full(len(key), self._owner), key, end - start)
        self._count, self._last = 0, np.full((1, KEYS), -1)
        return IntTable.merged(self._lengths)
