"""Unions of intervals, in groups: of times (busy processes) and of file offsets (touched bytes)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.tables.factorized import Factorized

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
