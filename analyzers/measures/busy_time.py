"""Busy time: how long at least one process was in a call, the union over all processes (denominator of bandwidths).

Per phase, per file of the files that are listed, and for the workload; by kind and in all. Calls of all processes
meet here, so this works on windows of time, not on partitions: each window reads the row groups that its calls can
lie in, intervals are cut at its borders, and lengths add up. Unit: nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from vani.analyzers.base import Batch, Context, Facts
from vani.analyzers.intervals import Intervals, merge, total_length
from vani.analyzers.keyed import Keyed, group
from vani.store.read import RowGroup

__all__ = ["COLUMNS", "Window", "busy_in", "windows"]

COLUMNS = ("rank", "layer", "kind", "flags", "file", "start_ns", "duration_ns")
_ROWS = 1 << 19
_ALL = 3
_GROUPS_AT_ONCE = 4

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Window:
    """A stretch of the workload's time, and the row groups with calls in it."""

    begin: int
    end: int
    groups: tuple[tuple[Context, RowGroup], ...]
    facts: Facts
    listed: Ints
    """Shape (files,): number of a listed file, -1 for others."""
    workload: bool
    """Measure the workload too (it is not the sum of its apps)."""


def windows(
    groups: Sequence[tuple[Context, RowGroup]], facts: Facts, listed: Ints, *, workers: int, workload: bool
) -> list[Window]:
    """Cut the time into windows of about half a million calls each.

    A row group's calls are taken as spread evenly over its time, which is only used to place the borders.
    """
    if not groups:
        return []
    shift = np.array([c.world.shift_ns[c.trace] for c, _ in groups])
    first = np.array([g.first_start for _, g in groups]) + shift
    last = np.array([g.last_start for _, g in groups]) + shift
    reach = last + np.array([g.longest for _, g in groups])
    rows = np.array([g.rows for _, g in groups])
    count = max(1, -(-int(rows.sum()) // _ROWS))
    if count > 1:
        count = -(-count // workers) * workers
    low, high = int(first.min()), int(reach.max()) + 1
    edges = np.unique(np.concatenate((first, last + 1)))
    mass = np.zeros(len(edges))
    for a, b, n in zip(first, last + 1, rows, strict=True):
        mass += n * np.clip((edges - a) / (b - a), 0, 1)
    wanted = np.linspace(0, float(rows.sum()), count + 1)[1:-1]
    borders = np.unique(np.interp(wanted, mass, edges).astype(np.int64))
    borders = borders[(borders > low) & (borders < high)]
    borders = np.concatenate(([low], borders, [high]))
    found = []
    for begin, end in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        inside = np.flatnonzero((first < end) & (reach >= begin))
        found.append(Window(begin, end, tuple(groups[i] for i in inside.tolist()), facts, listed, workload))
    return found


def busy_in(window: Window) -> Keyed:
    """Busy time in one window: column `time` by group * 4 + kind (3 for all).

    Groups are phases 0..phases-1, excluded calls, the workload (phases + 1) and listed files (from phases + 2 on).
    Calls are merged by phase, listed file and kind first; every other union is one of what is left of them.
    """
    held: list[Intervals] = []
    size = 0
    for batch in _batches(window):
        held.append(_finest(batch, window))
        size += len(held[-1])
        if size > 8 * _ROWS:
            held = [Intervals.joined(held)]
            size = len(held[0])
    finest = Intervals.joined(held)
    kind, place = finest.group % 4, finest.group // 4
    files = int(window.listed.max(initial=-1)) + 2
    phase, number = place // files, place % files
    phases = window.facts.phases
    found = [_union(finest, phase * 4 + kind)]
    if window.workload:
        by_phase = found[0]
        found.append(_union(by_phase, 4 * (phases + 1) + by_phase.group % 4, by_phase.group < 4 * phases))
    found.append(_union(finest, 4 * (phases + 1 + number) + kind, number > 0))
    found += [_union(f, f.group - f.group % 4 + _ALL) for f in found]
    return Keyed.merged([group(keys, {"time": time}) for keys, time in map(total_length, found)])


def _batches(window: Window) -> Iterator[Batch]:
    """The calls of the window, those of row groups that follow each other in a file together."""
    at = 0
    while at < len(window.groups):
        context, first = window.groups[at]
        stop = at + 1
        while stop < len(window.groups) and stop - at < _GROUPS_AT_ONCE and window.groups[stop][1].file == first.file:
            stop += 1
        wanted = [g.index for _, g in window.groups[at:stop]]
        with pq.ParquetFile(first.file) as file:
            table = file.read_row_groups(wanted, columns=list(COLUMNS), use_threads=False)
        for record_batch in table.combine_chunks().to_batches():
            yield Batch(context, record_batch, window.facts)
        at = stop


def _finest(batch: Batch, window: Window) -> Intervals:
    """Merged calls within the window by (phase * files + number of the listed file + 1) * 4 + kind."""
    start, end = np.maximum(batch.start, window.begin), np.minimum(batch.end, window.end)
    inside = start < end
    rows = slice(None) if inside.all() else np.flatnonzero(inside)
    listed = window.listed
    number = listed[batch.file] if len(listed) else np.full(len(batch), -1)
    number[batch.file < 0] = -1
    place = batch.phase * (int(listed.max(initial=-1)) + 2) + number + 1
    return merge((place * 4 + batch.kind)[rows], start[rows], end[rows])


def _union(intervals: Intervals, key: Ints, rows: NDArray[np.bool_] | None = None) -> Intervals:
    """The intervals (those in `rows`) merged under other keys, groups in any order."""
    if rows is not None and not rows.all():
        return merge(key[rows], intervals.start[rows], intervals.end[rows])
    firsts = np.flatnonzero(np.append(True, intervals.group[1:] != intervals.group[:-1])[: len(key)])
    if len(np.unique(key[firsts])) == len(firsts):
        # No two groups meet.
        return Intervals(key, intervals.start, intervals.end)
    return merge(key, intervals.start, intervals.end)
