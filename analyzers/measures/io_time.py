"""I/O time of processes: the length of the union of a process's call intervals (contract, "I/O time").

Nested calls and calls of several threads at one time never count twice. Per phase and file, per phase, and per
process; by kind and in all, each a union of its own. Unit: nanoseconds, summed over processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.base import Batch, Context, Facts
from vani.analyzers.intervals import Intervals, merge, total_length
from vani.analyzers.keyed import Dense, Keyed, group

__all__ = ["IoTime", "IoTimeResult"]

_ALL = 3
"""Stands for all kinds together beside read 0, write 1 and metadata 2."""
_LOOK_BACK_NS = 10_000_000_000
"""No call is recorded later than this after calls that began after it (see the repair of time stamps)."""
_MOST_HELD = 1 << 20

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class IoTimeResult:
    """`cells` by cell * 4 + kind, `phases` by phase * 4 + kind, `processes` by process; column `time`."""

    cells: Keyed
    phases: Keyed
    processes: Keyed


class IoTime:
    """See the module's docstring."""

    name = "io_time"
    columns = frozenset({"rank", "kind", "file", "start_ns", "duration_ns"})

    def begin(self, context: Context, facts: Facts | None) -> _Collector:
        del context
        if facts is None:
            raise ValueError("I/O time needs phases")
        return _Collector(facts)

    def combine(self, parts: Sequence[IoTimeResult]) -> IoTimeResult:
        return IoTimeResult(
            Keyed.merged([p.cells for p in parts]),
            Keyed.merged([p.phases for p in parts]),
            Keyed.merged([p.processes for p in parts]),
        )


class _Collector:
    """Most processes run one call after the other: then a union is a sum. Others keep their intervals."""

    def __init__(self, facts: Facts) -> None:
        self._excluded = facts.phases
        self._cells: list[Keyed] = []
        self._phases: list[Keyed] = []
        self._processes: list[Keyed] = []
        self._last_process = -1
        self._last_end = 0
        self._held = Intervals()
        self._held_process = -1

    def add(self, batch: Batch) -> None:
        if not len(batch):
            return
        process, start, end = batch.process, batch.start, batch.end
        starts = np.append(True, process[1:] != process[:-1])
        before = np.empty(len(start), np.int64)
        before[1:] = end[:-1]
        before[0] = self._last_end if process[0] == self._last_process else start[0]
        overlaps = (start < before) & ~starts
        if process[0] == self._last_process and start[0] < self._last_end:
            overlaps[0] = True
        busy = np.unique(process[overlaps])
        if self._held_process >= 0 and (process == self._held_process).any():
            busy = np.union1d(busy, [self._held_process])
        elif self._held_process >= 0:
            self._release()
        if not len(busy):
            self._add_sums(batch, None)
        else:
            threaded = np.isin(process, busy)
            if not threaded.all():
                self._add_sums(batch, np.flatnonzero(~threaded))
            for one in busy.tolist():
                self._hold(batch, one, np.flatnonzero(process == one))
        same = int(process[-1]) == self._last_process
        tail = end[process == process[-1]].max()
        self._last_end = max(self._last_end, int(tail)) if same else int(tail)
        self._last_process = int(process[-1])
        if len(self._cells) > 64:
            self._cells, self._phases = [Keyed.merged(self._cells)], [Keyed.merged(self._phases)]
            self._processes = [Keyed.merged(self._processes)]

    def _add_sums(self, batch: Batch, rows: Ints | None) -> None:
        duration, kind, phase, process = batch.duration, batch.kind.astype(np.int64), batch.phase, batch.process
        cell = batch.cell
        if rows is None:
            codes = cell.codes
        else:
            duration, kind, phase, process, codes = duration[rows], kind[rows], phase[rows], process[rows], cell.codes[rows]
        by_kind = Dense(np.arange(4 * len(cell.keys)), codes * 4 + kind).sum(duration)
        by_kind = by_kind.reshape(-1, 4)
        by_kind[:, _ALL] = by_kind[:, :_ALL].sum(axis=1)
        keys = (cell.keys[:, None] * 4 + np.arange(4)).reshape(-1)
        self._cells.append(Keyed(keys, {"time": by_kind.reshape(-1)}))
        of_phase = Dense.of(phase)
        table = Dense(np.arange(4 * len(of_phase.keys)), of_phase.codes * 4 + kind).sum(duration).reshape(-1, 4)
        table[:, _ALL] = table[:, :_ALL].sum(axis=1)
        keys = (of_phase.keys[:, None] * 4 + np.arange(4)).reshape(-1)
        self._phases.append(Keyed(keys, {"time": table.reshape(-1)}))
        included = phase != self._excluded
        if included.any():
            of_process = Dense.of(process[included])
            self._processes.append(Keyed(of_process.keys, {"time": of_process.sum(duration[included])}))

    def _hold(self, batch: Batch, process: int, rows: Ints) -> None:
        """Keep the intervals of a process whose calls overlap until all of them are known."""
        if process != self._held_process:
            self._release()
            self._held_process = process
        start, end, kind = batch.start[rows], batch.end[rows], batch.kind[rows].astype(np.int64)
        cell, phase = batch.cell.keys[batch.cell.codes[rows]], batch.phase[rows]
        # Negative groups are phases, those from 0 on are cells, and one more is the process.
        groups = [cell * 4 + kind, cell * 4 + _ALL, -2 - (phase * 4 + kind), -2 - (phase * 4 + _ALL)]
        included = phase != self._excluded
        parts = [self._held, *(merge(g, start, end) for g in groups)]
        parts.append(merge(np.full(int(included.sum()), -1, np.int64), start[included], end[included]))
        self._held = Intervals.joined(parts)
        if len(self._held) > _MOST_HELD:
            old = self._held.end < int(start.max()) - _LOOK_BACK_NS
            if old.any():
                self._book(Intervals(self._held.group[old], self._held.start[old], self._held.end[old]))
                self._held = Intervals(self._held.group[~old], self._held.start[~old], self._held.end[~old])

    def _release(self) -> None:
        if self._held_process >= 0:
            self._book(self._held)
            self._held, self._held_process = Intervals(), -1

    def _book(self, intervals: Intervals) -> None:
        groups, lengths = total_length(intervals)
        cells, phases, own = groups >= 0, groups <= -2, groups == -1
        self._cells.append(group(groups[cells], {"time": lengths[cells]}))
        self._phases.append(group(-2 - groups[phases], {"time": lengths[phases]}))
        if own.any():
            self._processes.append(Keyed(np.array([self._held_process]), {"time": lengths[own]}))

    def result(self) -> IoTimeResult:
        self._release()
        return IoTimeResult(Keyed.merged(self._cells), Keyed.merged(self._phases), Keyed.merged(self._processes))
