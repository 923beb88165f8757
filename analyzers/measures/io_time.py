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
    """`cells` by listed cell * 4 + kind, `phases` by phase * 4 + kind, `processes` by process; column `time`."""

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


@dataclass(frozen=True)
class _Last:
    """The last call of the batch before."""

    process: int = -1
    end: int = 0
    cell: int = -1
    phase: int = -1
    kind: int = -1


def _numbered(phase: Ints) -> tuple[Ints, Ints]:
    dense = Dense.of(phase)
    return dense.codes, dense.keys


class _Collector:
    """Most processes run one call after the other: then a union is a sum, less what neighbours have in common.

    Those that the survey found to run calls at the same time keep their intervals until their last call.
    """

    def __init__(self, facts: Facts) -> None:
        self._excluded = facts.phases
        self._threaded = facts.threaded
        self._cells: list[Keyed] = []
        self._phases: list[Keyed] = []
        self._processes: list[Keyed] = []
        self._before = _Last()
        self._held = Intervals()
        self._held_process = -1

    def add(self, batch: Batch) -> None:
        if not len(batch):
            return
        process, start, end = batch.process, batch.start, batch.end
        first = np.append(True, process[1:] != process[:-1])
        goes_on = int(process[0]) == self._before.process
        previous = np.empty(len(start), np.int64)
        previous[1:], previous[0] = end[:-1], self._before.end if goes_on else start[0]
        # What two calls in a row have in common; clocks of ticks make most calls of a process touch or overlap so.
        common = np.where(first, 0, np.minimum(end, previous) - start)
        if goes_on:
            common[0] = min(int(end[0]), self._before.end) - int(start[0])
        common = np.maximum(common, 0)
        held = np.isin(process, self._threaded) if len(self._threaded) else None
        if held is None or not held.any():
            self._add_sums(batch, common, goes_on)
        else:
            alone = np.flatnonzero(~held)
            if len(alone):
                self._add_sums(batch, common, goes_on, alone)
            for one in np.unique(process[held]).tolist():
                self._hold(batch, one, np.flatnonzero(process == one))
        if self._held_process != int(process[-1]):
            self._release()
        last = len(start) - 1
        self._before = _Last(
            int(process[-1]),
            int(end[-1]),
            int(batch.listed_cell.keys[batch.listed_cell.codes[last]]),
            int(batch.phase[last]),
            int(batch.kind[last]),
        )
        if len(self._cells) > 64:
            self._cells, self._phases = [Keyed.merged(self._cells)], [Keyed.merged(self._phases)]
            self._processes = [Keyed.merged(self._processes)]

    def _add_sums(self, batch: Batch, common: Ints, goes_on: bool, rows: Ints | None = None) -> None:
        duration, kind, phase, process = (
            batch.duration,
            batch.kind.astype(np.int64),
            batch.phase,
            batch.process,
        )
        cell = batch.listed_cell
        codes = cell.codes
        before = self._before
        kept = [np.empty(len(codes), np.bool_) for _ in range(4)]
        same_cell, same_phase, same_kind, both = kept
        same_cell[1:], same_phase[1:] = codes[1:] == codes[:-1], phase[1:] == phase[:-1]
        same_kind[1:] = kind[1:] == kind[:-1]
        both[1:] = (phase[1:] != self._excluded) & (phase[:-1] != self._excluded)
        same_cell[0] = goes_on and int(cell.keys[codes[0]]) == before.cell
        same_phase[0] = goes_on and int(phase[0]) == before.phase
        same_kind[0] = goes_on and int(kind[0]) == before.kind
        both[0] = goes_on and phase[0] != self._excluded and before.phase != self._excluded
        if rows is not None:
            duration, kind, phase, process, codes = (
                duration[rows],
                kind[rows],
                phase[rows],
                process[rows],
                codes[rows],
            )
            common = common[rows]
            same_cell, same_phase, same_kind, both = (k[rows] for k in kept)
        # A union is the sum less what neighbours of one group have in common; no call reaches beyond its neighbour.
        for store, numbers, keys, same in (
            (self._cells, codes, cell.keys, same_cell),
            (self._phases, *_numbered(phase), same_phase),
        ):
            dense = Dense(np.arange(4 * len(keys)), numbers * 4 + kind)
            table = dense.sum(duration - np.where(same & same_kind, common, 0)).reshape(-1, 4)
            total = Dense(keys, numbers).sum(duration - np.where(same, common, 0))
            table[:, _ALL] = total
            store.append(Keyed((keys[:, None] * 4 + np.arange(4)).reshape(-1), {"time": table.reshape(-1)}))
        included = phase != self._excluded
        if included.any():
            of_process = Dense.of(process[included])
            time = of_process.sum((duration - np.where(both, common, 0))[included])
            self._processes.append(Keyed(of_process.keys, {"time": time}))

    def _hold(self, batch: Batch, process: int, rows: Ints) -> None:
        """Keep the intervals of a process whose calls overlap until all of them are known."""
        if process != self._held_process:
            self._release()
            self._held_process = process
        start, end, kind = batch.start[rows], batch.end[rows], batch.kind[rows].astype(np.int64)
        cell, phase = batch.listed_cell.keys[batch.listed_cell.codes[rows]], batch.phase[rows]
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
        return IoTimeResult(
            Keyed.merged(self._cells), Keyed.merged(self._phases), Keyed.merged(self._processes)
        )
