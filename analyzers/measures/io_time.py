"""I/O time of processes: the length of the union of a process's call intervals (contract, "I/O time").

Nested calls and calls of several threads at one time never count twice. Per phase and file, per phase, and per
process; by kind and in all, each a union of its own. Where a call goes on while another thread is in the next phase
already, phases of a process overlap: by how much their sum is too long is kept by app. Unit: nanoseconds, summed over
processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.batch import Batch, cells_of
from vani.analyzers.facts import Facts
from vani.analyzers.intervals import Intervals, merge, total_length
from vani.analyzers.keyed import Dense, Keyed, group
from vani.analyzers.keys import ALL_KINDS, KINDS, LAYERS, beside, pack, unpack
from vani.analyzers.world import Context, World

__all__ = ["IoTime", "IoTimeResult", "SpentTime"]

_WIDTH = KINDS + 1
_KINDS, _LAYERS = beside(_WIDTH), beside(LAYERS)
"""Widths of keys of something and a kind (or all), of something and a layer."""
_PHASES = -1 - _WIDTH
"""From here on downwards groups of kept intervals are phases."""
_LOOK_BACK_NS = 10_000_000_000
"""No call is recorded later than this after calls that began after it (see the repair of time stamps)."""
_MOST_HELD = 1 << 20

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class IoTimeResult:
    """`cells` by listed cell and kind, `phases` by phase alike, `processes` by process; column `time`."""

    cells: Keyed
    phases: Keyed
    processes: Keyed
    layers: Keyed
    """By app and layer, of files of the data set; without the processes that run calls at the same time, for
    which `library_time` has it."""
    overlaps: Keyed
    """By app and kind: by how much the times in the app's phases add up to more than its own."""


@dataclass(frozen=True)
class SpentTime:
    """I/O time in ns; a column per kind and one for all together (`ALL_KINDS`) where the shape has KINDS + 1."""

    cell_phase: Ints
    """Shape (n,), as the next three: times in listed files by phase, file, and kind or `ALL_KINDS`."""
    cell_file: Ints
    cell_kind: Ints
    cell_time: Ints
    phases: Ints
    """Shape (phases + 1, KINDS + 1); the last row is that of excluded calls."""
    overlaps: Ints
    """Shape (apps, KINDS + 1): by how much the times in the app's phases add up to more than its own."""
    processes: Ints
    """Shape (processes,)."""
    layers: Ints
    """Shape (apps, LAYERS): in calls of the layer on files of the data set; without the processes that run calls at the
    same time."""


def _table(table: Keyed, rows: int, width: int) -> Ints:
    """The times under keys of row and column, shape (rows, width)."""
    found = np.zeros((rows, width), np.int64)
    found[unpack(table.keys, (rows, width))] = table["time"]
    return found


class IoTime:
    """See the module's docstring."""

    name = "io_time"
    result = SpentTime
    columns = frozenset({"rank", "kind", "layer", "file", "start_ns", "duration_ns"})

    def begin(self, context: Context, facts: Facts | None) -> _Collector:
        if facts is None:
            raise ValueError("I/O time needs phases")
        return _Collector(facts, context.app)

    def combine(self, parts: Sequence[IoTimeResult]) -> IoTimeResult:
        return IoTimeResult(
            Keyed.merged([p.cells for p in parts]),
            Keyed.merged([p.phases for p in parts]),
            Keyed.merged([p.processes for p in parts]),
            Keyed.merged([p.layers for p in parts]),
            Keyed.merged([p.overlaps for p in parts]),
        )

    def finish(self, combined: IoTimeResult, world: World, facts: Facts) -> SpentTime:
        phase, file, kind = cells_of(combined.cells.keys, world, facts, _WIDTH)
        return SpentTime(
            phase,
            file,
            kind,
            combined.cells["time"],
            _table(combined.phases, facts.phases + 1, _WIDTH),
            _table(combined.overlaps, len(world.apps), _WIDTH),
            combined.processes.at(np.arange(world.processes), "time"),
            _table(combined.layers, len(world.apps), LAYERS),
        )


@dataclass(frozen=True)
class _Last:
    """The last call of the batch before."""

    process: int = -1
    end: int = 0
    cell: int = -1
    phase: int = -1
    kind: int = -1
    layer: int = -1


def _numbered(phase: Ints) -> tuple[Ints, Ints]:
    dense = Dense.of(phase)
    return dense.codes, dense.keys


class _Collector:
    """Most processes run one call after the other: then a union is a sum, less what neighbours have in common.

    Those that the survey found to run calls at the same time keep their intervals until their last call.
    """

    def __init__(self, facts: Facts, app: int) -> None:
        self._app = app
        self._layers: list[Keyed] = []
        self._excluded = facts.phases
        self._threaded = facts.threaded
        self._cells: list[Keyed] = []
        self._phases: list[Keyed] = []
        self._processes: list[Keyed] = []
        self._overlaps: list[Keyed] = []
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
            int(batch.layer[last]),
        )
        if len(self._cells) > 64:
            self._cells, self._phases = [Keyed.merged(self._cells)], [Keyed.merged(self._phases)]
            self._processes, self._overlaps = [Keyed.merged(self._processes)], [Keyed.merged(self._overlaps)]
            self._layers = [Keyed.merged(self._layers)]

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
        apart = np.flatnonzero(both & ~same_phase & (common > 0))
        if len(apart):
            alike = apart[same_kind[apart]]
            key = pack((self._app, np.concatenate((kind[alike], np.full(len(apart), ALL_KINDS)))), _KINDS)
            self._overlaps.append(group(key, {"time": np.concatenate((common[alike], common[apart]))}))
        # A union is the sum less what neighbours of one group have in common; no call reaches beyond its neighbour.
        for store, numbers, keys, same in (
            (self._cells, codes, cell.keys, same_cell),
            (self._phases, *_numbered(phase), same_phase),
        ):
            dense = Dense(np.arange(_WIDTH * len(keys)), numbers * _WIDTH + kind)
            table = dense.sum(duration - np.where(same & same_kind, common, 0)).reshape(-1, _WIDTH)
            total = Dense(keys, numbers).sum(duration - np.where(same, common, 0))
            table[:, ALL_KINDS] = total
            every = pack((np.repeat(keys, _WIDTH), np.tile(np.arange(_WIDTH), len(keys))), _KINDS)
            store.append(Keyed(every, {"time": table.reshape(-1)}))
        included = phase != self._excluded
        if included.any():
            of_process = Dense.of(process[included])
            time = of_process.sum((duration - np.where(both, common, 0))[included])
            self._processes.append(Keyed(of_process.keys, {"time": time}))
            self._add_layers(batch, duration, common, both, included, goes_on, rows)

    def _add_layers(
        self,
        batch: Batch,
        duration: Ints,
        common: Ints,
        both: NDArray[np.bool_],
        included: NDArray[np.bool_],
        goes_on: bool,
        rows: Ints | None,
    ) -> None:
        """Time by layer of the calls in `rows`; other columns are of these rows already."""
        layer = batch.layer
        if (layer == layer[0]).all() and (not goes_on or int(layer[0]) == self._before.layer):
            # Of one layer, as mostly: neighbours are of the same one.
            alone = int((duration - np.where(both, common, 0))[included].sum())
            key = pack((self._app, layer[:1]), _LAYERS)
            self._layers.append(Keyed(key, {"time": np.array([alone])}))
            return
        same = np.append(goes_on and int(layer[0]) == self._before.layer, layer[1:] == layer[:-1])
        if rows is not None:
            layer, same = layer[rows], same[rows]
        dense = Dense.of(layer[included].astype(np.int64))
        time = dense.sum((duration - np.where(both & same, common, 0))[included])
        self._layers.append(Keyed(pack((self._app, dense.keys), _LAYERS), {"time": time}))

    def _hold(self, batch: Batch, process: int, rows: Ints) -> None:
        """Keep the intervals of a process whose calls overlap until all of them are known."""
        if process != self._held_process:
            self._release()
            self._held_process = process
        start, end, kind = batch.start[rows], batch.end[rows], batch.kind[rows].astype(np.int64)
        cell, phase = batch.listed_cell.keys[batch.listed_cell.codes[rows]], batch.phase[rows]
        # Negative groups are phases, those from 0 on are cells, and some more are the process by kind and in all.
        groups = [
            pack((cell, kind), _KINDS),
            pack((cell, ALL_KINDS), _KINDS),
            _PHASES - pack((phase, kind), _KINDS),
            _PHASES - pack((phase, ALL_KINDS), _KINDS),
        ]
        included = phase != self._excluded
        parts = [self._held, *(merge(g, start, end) for g in groups)]
        for own in (-1 - kind[included], np.full(int(included.sum()), -1 - ALL_KINDS)):
            parts.append(merge(own, start[included], end[included]))
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
        cells, phases = groups >= 0, groups <= _PHASES
        own = ~cells & ~phases
        self._cells.append(group(groups[cells], {"time": lengths[cells]}))
        by_phase = group(_PHASES - groups[phases], {"time": lengths[phases]})
        self._phases.append(by_phase)
        in_all = groups == -1 - ALL_KINDS
        if in_all.any():
            self._processes.append(Keyed(np.array([self._held_process]), {"time": lengths[in_all]}))
        phase, kind = unpack(by_phase.keys, _KINDS)
        mine = phase < self._excluded
        kinds = np.concatenate((kind[mine], -1 - groups[own]))
        more = np.concatenate((by_phase["time"][mine], -lengths[own]))
        self._overlaps.append(group(pack((self._app, kinds), _KINDS), {"time": more}))

    def result(self) -> IoTimeResult:
        self._release()
        return IoTimeResult(
            Keyed.merged(self._cells),
            Keyed.merged(self._phases),
            Keyed.merged(self._processes),
            Keyed.merged(self._layers),
            Keyed.merged(self._overlaps),
        )
