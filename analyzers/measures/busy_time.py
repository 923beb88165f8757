"""Busy time: how long at least one process was in a call, the union over all processes (denominator of bandwidths).

Per phase, per file of the files that are listed, and for the workload; by kind and in all. Calls of all processes
meet here, so this works on windows of time, not on partitions: each window reads the row groups that its calls can
lie in, intervals are cut at its borders, and lengths add up. Unit: nanoseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from vani.analyzers.base import Batch, Context, Facts, stable_order
from vani.analyzers.intervals import Intervals, merge, total_length
from vani.analyzers.keyed import Keyed, group
from vani.store.read import RowGroup

__all__ = ["COLUMNS", "Window", "busy_in", "windows"]

COLUMNS = ("rank", "layer", "kind", "flags", "file", "start_ns", "duration_ns")
_ROWS = 1 << 19
_ALL = 3

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
    """
    parts: list[tuple[Ints, Ints, Ints]] = []
    held: list[Intervals] = []
    size = 0
    for context, row_group in window.groups:
        with pq.ParquetFile(row_group.file) as file:
            table = file.read_row_group(row_group.index, columns=list(COLUMNS), use_threads=False)
        for record_batch in table.to_batches():
            batch = Batch(context, record_batch, window.facts)
            part = _entries(batch, window)
            if len(part[0]):
                parts.append(part)
                size += len(part[0])
        if size > 8 * _ROWS:
            held = [_merged(parts, held)]
            parts, size = [], 0
    groups, lengths = total_length(_merged(parts, held))
    return group(groups, {"time": lengths})


def _entries(batch: Batch, window: Window) -> tuple[Ints, Ints, Ints]:
    start, end = batch.start, batch.end
    inside = (start < window.end) & (end > window.begin)
    rows = np.flatnonzero(inside)
    if not len(rows):
        empty = np.empty(0, np.int64)
        return empty, empty, empty
    start = np.maximum(start[rows], window.begin)
    end = np.minimum(end[rows], window.end)
    phases = window.facts.phases
    phase, kind = batch.phase[rows] * 4, batch.kind[rows].astype(np.int64)
    keys = [phase + kind, phase + _ALL]
    starts, ends = [start, start], [end, end]
    if window.workload:
        some = phase != phases * 4
        own = np.full(int(some.sum()), 4 * (phases + 1), np.int64)
        keys += [own + kind[some], own + _ALL]
        starts += [start[some]] * 2
        ends += [end[some]] * 2
    file = batch.file[rows]
    number = (
        np.where(file >= 0, window.listed[np.maximum(file, 0)], -1)
        if len(window.listed)
        else np.full(len(file), -1)
    )
    some = number >= 0
    if some.any():
        own = 4 * (phases + 2 + number[some])
        keys += [own + kind[some], own + _ALL]
        starts += [start[some]] * 2
        ends += [end[some]] * 2
    key = np.concatenate(keys)
    # Group by group, in order of time within: runs that merging is quick with.
    order = stable_order(key)
    return key[order], np.concatenate(starts)[order], np.concatenate(ends)[order]


def _merged(parts: list[tuple[Ints, Ints, Ints]], held: list[Intervals]) -> Intervals:
    found = list(held)
    if parts:
        found.append(merge(*(np.concatenate([p[i] for p in parts]) for i in range(3))))
    return Intervals.joined(found)
