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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vani.analyzers import int_table
from vani.analyzers.batch import Batch, CallGroups, phases_and_files
from vani.analyzers.intervals import Intervals, merge, total_length
from vani.analyzers.passes import SumsCollector, SumsMeasure
from vani.analyzers.workload import Context, SurveyFindings, Workload
from vani.calls import Flag
from vani.columns import Bools, Ints, Numbers, distinct

_WIDTH = int_table.KINDS + 1
_KINDS, _LAYERS = int_table.key_widths(_WIDTH), int_table.key_widths(int_table.LAYERS)
"""Widths of keys of an entity and a kind (or all), and of an entity and a layer."""
_PHASES = -1 - _WIDTH
"""Groups of kept intervals at or below this number are phases."""
_CUTS = ("phase_file_and_kind", "phase_file", "phase_and_kind", "phase", "process", "layer")
"""Attributes that two consecutive calls may share."""
_SHARED = ("phase_file", "phase", "kind", "layer")
_LOOK_BACK_NS = 10_000_000_000
"""Maximum delay with which a call is recorded after calls that began later (see the repair of time stamps)."""
_MAX_HELD = 1 << 20



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


def _time_table(table: int_table.IntTable, rows: int, width: int) -> Ints:
    """Times under keys of row and column, shape (rows, width)."""
    times = np.zeros((rows, width), np.int64)
    times[int_table.unpack(table.keys, (rows, width))] = table["time"]
    return times


class IoTime(SumsMeasure):
    """Tables with the column `time`: `phase_files` by phase, listed file and kind, `phases` by phase and kind,
    `processes` by process, `layers` by app and layer, `overlaps` by app and kind; see `SpentTime`."""

    name = "io_time"
    result = SpentTime
    columns = frozenset({"rank", "kind", "layer", "file", "start_ns", "duration_ns"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _IoTimeCollector:
        if findings is None:
            raise ValueError("I/O time needs phases")
        return _IoTimeCollector(self, context, findings)

    def aggregate(self, combined: int_table.Sums, workload: Workload, findings: SurveyFindings) -> SpentTime:
        phase_files, apps = combined["phase_files"], len(workload.apps)
        phase, file, kind = phases_and_files(phase_files.keys, workload, findings, _WIDTH)
        return SpentTime(
            phase,
            file,
            kind,
            phase_files["time"],
            _time_table(combined["phases"], findings.phases + 1, _WIDTH),
            _time_table(combined["overlaps"], apps, _WIDTH),
            combined["processes"].at(np.arange(workload.processes), "time"),
            _time_table(combined["layers"], apps, int_table.LAYERS),
        )


def _common_time(
    codes: Numbers, start: Ints, end: Ints, groups: Mapping[str, Numbers], end_before: int
) -> tuple[Ints, Ints]:
    """Time that calls share with their predecessor in the same process: by group and `_CUTS`.

    Also the time shared by calls of different phases, including both: by their common kind, and finally for all kinds.

    Parameters
    ----------
    groups
        Attributes of groups, shape (groups + 1,) each; the last one is the call before the batch, which ends at
        `end_before`.
    """
    count = len(groups["process"]) - 1
    # With coarse clocks, many calls of a process touch or overlap like this; all others share no time.
    rows = np.flatnonzero(end[:-1] > start[1:]) + 1
    if end_before > start[0]:
        rows = np.append(0, rows)
    if not len(rows):
        return np.zeros((count, len(_CUTS)), np.int64), np.zeros(int_table.KINDS + 1, np.int64)
    now, before = codes[rows], np.where(rows > 0, codes[rows - 1], count)
    common = np.minimum(end[rows], np.where(rows > 0, end[rows - 1], end_before)) - start[rows]
    is_common = groups["counted"][now] & (groups["process"][now] == groups["process"][before]) & (common > 0)
    now, before, common = now[is_common], before[is_common], common[is_common]
    same = {name: groups[name][now] == groups[name][before] for name in _SHARED}
    both = groups["included"][now] & groups["included"][before]
    of = int_table.Factorized(np.arange(count), now)
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
    by_kind = int_table.Factorized(np.arange(int_table.KINDS), groups["kind"][now]).sum(common, apart & same["kind"])
    return np.stack(list(cuts), axis=1), np.append(by_kind, common[apart].sum())


class _IoTimeCollector(SumsCollector):
    """Adds up durations, minus overlaps of neighbours: most processes run one call after the other.

    Processes that the survey found to run calls concurrently keep their intervals until their last call.
    """

    def __init__(self, measure: IoTime, context: Context, findings: SurveyFindings) -> None:
        super().__init__(measure)
        self._app, self._excluded, self._threaded = context.app, findings.phases, findings.threaded
        self._before: Mapping[str, Any] = dict.fromkeys(("process", *_SHARED), -1) | {"included": False}
        """Attributes of the last call of the previous batch."""
        self._end_before = 0
        self._pending = Intervals()
        self._pending_process = -1

    def add(self, batch: Batch) -> None:
        if not len(batch):
            return
        groups = batch.groups
        process, alone = groups.process, np.ones(len(groups), np.bool_)
        if len(self._threaded):
            alone = np.isin(process, self._threaded, invert=True)
        attributes = {name: getattr(groups, name) for name in ("process", "phase", "kind", "layer", "included")}
        attributes["phase_file"] = groups.listed_phase_file_key
        with_last = {name: np.append(column, self._before[name]) for name, column in attributes.items()}
        # Calls of other processes share no time with their predecessor.
        with_last["counted"] = np.append(alone, False)
        cuts, apart = _common_time(groups.codes, batch.start, batch.end, with_last, self._end_before)
        self._add_sums(groups, alone, groups.time[:, None] - cuts)
        key = int_table.pack((self._app, np.arange(_WIDTH)), _KINDS)
        self.sums.add("overlaps", key[apart > 0], {"time": apart[apart > 0]})
        if not alone.all():
            for threaded in distinct(process[~alone]).tolist():
                self._hold(batch, threaded, np.flatnonzero(batch.process == threaded))
        last = int(groups.codes[-1])
        if self._pending_process != int(process[last]):
            self._release()
        self._before = {name: column[last] for name, column in attributes.items()}
        self._end_before = int(batch.end[-1])

    def _add_sums(self, groups: CallGroups, alone: Bools, times: Ints) -> None:
        """A union is the sum minus the overlaps of neighbours in one group; no call extends past its successor.

        `times` is by group and `_CUTS`.
        """
        of = {name: times[:, i] for i, name in enumerate(_CUTS)}
        for keys, name in ((groups.listed_phase_file_key, "phase_file"), (groups.phase, "phase")):
            for kind, column in ((groups.kind[alone], f"{name}_and_kind"), (int_table.ALL_KINDS, name)):
                self.sums.add(f"{name}s", int_table.pack((keys[alone], kind), _KINDS), {"time": of[column][alone]})
        counted = alone & groups.included
        self.sums.add("processes", groups.process[counted], {"time": of["process"][counted]})
        self.sums.add("layers", int_table.pack((self._app, groups.layer[counted]), _LAYERS),
            {"time": of["layer"][counted]})

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
            int_table.pack((phase_file, kind), _KINDS),
            int_table.pack((phase_file, int_table.ALL_KINDS), _KINDS),
            _PHASES - int_table.pack((phase, kind), _KINDS),
            _PHASES - int_table.pack((phase, int_table.ALL_KINDS), _KINDS),
        ]
        included = phase != self._excluded
        parts = [self._pending, *(merge(g, start, end) for g in groups)]
        for own in (-1 - kind[included], np.full(int(included.sum()), -1 - int_table.ALL_KINDS)):
            parts.append(merge(own, start[included], end[included]))
        self._pending = Intervals.joined(parts)
        if len(self._pending) > _MAX_HELD:
            old = self._pending.end < int(start.max()) - _LOOK_BACK_NS
            if old.any():
                self._book(self._pending.where(old))
                self._pending = self._pending.where(~old)

    def _release(self) -> None:
        if self._pending_process >= 0:
            self._book(self._pending)
            self._pending, self._pending_process = Intervals(), -1

    def _book(self, intervals: Intervals) -> None:
        groups, lengths = total_length(intervals)
        phase_files, phases = groups >= 0, groups <= _PHASES
        own = ~phase_files & ~phases
        self.sums.add("phase_files", groups[phase_files], {"time": lengths[phase_files]})
        by_phase = int_table.group(_PHASES - groups[phases], {"time": lengths[phases]})
        self.sums.add("phases", by_phase.keys, by_phase.columns)
        in_all = groups == -1 - int_table.ALL_KINDS
        if in_all.any():
            self.sums.add("processes", np.array([self._pending_process]), {"time": lengths[in_all]})
        phase, kind = int_table.unpack(by_phase.keys, _KINDS)
        is_phase = phase < self._excluded
        kinds = np.concatenate((kind[is_phase], -1 - groups[own]))
        more = np.concatenate((by_phase["time"][is_phase], -lengths[own]))
        self.sums.add("overlaps", int_table.pack((self._app, kinds), _KINDS), {"time": more})

    def result(self) -> int_table.Sums:
        self._release()
        return super().result()


_FIRST = 256
_CALLS = int_table.key_widths(_FIRST)
"""Widths of keys of trace and call."""


@dataclass(frozen=True, eq=False)
class ClockSkew:
    """Lower bound of the disagreement of the ranks' clocks."""

    traces: Sequence[int | None]
    """Bound for each trace in ns; None if no call shows it."""

    @property
    def most(self) -> int:
        return max((skew or 0 for skew in self.traces), default=0)


class Clocks(SumsMeasure):
    """Table `barriers` by trace and number of the call: latest_start, earliest_end, ranks."""

    name = "clocks"
    result = ClockSkew
    columns = frozenset({"rank", "start_ns", "duration_ns"})
    minima, maxima = ("earliest_end",), ("latest_start",)

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _ClocksCollector:
        return _ClocksCollector(self)

    def aggregate(self, combined: int_table.Sums, workload: Workload, findings: SurveyFindings) -> ClockSkew:
        barriers = combined["barriers"]
        trace, _ = int_table.unpack(barriers.keys, (len(workload.process_base), _FIRST))
        ranks = np.diff([*workload.process_base, workload.processes]).tolist()
        return ClockSkew([_skew_ns(barriers.where(trace == number), own) for number, own in enumerate(ranks)])


class _ClocksCollector(SumsCollector):
    def __init__(self, measure: Clocks) -> None:
        super().__init__(measure)
        self._rank, self._seen = -1, 0

    def add(self, batch: Batch) -> None:
        rows = batch.flagged(Flag.WORLD)
        if not len(rows):
            return
        rank, start = batch.all_calls("rank")[rows], batch.all_calls("start_ns")[rows]
        opens = np.append(True, rank[1:] != rank[:-1])
        number = np.arange(len(rows)) - np.maximum.accumulate(np.where(opens, np.arange(len(rows)), 0))
        number[rank == self._rank] += self._seen
        self._rank, self._seen = int(rank[-1]), int(number[-1]) + 1
        columns = {
            "latest_start": start,
            "earliest_end": start + batch.all_calls("duration_ns")[rows],
            "ranks": np.ones(len(rows), np.int64),
        }
        early = number < _FIRST
        keys = int_table.pack((batch.context.trace, number[early]), _CALLS)
        self.sums.add("barriers", keys, {name: column[early] for name, column in columns.items()})


def _skew_ns(barriers: int_table.IntTable, ranks: int) -> int | None:
    """Lower bound of the disagreement of a trace's clocks; None if no call shows it."""
    whole = barriers["ranks"] == ranks
    if not whole.any() or ranks < 2:
        return None
    return max(0, int((barriers["latest_start"] - barriers["earliest_end"])[whole].max()))
