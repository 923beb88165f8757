"""Activity of processes over time, from which the survey derives where their steps begin (`phase_starts.py`).

A cell is a process in one of 4,096 equal pieces of the run: start of its first and end of its last call in it, bytes
read and written, data operations, opens and calls. If a trace has more than 1,024 processes, only this many are
examined: rank 0, and others selected by a multiplicative hash, which favours no stride of ranks. Pieces are merged in
pairs until at most a quarter of a million cells remain. The number of merges depends only on all cells together, not
on their distribution over partitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vani.analyzers.batch import Batch
from vani.analyzers.int_table import How, IntTable, group, pack, unpack
from vani.analyzers.workload import BUCKETS, MOMENTS, Context
from vani.calls import Flag, Kind
from vani.columns import Bools, Ints, Numbers
from vani.kernels import ActivityBit, columns

_HOW: dict[str, How] = {"start": "min", "end": "max"}
_MAX_CELLS = 1 << 18
_MAX_PROCESSES = 1 << 10
_MIX = 2654435761
"""Knuth, The Art of Computer Programming, volume 3, section 6.4: 32-bit multiplicative hashing."""


def bucket_ns(span_ns: int) -> int:
    """Length of one piece of a run, in ns."""
    return max(1, -(-(span_ns + 1) // BUCKETS))


@dataclass(frozen=True, eq=False)
class Activity:
    """`cells` by process and moment; a moment is 2 ** level pieces of the run."""

    cells: IntTable = field(default_factory=IntTable)
    level: int = 0

    @staticmethod
    def combined(parts: Sequence[Activity]) -> Activity:
        return Activity(*merged_moments([(part.cells, part.level) for part in parts], _HOW, _MAX_CELLS))


@dataclass(frozen=True, eq=False)
class Cells:
    """Activity of some processes over time, by process, then time; shape (n,) each."""

    process: Ints
    start: Ints
    end: Ints
    read: Ints
    written: Ints
    data: Ints
    opens: Ints
    calls: Ints

    def __len__(self) -> int:
        return len(self.process)

    @staticmethod
    def of(table: IntTable, processes: Ints) -> Cells:
        """The cells of some processes."""
        if not len(table):
            return Cells(*(np.empty(0, np.int64) for _ in range(8)))
        process, _ = unpack(table.keys, MOMENTS)
        rows: Any = np.isin(process, processes)
        if rows.all():
            # Views instead of copies.
            rows = slice(None)
        columns = (table[n][rows] for n in ("start", "end", "read", "written", "data", "opens", "calls"))
        return Cells(process[rows], *columns)

    def where(self, rows: Ints | Bools) -> Cells:
        """Select some of them."""
        return Cells(*(getattr(self, n)[rows] for n in self.__dataclass_fields__))

    def by_process(self, *, last: bool) -> Cells:
        """The first (last) cell of each process in which it moves data."""
        moving = self.where((self.read > 0) | (self.written > 0))
        order = np.lexsort((moving.start, moving.process))
        owner = moving.process[order]
        change = owner[1:] != owner[:-1]
        edge = np.append(change, True) if last else np.append(True, change)
        return moving.where(order[edge[: len(owner)]])


def merged_moments(
    parts: Sequence[tuple[IntTable, int]], how: Mapping[str, How], most: int
) -> tuple[IntTable, int]:
    """Tables by entity and moment, merged, with their level: a moment is 2 ** level pieces of the run.

    Moments are merged in pairs until at most `most` rows remain.
    """
    level = max((level for _, level in parts), default=0)
    table = IntTable.merged([_coarser(part, level - of_part, how) for part, of_part in parts], how)
    while len(table) > most and BUCKETS >> level:
        table, level = _coarser(table, 1, how), level + 1
    return table, level


def _coarser(table: IntTable, by: int, how: Mapping[str, How]) -> IntTable:
    """The table, with 2 ** `by` moments merged into one."""
    if not by or not len(table):
        return table
    owner, moment = unpack(table.keys, MOMENTS)
    return group(pack((owner, moment >> by), MOMENTS), table.columns, how)


def _examined(ranks: int) -> Bools | None:
    """Mask of the ranks of a trace that are examined; None for all."""
    if ranks <= _MAX_PROCESSES:
        return None
    mixed = np.arange(ranks, dtype=np.uint64) * np.uint64(_MIX) % np.uint64(1 << 32)
    chosen: Bools = mixed < np.uint64((_MAX_PROCESSES << 32) // ranks)
    chosen[0] = True
    return chosen


class ActivityCollector:
    """Collects one partition."""

    def __init__(self, context: Context) -> None:
        workload, trace = context.workload, context.trace
        bases = (*workload.process_base, workload.processes)
        self._chosen = _examined(bases[trace + 1] - bases[trace])
        self._bucket = bucket_ns(workload.span_ns)
        self._parts: list[IntTable] = []
        self._level = 0

    def add(self, batch: Batch) -> None:
        """Add the batch's calls on data set files."""
        counted = batch.groups.included
        if self._chosen is not None:
            counted = counted & self._chosen[batch.groups.rank]
        if not counted.any():
            return
        cells = self._compiled(batch, counted)
        self._parts.append(self._by_numpy(batch, counted) if cells is None else cells)
        if len(self._parts) > 64:
            self._shrink()

    def _by_numpy(self, batch: Batch, counted: Bools) -> IntTable:
        """Cells of the counted groups."""
        rows = np.flatnonzero(counted[batch.groups.codes])
        kind, start, end = batch.kind[rows], batch.start[rows], batch.end[rows]
        moment = np.minimum(start // self._bucket, BUCKETS) >> self._level
        key = pack((batch.process[rows], moment), MOMENTS)
        # A process's calls are mostly in time order, so those of one cell are adjacent.
        first = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
        size = np.maximum(batch.bytes[rows], 0)
        opened = (batch.flags[rows] & (Flag.OPEN | Flag.DIRECTORY)) == Flag.OPEN

        def total(values: Numbers) -> Ints:
            return np.add.reduceat(values, first, dtype=np.int64)

        read, write = kind == Kind.READ, kind == Kind.WRITE
        columns = {
            "start": np.minimum.reduceat(start, first),
            "end": np.maximum.reduceat(end, first),
            "read": total(size * read),
            "written": total(size * write),
            "data": total(read | write),
            "opens": total(opened),
            "calls": np.diff(np.append(first, len(key))),
        }
        return group(key[first], columns, _HOW)

    def _compiled(self, batch: Batch, counted: Bools) -> IntTable | None:
        """The same from a kernel; None if numpy must do it."""
        groups = batch.groups
        what = np.where(counted, ActivityBit.COUNTED, 0)
        what |= ActivityBit.READS * (groups.kind == Kind.READ) + ActivityBit.WRITES * (groups.kind == Kind.WRITE)
        what |= ActivityBit.OPENS * ((groups.flags & (Flag.OPEN | Flag.DIRECTORY)) == Flag.OPEN)
        out = batch.call(
            *("activity", "bytes", "start", "duration"),
            process=groups.process,
            what=what,
            length=self._bucket,
            most=BUCKETS,
            level=self._level,
        )
        if out is None:
            return None
        process, moment, *sums = columns(out["cells"])
        names = (out["cells"].dtype.names or ())[2:]
        return group(pack((process, moment), MOMENTS), dict(zip(names, sums, strict=True)), _HOW)

    def _shrink(self) -> None:
        joined = Activity.combined([Activity(part, self._level) for part in self._parts])
        self._parts, self._level = [joined.cells], joined.level

    def result(self) -> Activity:
        self._shrink()
        return Activity(self._parts[0].packed(), self._level)
