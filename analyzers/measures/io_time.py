"""I/O time of processes, and the disagreement of their clocks.

**I/O time** is the length of the union of a process's call intervals (contract, "I/O time").
Nested calls and simultaneous calls of several threads are never counted twice. Per phase and file, per phase, and per
process; by kind and in total, each as a separate union. If a call continues while another thread is already in the
next phase, a process's phases overlap: the excess of their sum is kept by app. Unit: nanoseconds, summed over
processes.

**Disagreement of the ranks' clocks** is proven by calls that wait for every rank. No rank leaves an MPI_Barrier on
MPI_COMM_WORLD before the last one has entered it. If it does so on its own clock, the clocks disagree by at least the
difference. The first 256 such calls of every rank are compared. Unit: nanoseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch
from vani.analyzers.calls.call_columns import phases_and_files
from vani.analyzers.calls.call_groups import CallGroups
from vani.analyzers.int_table import (
    ALL_KINDS,
    KINDS,
    LAYERS,
    Factorized,
    How,
    IntTable,
    IntTableBuilder,
    beside,
    group,
    pack,
    unpack,
)
from vani.analyzers.intervals import Intervals, merge, total_length
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context, Workload
from vani.calls import Flag
from vani.distinct import distinct

Ints = NDArray[np.int64]

_WIDTH = KINDS + 1
_KINDS, _LAYERS = beside(_WIDTH), beside(LAYERS)
"""Widths of keys of an entity and a kind (or all), and of an entity and a layer."""
_PHASES = -1 - _WIDTH
"""Groups of kept intervals at or below this number are phases."""
_CUTS = ("phase_file_and_kind", "phase_file", "phase_and_kind", "phase", "process", "layer")
"""Attributes that two consecutive calls may share."""
_SHARED = ("phase_file", "phase", "kind", "layer")
_LOOK_BACK_NS = 10_000_000_000
"""Maximum delay with which a call is recorded after calls that began later (see the repair of time stamps)."""
_MOST_HELD = 1 << 20



@dataclass(frozen=True, eq=False)
class IoTimeResult:
    """`phase_files` by phase, listed file and kind, `phases` by phase and kind, `processes` by process: `time`."""

    phase_files: IntTable
    phases: IntTable
    processes: IntTable
    layers: IntTable
    """Time by app and layer, of data set files; without processes that run calls concurrently, which are in
    `library_time`."""
    overlaps: IntTable
    """By app and kind: excess of the sum of the app's phases over its own time."""


@dataclass(frozen=True, eq=False)
class SpentTime:
    """I/O time in ns; a column per kind, and one for the total (`ALL_KINDS`) if the shape has KINDS + 1."""

    cell_phase: Ints
    """Shape (n,), like the next three: times in listed files by phase, file, and kind or `ALL_KINDS`."""
    cell_file: Ints
    phase_file_kind: Ints
    cell_time: Ints
    phases: Ints
    """Shape (phases + 1, KINDS + 1); the last row is for excluded calls."""
    overlaps: Ints
    """Shape (apps, KINDS + 1): excess of the sum of the app's phases over its own time."""
    processes: Ints
    """Shape (processes,)."""
    layers: Ints
    """Shape (apps, LAYERS): in a layer's calls on data set files; without processes that run calls
    concurrently."""


def _time_table(table: IntTable, rows: int, width: int) -> Ints:
    """Times under keys of row and column, shape (rows, width)."""
    times = np.zeros((rows, width), np.int64)
    times[unpack(table.keys, (rows, width))] = table["time"]
    return times


class IoTime:
    """See the module's docstring."""

    name = "io_time"
    result = SpentTime
    columns = frozenset({"rank", "kind", "layer", "file", "start_ns", "duration_ns"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _IoTimeCollector:
        if findings is None:
            raise ValueError("I/O time needs phases")
        return _IoTimeCollector(findings, context.app)

    def combine(self, parts: Sequence[IoTimeResult]) -> IoTimeResult:
        return IoTimeResult(
            IntTable.merged([p.phase_files for p in parts]),
            IntTable.merged([p.phases for p in parts]),
            IntTable.merged([p.processes for p in parts]),
            IntTable.merged([p.layers for p in parts]),
            IntTable.merged([p.overlaps for p in parts]),
        )

    def aggregate(self, combined: IoTimeResult, workload: Workload, findings: SurveyFindings) -> SpentTime:
        phase, file, kind = phases_and_files(combined.phase_files.keys, workload, findings, _WIDTH)
        return SpentTime(
            phase,
            file,
            kind,
            combined.phase_files["time"],
            _time_table(combined.phases, findings.phases + 1, _WIDTH),
            _time_table(combined.overlaps, len(workload.apps), _WIDTH),
            combined.processes.at(np.arange(workload.processes), "time"),
            _time_table(combined.layers, len(workload.apps), LAYERS),
        )


@dataclass(frozen=True, eq=False)
class _Last:
    """The last call of the previous batch."""

    process: int = -1
    end: int = 0
    phase_file: int = -1
    phase: int = -1
    kind: int = -1
    layer: int = -1
    included: bool = False


@dataclass(frozen=True, eq=False)
class _WithLast:
    """Attributes of groups of calls, shape (groups + 1,) each; the last one is the call before the batch."""

    process: Ints
    phase_file: Ints
    phase: Ints
    kind: NDArray[Any]
    layer: NDArray[Any]
    counted: NDArray[np.bool_]
    """Calls of other processes share no time with their predecessor."""
    included: NDArray[np.bool_]


def _common_time(
    codes: NDArray[Any], start: Ints, end: Ints, groups: _WithLast, end_before: int
) -> tuple[Ints, Ints]:
    """Time that calls share with their predecessor in the same process: by group and `_CUTS`.

    Also the time shared by calls of different phases, including both: by their common kind, and finally for all kinds.
    """
    # With coarse clocks, many calls of a process touch or overlap like this; all others share no time.
    rows = np.flatnonzero(end[:-1] > start[1:]) + 1
    if end_before > start[0]:
        rows = np.append(0, rows)
    if not len(rows):
        return np.zeros((len(groups.process) - 1, len(_CUTS)), np.int64), np.zeros(KINDS + 1, np.int64)
    now, before = codes[rows], np.where(rows > 0, codes[rows - 1], len(groups.process) - 1)
    common = np.minimum(end[rows], np.where(rows > 0, end[rows - 1], end_before)) - start[rows]
    is_common = groups.counted[now] & (groups.process[now] == groups.process[before]) & (common > 0)
    now, before, common = now[is_common], before[is_common], common[is_common]
    same = {name: getattr(groups, name)[now] == getattr(groups, name)[before] for name in _SHARED}
    both = groups.included[now] & groups.included[before]
    of = Factorized(np.arange(len(groups.process) - 1), now)
    cuts = (
        of.sum(common, some)
        for some in (
            same["phase_file"] & same["kind"],
            same["phase_file"],
            same["phase"] & same["kind"],
            same["phase"],
            both,
            both & same["layer"],
        )
    )
    apart = both & ~same["phase"]
    by_kind = Factorized(np.arange(KINDS), groups.kind[now]).sum(common, apart & same["kind"])
    return np.stack(list(cuts), axis=1), np.append(by_kind, common[apart].sum())


class _IoTimeCollector:
    """Adds up durations, minus overlaps of neighbours: most processes run one call after the other.

    Processes that the survey found to run calls concurrently keep their intervals until their last call.
    """

    def __init__(self, findings: SurveyFindings, app: int) -> None:
        self._app = app
        self._excluded = findings.phases
        self._threaded = findings.threaded
        self._phase_files, self._phases = IntTableBuilder(), IntTableBuilder()
        self._processes, self._layers, self._overlaps = IntTableBuilder(), IntTableBuilder(), IntTableBuilder()
        self._before = _Last()
        self._pending = Intervals()
        self._pending_process = -1

    def add(self, batch: Batch) -> None:
        if not len(batch):
            return
        groups, before = batch.groups, self._before
        process, phase_file, phase = groups.process, groups.listed_phase_file_key, groups.phase
        kind, layer, included = groups.kind, groups.layer, groups.included
        alone = np.ones(len(process), np.bool_)
        if len(self._threaded):
            alone = np.isin(process, self._threaded, invert=True)
        with_last = _WithLast(
            np.append(process, before.process),
            np.append(phase_file, before.phase_file),
            np.append(phase, before.phase),
            np.append(kind, before.kind),
            np.append(layer, before.layer),
            np.append(alone, False),
            np.append(included, before.included),
        )
        cuts, apart = _common_time(groups.codes, batch.start, batch.end, with_last, before.end)
        self._add_sums(groups, alone, groups.time[:, None] - cuts)
        if apart.any():
            key = pack((self._app, np.arange(_WIDTH)), _KINDS)
            self._overlaps.add(key[apart > 0], {"time": apart[apart > 0]})
        if not alone.all():
            for threaded in distinct(process[~alone]).tolist():
                self._hold(batch, threaded, np.flatnonzero(batch.process == threaded))
        last = int(groups.codes[-1])
        if self._pending_process != int(process[last]):
            self._release()
        self._before = _Last(
            int(process[last]),
            int(batch.end[-1]),
            int(phase_file[last]),
            int(phase[last]),
            int(kind[last]),
            int(layer[last]),
            bool(included[last]),
        )

    def _add_sums(self, groups: CallGroups, alone: NDArray[np.bool_], times: Ints) -> None:
        """A union is the sum minus the overlaps of neighbours in one group; no call extends past its successor.

        `times` is by group and `_CUTS`.
        """
        of = {name: times[:, i] for i, name in enumerate(_CUTS)}
        for builder, keys, name in (
            (self._phase_files, groups.listed_phase_file_key, "phase_file"),
            (self._phases, groups.phase, "phase"),
        ):
            for kind, column in ((groups.kind, f"{name}_and_kind"), (np.full(len(keys), ALL_KINDS), name)):
                builder.add(pack((keys[alone], kind[alone]), _KINDS), {"time": of[column][alone]})
        counted = alone & groups.included
        self._processes.add(groups.process[counted], {"time": of["process"][counted]})
        self._layers.add(pack((self._app, groups.layer[counted]), _LAYERS), {"time": of["layer"][counted]})

    def _hold(self, batch: Batch, process: int, rows: Ints) -> None:
        """Keep the intervals of a process with overlapping calls until all of them are known."""
        if process != self._pending_process:
            self._release()
            self._pending_process = process
        start, end, kind = batch.start[rows], batch.end[rows], batch.kind[rows].astype(np.int64)
        code = batch.groups.codes[rows]
        phase_file, phase = batch.groups.listed_phase_file_key[code], batch.groups.phase[code]
        # Negative groups are phases, those from 0 are pairs of phase and file, and the last ones are the process.
        groups = [
            pack((phase_file, kind), _KINDS),
            pack((phase_file, ALL_KINDS), _KINDS),
            _PHASES - pack((phase, kind), _KINDS),
            _PHASES - pack((phase, ALL_KINDS), _KINDS),
        ]
        included = phase != self._excluded
        parts = [self._pending, *(merge(g, start, end) for g in groups)]
        for own in (-1 - kind[included], np.full(int(included.sum()), -1 - ALL_KINDS)):
            parts.append(merge(own, start[included], end[included]))
        self._pending = Intervals.joined(parts)
        if len(self._pending) > _MOST_HELD:
            old = self._pending.end < int(start.max()) - _LOOK_BACK_NS
            if old.any():
                self._book(Intervals(self._pending.group[old], self._pending.start[old], self._pending.end[old]))
                self._pending = Intervals(self._pending.group[~old], self._pending.start[~old], self._pending.end[~old])

    def _release(self) -> None:
        if self._pending_process >= 0:
            self._book(self._pending)
            self._pending, self._pending_process = Intervals(), -1

    def _book(self, intervals: Intervals) -> None:
        groups, lengths = total_length(intervals)
        phase_files, phases = groups >= 0, groups <= _PHASES
        own = ~phase_files & ~phases
        self._phase_files.add(groups[phase_files], {"time": lengths[phase_files]})
        by_phase = group(_PHASES - groups[phases], {"time": lengths[phases]})
        self._phases.add(by_phase.keys, by_phase.columns)
        in_all = groups == -1 - ALL_KINDS
        if in_all.any():
            self._processes.add(np.array([self._pending_process]), {"time": lengths[in_all]})
        phase, kind = unpack(by_phase.keys, _KINDS)
        is_phase = phase < self._excluded
        kinds = np.concatenate((kind[is_phase], -1 - groups[own]))
        more = np.concatenate((by_phase["time"][is_phase], -lengths[own]))
        self._overlaps.add(pack((self._app, kinds), _KINDS), {"time": more})

    def result(self) -> IoTimeResult:
        self._release()
        return IoTimeResult(
            self._phase_files.table(),
            self._phases.table(),
            self._processes.table(),
            self._layers.table(),
            self._overlaps.table(),
        )


_FIRST = 256
_CALLS = beside(_FIRST)
"""Widths of keys of trace and call."""
_BARRIERS: dict[str, How] = {"latest_start": "max", "earliest_end": "min"}


@dataclass(frozen=True, eq=False)
class ClockSkew:
    """Lower bound of the disagreement of the ranks' clocks."""

    traces: Sequence[int | None]
    """Bound for each trace in ns; None if no call shows it."""

    @property
    def most(self) -> int:
        return max((skew or 0 for skew in self.traces), default=0)


class Clocks:
    """Columns by trace and number of the call: latest_start, earliest_end, ranks."""

    name = "clocks"
    result = ClockSkew
    columns = frozenset({"rank", "start_ns", "duration_ns"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _ClocksCollector:
        del findings
        return _ClocksCollector(context.trace)

    def combine(self, parts: Sequence[IntTable]) -> IntTable:
        return IntTable.merged(parts, _BARRIERS)

    def aggregate(self, combined: IntTable, workload: Workload, findings: SurveyFindings) -> ClockSkew:
        del findings
        trace, _ = unpack(combined.keys, (len(workload.process_base), _FIRST))
        ranks = np.diff([*workload.process_base, workload.processes]).tolist()
        return ClockSkew([_skew_ns(combined.where(trace == number), own) for number, own in enumerate(ranks)])


class _ClocksCollector:
    def __init__(self, trace: int) -> None:
        self._trace = trace
        self._parts: list[IntTable] = []
        self._rank, self._seen = -1, 0

    def add(self, batch: Batch) -> None:
        rows = batch.flagged(Flag.WORLD)
        if not len(rows):
            return
        rank = batch.all_calls("rank")[rows]
        start = batch.all_calls("start_ns")[rows]
        end = start + batch.all_calls("duration_ns")[rows]
        opens = np.append(True, rank[1:] != rank[:-1])
        first = np.maximum.accumulate(np.where(opens, np.arange(len(rows)), 0))
        number = np.arange(len(rows)) - first
        number[rank == self._rank] += self._seen
        self._seen = int(number[-1]) + 1
        self._rank = int(rank[-1])
        early = number < _FIRST
        if early.any():
            self._parts.append(
                group(
                    pack((self._trace, number[early]), _CALLS),
                    {
                        "latest_start": start[early],
                        "earliest_end": end[early],
                        "ranks": np.ones(int(early.sum()), np.int64),
                    },
                    _BARRIERS,
                )
            )

    def result(self) -> IntTable:
        return IntTable.merged(self._parts, _BARRIERS)


def _skew_ns(barriers: IntTable, ranks: int) -> int | None:
    """Lower bound of the disagreement of a trace's clocks; None if no call shows it."""
    whole = barriers["ranks"] == ranks
    if not whole.any() or ranks < 2:
        return None
    return max(0, int((barriers["latest_start"] - barriers["earliest_end"])[whole].max()))
