"""Unions of intervals, in groups: of times (busy processes) and of file offsets (touched bytes).

Lengths of unions of processes' intervals, for calls that come batch by batch, process by process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.int_table import Factorized, IntTable, IntTableBuilder, key_widths, pack, unpack
from vani.distinct import distinct
from vani.kernels import available, call, dtype_of

Ints = NDArray[np.int64]

@dataclass(frozen=True, eq=False)
class Intervals:
    """Half-open intervals [start, end) by group; shape (n,) each."""

    group: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    start: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    end: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.group)

    def where(self, rows: NDArray[np.bool_]) -> Intervals:
        """Select some of them."""
        return Intervals(self.group[rows], self.start[rows], self.end[rows])

    def between(self, begin: int, end: int) -> Intervals:
        """Consecutive intervals, without copies."""
        return Intervals(self.group[begin:end], self.start[begin:end], self.end[begin:end])

    @property
    def firsts(self) -> Ints:
        """Start of each run of intervals in one group; shape (runs,)."""
        return np.flatnonzero(np.append(True, self.group[1:] != self.group[:-1])[: len(self)])

    def under(self, key: Callable[[Ints], Ints]) -> Intervals:
        """The same intervals in other groups: `key` maps the group of each run to the new one."""
        firsts = self.firsts
        long = np.diff(np.append(firsts, len(self)))
        return Intervals(np.repeat(key(self.group[firsts]), long), self.start, self.end)

    @staticmethod
    def joined(parts: list[Intervals]) -> Intervals:
        """All intervals of the parts, merged; each part must be merged, and sorted by group and start."""
        parts = [p for p in parts if len(p)]
        if not parts:
            return Intervals()
        if len(parts) == 1:
            return parts[0]
        parts.sort(key=lambda part: int(part.group[0]))
        if all(int(a.group[-1]) < int(b.group[0]) for a, b in pairwise(parts)):
            # The parts do not touch each other.
            return Intervals(*_columns(parts))
        return _joined_by_group(parts) or _joined_at_once(parts)


def merge(group: Ints, start: Ints, end: Ints) -> Intervals:
    """Join overlapping and touching intervals of a group; empty ones vanish.

    Parameters
    ----------
    group, start, end
        Shape (n,), any order, `start <= end`.

    Returns
    -------
    Intervals
        Sorted by group and start, disjoint and not touching within a group. The operation is idempotent and independent
        of order, so partial results may be merged again.
    """
    full = end > start
    if not full.all():
        rows = np.flatnonzero(full)
        group, start, end = group[rows], start[rows], end[rows]
    if not len(group):
        return Intervals()
    low = int(start.min())
    span = int(end.max()) - low + 1
    dense = Factorized.of(group)
    groups, codes = dense.keys, dense.codes
    if len(groups) * span < 1 << 62:
        base = codes * span - low if len(groups) > 1 else -low
        first, last = start + base, end + base
        if len(groups) * span < 1 << 31:
            # 32-bit integers sort twice as fast.
            first, last = first.astype(np.int32), last.astype(np.int32)
        if len(groups) > 1 and len(groups) < 1 << 16 and _falls(first) * _FEW > len(first):
            # Sort by group: within one, calls are mostly in time order. numpy uses radix sort for 16-bit integers.
            order = np.argsort(codes.astype(np.uint16), kind="stable")
            first, last = first[order], last[order]
        return _apart(first, last, low, span, groups, 0)
    # Number the places, so that keys fit in 64 bits regardless of the distance between values.
    places, numbers = np.unique(np.concatenate((start, end)), return_inverse=True)
    span = len(places) + 1
    first, last = (half + codes * span for half in (numbers[: len(start)], numbers[len(start) :]))
    merged = _apart(first, last, 0, span, groups, 0)
    return Intervals(merged.group, places[merged.start], places[merged.end])


def merge_runs(group: Ints, start: Ints, end: Ints) -> Intervals:
    """`merge` for intervals that often begin where the previous one ended: these are joined before sorting."""
    opens = np.flatnonzero(np.append(True, (start[1:] != end[:-1]) | (group[1:] != group[:-1]))[: len(group)])
    return merge(group[opens], start[opens], end[np.append(opens[1:], len(group))[: len(opens)] - 1])


def _joined_at_once(parts: Sequence[Intervals]) -> Intervals:
    """Join parts, none of which is empty."""
    return _joined_many(parts) or merge(*_columns(parts))


def _columns(parts: Sequence[Intervals]) -> tuple[Ints, Ints, Ints]:
    group, start, end = (np.concatenate([getattr(p, n) for p in parts]) for n in ("group", "start", "end"))
    return group, start, end


def _joined_by_group(parts: Sequence[Intervals]) -> Intervals | None:
    """Join intervals whose groups are mostly in one part each: these are moved, not sorted. None for others."""
    heads = [p.firsts for p in parts]
    if sum(map(len, heads)) * _LONG > sum(map(len, parts)):
        return None
    groups = np.concatenate([p.group[at] for p, at in zip(parts, heads, strict=True)])
    lengths = np.concatenate([np.diff(np.append(at, len(p))) for p, at in zip(parts, heads, strict=True)])
    order = np.argsort(groups, kind="stable")
    again = groups[order][1:] == groups[order][:-1]
    if again.any():
        shared = np.empty(len(groups), np.bool_)
        shared[order] = np.append(again, False) | np.append(False, again)
        if 2 * int(lengths[shared].sum()) > int(lengths.sum()):
            return None
        rows = np.split(np.repeat(shared, lengths), np.cumsum([len(p) for p in parts])[:-1])
        # All groups of a part may be shared, or none.
        together = _joined_at_once([p.where(some) for p, some in zip(parts, rows, strict=True) if some.any()])
        parts = [p.where(~some) for p, some in zip(parts, rows, strict=True)]
        return Intervals.joined([*parts, together])
    if len(groups) * _SLICED <= int(lengths.sum()):
        # Row numbers, and columns in one piece, would take three times the memory.
        of_part = np.repeat(np.arange(len(parts)), [len(at) for at in heads])
        begins = np.concatenate(heads)
        pieces = [
            parts[part].between(begin, begin + long)
            for part, begin, long in zip(*(c[order].tolist() for c in (of_part, begins, lengths)), strict=True)
        ]
        return Intervals(*_columns(pieces))
    begins = np.cumsum(lengths) - lengths
    lengths = lengths[order]
    rows_in_order = np.repeat(begins[order] - np.cumsum(lengths) + lengths, lengths) + np.arange(
        lengths.sum()
    )
    return Intervals(*(column[rows_in_order] for column in _columns(parts)))


def _joined_many(parts: Sequence[Intervals]) -> Intervals | None:
    """Join intervals of so many groups that numbering them would dominate memory use; None if there are few."""
    low, lowest = (min(int(getattr(p, n).min()) for p in parts) for n in ("start", "group"))
    high, highest = (max(int(getattr(p, n).max()) for p in parts) for n in ("end", "group"))
    span, groups = high - low + 1, highest - lowest + 1
    if groups < _MANY or groups * span >= 1 << 62:
        return None
    first, last = (np.empty(sum(map(len, parts)), np.int64) for _ in range(2))
    at = 0
    for part in parts:
        rows = slice(at, at + len(part))
        base = part.group - lowest
        base *= span
        base -= low
        np.add(base, part.start, out=first[rows])
        np.add(base, part.end, out=last[rows])
        at += len(part)
    return _apart(first, last, low, span, None, lowest)


def _apart(
    first: NDArray[Any], last: NDArray[Any], low: int, span: int, groups: Ints | None, lowest: int
) -> Intervals:
    """Merge starts and ends that were lifted by the number of their group times the span; modifies both.

    Starts and ends are sorted separately: nothing is open between the i-th end and the (i+1)-th start exactly if the
    end is smaller. Sorting values is far faster than sorting rows.
    """
    _sort(first)
    _sort(last)
    gaps = np.flatnonzero(last[:-1] < first[1:])
    # Ends are within their group's span, which is one too long, so that intervals of two groups never touch.
    opens = first[np.append(0, gaps + 1)].astype(np.int64, copy=False)
    closes = last[np.append(gaps, len(last) - 1)].astype(np.int64, copy=False)
    number = opens // span
    lift = number * span - low
    opens -= lift
    closes -= lift
    return Intervals(number + lowest if groups is None else groups[number], opens, closes)


_MANY = 1 << 16
_LONG = 4
"""Minimum mean number of intervals per group for which groups are considered separately."""
_SLICED = 1 << 10
"""Mean number of intervals per group above which copying group by group is faster."""
_FEW = 64
"""Number of values per run above which merging runs is faster than sorting again."""


def _falls(values: NDArray[Any]) -> int:
    return int(np.count_nonzero(values[1:] < values[:-1]))


def _sort(values: NDArray[Any]) -> None:
    """Sort in place; a process's calls come in time order, so there are often few runs, which merging exploits."""
    falls = _falls(values)
    if falls:
        values.sort(kind="stable" if falls * _FEW < len(values) else "quicksort")


def total_length(intervals: Intervals) -> tuple[Ints, Ints]:
    """Length of the union of each group: (groups, lengths), groups ascending."""
    if not len(intervals):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    firsts = intervals.firsts
    return intervals.group[firsts], np.add.reduceat(intervals.end - intervals.start, firsts)


_LOOK_BACK_NS = 10_000_000_000
"""Maximum delay with which a call is recorded after calls that began later (see the repair of time stamps)."""
_MAX_HELD = 1 << 18
_LONG_AGO = np.iinfo(np.int64).min
KEYS = 16
"""Number of unions per process that one kernel tracks."""



class RunningUnion:
    """Adds up union lengths by group, a key of the process and a number below `width` (`int_table.key_widths`).

    Intervals of the last process are kept until no later call can touch them. If a process runs calls concurrently,
    calls may be recorded long after calls that began later.
    """

    def __init__(self, width: int, threaded: Ints) -> None:
        self._widths = key_widths(width)
        self._threaded = threaded
        self._pending = Intervals()
        self._lengths = IntTableBuilder()

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
        if int(is_current.sum()) > _MAX_HELD:
            back = _LOOK_BACK_NS if current in self._threaded else 0
            done |= self._pending.end < latest - back
        self._book(done)

    def add_calls(self, calls: Sequence[CallsOfUnions], *, current: int, latest: int) -> None:
        """Add calls in groups."""
        parts = [batch.intervals() for batch in calls]
        key, start, end = (np.concatenate(column) for column in zip(*parts, strict=True))
        self.add(key, start, end, current=current, latest=latest)

    def _book(self, done: NDArray[np.bool_]) -> None:
        if done.any():
            keys, lengths = total_length(self._pending.where(done))
            self._lengths.add(keys, {"time": lengths})
            self._pending = self._pending.where(~done)

    def result(self) -> IntTable:
        """Column `time` (ns) by group; call it after the last interval."""
        self._book(np.ones(len(self._pending), np.bool_))
        return self._lengths.table()


@dataclass(frozen=True, eq=False)
class CallsOfUnions:
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

    def intervals(self) -> tuple[Ints, Ints, Ints]:
        """Key of process and union, start and end of each call in each of its unions."""
        every = slice(None) if self.rows is None else self.rows
        start = self.start[every] + self.shift
        end = start + self.duration[every]
        rows = [np.flatnonzero((self.keys >> key & 1)[self.codes]) for key in range(KEYS)]
        at, key = np.concatenate(rows), np.repeat(np.arange(KEYS), [len(some) for some in rows])
        return pack((self.process[self.codes[at]], key), key_widths(KEYS)), start[at], end[at]


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
        self._lengths = IntTableBuilder()
        self.stopped = False
        """Whether numpy has taken over."""

    def add(self, calls: Sequence[CallsOfUnions], current: int, latest: int) -> bool:
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
        if done and (len(processes) > 1 or self._count > _MAX_HELD):
            until = latest - (_LOOK_BACK_NS if current in self._threaded else 0)
            times = self._settle(last, going_on, until, _MAX_HELD)
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
        self._lengths.add(pack((process, key), key_widths(KEYS)), {"time": time})

    def stop(self, instead: RunningUnion) -> None:
        """Pass on incomplete unions; no more calls may follow."""
        self.stopped = True
        key, start, end = self._open()
        if len(key):
            owner = np.full(len(key), self._owner)
            keys = pack((owner, key), key_widths(KEYS))
            instead.add(keys, start, end, current=self._owner, latest=int(start.max()))
        self._count, self._last = 0, np.full((1, KEYS), -1)

    def result(self) -> IntTable:
        """Column `time` (ns) by key; call it after the last call."""
        key, start, end = self._open()
        self._book(np.full(len(key), self._owner), key, end - start)
        self._count, self._last = 0, np.full((1, KEYS), -1)
        return self._lengths.table()
