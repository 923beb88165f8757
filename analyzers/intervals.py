"""Unions of intervals, in groups: of times (busy processes) and of file offsets (touched bytes).

Lengths of unions of processes' intervals, for calls that come batch by batch, process by process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from vani.analyzers.int_table import Factorized, IntTable, IntTableBuilder, key_widths, unpack
from vani.columns import Bools, Ints, Numbers


@dataclass(frozen=True, eq=False)
class Intervals:
    """Half-open intervals [start, end) by group; shape (n,) each."""

    group: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    start: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    end: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.group)

    def where(self, rows: Bools) -> Intervals:
        """Select some of them."""
        return Intervals(self.group[rows], self.start[rows], self.end[rows])

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
        columns = (np.concatenate([getattr(p, n) for p in parts]) for n in ("group", "start", "end"))
        # The parts may touch each other, unless they have other groups.
        apart = all(int(a.group[-1]) < int(b.group[0]) for a, b in pairwise(parts))
        return Intervals(*columns) if apart else merge(*columns)


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
        return _apart(first, last, low, span, groups)
    # Number the places, so that keys fit in 64 bits regardless of the distance between values.
    places, numbers = np.unique(np.concatenate((start, end)), return_inverse=True)
    span = len(places) + 1
    first, last = (half + codes * span for half in (numbers[: len(start)], numbers[len(start) :]))
    merged = _apart(first, last, 0, span, groups)
    return Intervals(merged.group, places[merged.start], places[merged.end])


def merge_runs(group: Ints, start: Ints, end: Ints) -> Intervals:
    """`merge` for intervals that often begin where the previous one ended: these are joined before sorting."""
    opens = np.flatnonzero(np.append(True, (start[1:] != end[:-1]) | (group[1:] != group[:-1]))[: len(group)])
    return merge(group[opens], start[opens], end[np.append(opens[1:], len(group))[: len(opens)] - 1])


def _apart(first: Numbers, last: Numbers, low: int, span: int, groups: Ints) -> Intervals:
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
    return Intervals(groups[number], opens, closes)


_FEW = 64
"""Number of values per run above which merging runs is faster than sorting again."""


def _falls(values: Numbers) -> int:
    return int(np.count_nonzero(values[1:] < values[:-1]))


def _sort(values: Numbers) -> None:
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

    def _book(self, done: Bools) -> None:
        if done.any():
            keys, lengths = total_length(self._pending.where(done))
            self._lengths.add(keys, {"time": lengths})
            self._pending = self._pending.where(~done)

    def result(self) -> IntTable:
        """Column `time` (ns) by group; call it after the last interval."""
        self._book(np.ones(len(self._pending), np.bool_))
        return self._lengths.table()
