"""Facts about a measured workload that several entities need, computed once.

Similar phases are merged: a run that writes 355 states gets one row for 355 phases, not 355 rows.
A phase is similar to the first phase of a row if both belong to one app, and

- bytes read and bytes written each differ by at most a third of the larger of the two phases' totals;
- reads, writes, metadata operations and flushes each differ by at most a third of the larger number of calls;
- one has at most twice as many processes as the other.

Their position does not matter: alternating checkpoints and plots become two rows. Times do not matter either: calls
with the same bytes vary in speed, and the rows of two runs of a program should be the same. The period of
a row is the median distance between its phases' starts, if three in four distances differ from it by
at most a quarter; otherwise the row has no period.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vani.analyzers.entities.flows import Links
from vani.analyzers.entities.io_stats import empty_stats, stats_by
from vani.analyzers.int_table import ByGroup, group, unpack
from vani.analyzers.measurements import Measurements, Phases
from vani.analyzers.measures.accesses import LIBRARIES, AccessTable, Requests
from vani.analyzers.measures.busy_time import BusyTimes
from vani.analyzers.measures.extents import ExchangeCounts, ProcessExtents
from vani.analyzers.measures.io_time import ClockSkew, SpentTime
from vani.analyzers.measures.libraries import ANY, LibraryCallTimes, LibraryTimes, LibraryUse
from vani.analyzers.measures.operations import FileBalance
from vani.calls import FileClass, Layer
from vani.columns import Bools, Int8s, Ints, Texts, distinct, texts, to_arrow
from vani.schema.job import Job
from vani.schema.profile import IOStats, LibraryCall, LibraryTime, Repeats
from vani.schema.profile.iostats import LayerName
from vani.schema.system import System

_THIRD = 3
_TWICE = 2
_STEADY = 0.25
_MOST = 0.75



@dataclass(frozen=True, eq=False)
class PhaseRows:
    """Row of each phase; rows are ordered by their first phase, app by app."""

    row: Ints
    """Shape (phases,): -1 for a phase without calls."""
    start: Ints
    """Shape (phases,): start of each phase's first call in ns."""
    end: Ints
    """Shape (phases,): end of its last call in ns."""
    processes: Ints
    """Shape (phases,): processes that take part."""

    @property
    def rows(self) -> int:
        return int(self.row.max(initial=-1)) + 1

    def described(self, phases: Phases, names: Sequence[str]) -> Iterator[tuple[Ints, dict[str, Any]]]:
        """Phases of each row, and the attributes of its entity that follow from their places in time.

        `names`: name of each app.
        """
        number: dict[int, int] = {}
        for row in range(self.rows):
            members = np.flatnonzero(self.row == row)
            app, start, end = int(phases.app[members[0]]), self.start[members], self.end[members]
            number[app] = number.get(app, -1) + 1
            yield members, {
                "app": names[app],
                "index": number[app],
                "start_s": int(start[0]) / 1e9,
                "end_s": int(end.max()) / 1e9,
                "runtime_s": int((end - start).sum()) / 1e9,
                "repeats": Repeats(count=len(members), period_s=period_s(start)),
                "processes": int(self.processes[members].max()),
            }


def each_alone(phases: Phases) -> PhaseRows:
    """One row per phase."""
    count = len(phases)
    return PhaseRows(np.arange(count), phases.start_ns, phases.start_ns, np.zeros(count, np.int64))


_COLUMNS = ("bytes_read", "bytes_written", "first", "last", "reads", "writes", "metadata", "syncs")


def rows_of(measured: Measurements) -> PhaseRows:
    """Merge similar phases."""
    operations, phases = measured.operations, measured.phases
    columns = {name: getattr(operations, name) for name in _COLUMNS}
    by_phase = group(operations.phase, columns, {"first": "min", "last": "max"})
    count = len(phases)
    read, written, start, end, *kinds = (by_phase.at(np.arange(count), name) for name in _COLUMNS)
    processes = measured.processes.in_phase
    calls = np.sum(kinds, axis=0)
    row = np.full(count, -1, np.int64)
    firsts: list[int] = []
    for phase in np.flatnonzero(calls > 0).tolist():
        rows = np.array(firsts, np.int64)
        moved = np.maximum((read + written)[rows], read[phase] + written[phase])
        called = np.maximum(calls[rows], calls[phase])
        alike = (
            (phases.app[rows] == phases.app[phase])
            & (_THIRD * np.abs(read[rows] - read[phase]) <= moved)
            & (_THIRD * np.abs(written[rows] - written[phase]) <= moved)
            & np.all([_THIRD * np.abs(kind[rows] - kind[phase]) <= called for kind in kinds], axis=0)
            & (
                np.maximum(processes[rows], processes[phase])
                <= _TWICE * np.minimum(processes[rows], processes[phase])
            )
        )
        if alike.any():
            row[phase] = int(np.argmax(alike))
        else:
            row[phase] = len(firsts)
            firsts.append(phase)
    return PhaseRows(row, start, end, processes)


def period_s(start: Ints) -> float | None:
    """Seconds from one phase's start to the next one's; None for a single phase, or without a steady period."""
    apart = np.diff(start)
    if not len(apart):
        return None
    middle = float(np.median(apart))
    steady = np.abs(apart - middle) <= _STEADY * middle
    return middle / 1e9 if steady.mean() >= _MOST else None


_LIBRARY_CALLS = 10
Notes = dict[str, str]
"""Provenance: where a value comes from or why it is null, by attribute path."""


def layer_name(layer: int) -> str:
    """Name of a layer as written in profiles."""
    return Layer(layer).name.lower()


class View:
    """A measured workload, with additions from job.yaml and system.yaml and derived facts; immutable."""

    def __init__(
        self, measured: Measurements, job: Job | None, system: System | None, *, job_name: str = "job.yaml"
    ) -> None:
        self.measured = measured
        self.workload = measured.workload
        self.job = job
        self.system = system
        self.job_name = job_name

    def of_job(self, name: str) -> Any:
        """A value of job.yaml; None if it lacks it, or without job.yaml."""
        return None if self.job is None else getattr(self.job, name)

    @property
    def timed(self) -> bool:
        """Whether time stamps were read."""
        return self.measured.of(SpentTime) is not None

    @property
    def knows_callers(self) -> bool:
        """Whether the library that made each call is known."""
        use = self.measured.of(LibraryUse)
        return use is not None and not use.caller_unknown.any()

    def nulls(self, result: type[object], *attributes: str) -> Notes:
        """The reason why attributes derived from a measure's result are null, if the source does not provide it."""
        if self.measured.of(result) is not None:
            return {}
        return dict.fromkeys(attributes, self.measured.why(result))

    @property
    def limits(self) -> Notes:
        """Reasons for attributes that the traces can never provide; with several traces, the first one's."""
        limits: Notes = {}
        for trace in self.measured.traces:
            named = self.job is not None and PurePath(trace.source).name in self.job.apps
            for attribute, why in trace.limits:
                if not (named and attribute == "traces.app"):
                    limits.setdefault(attribute, why)
        return limits

    @cached_property
    def files(self) -> Ints:
        """Codes of the data set's files: those that any process opened or accessed, also through libraries alone."""
        used = self.measured.processes.files.file
        files: Ints = used[self.workload.file_class[used] == FileClass.DATASET].astype(np.int64)
        return distinct(files, self.files_of_libraries(None)[0])

    def files_of_libraries(self, app: int | None) -> tuple[Ints, Ints]:
        """Codes of files that an app (or the workload) moved data of in library calls alone, and their processes.

        A relative path may be the name of a file whose absolute path the calls of the file system have.
        """
        balance, paths = self.measured.of(FileBalance), self.workload.paths
        if balance is None or not len(balance.users):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        of_app, file = unpack(balance.users.keys, (len(self.workload.apps), self.workload.files + 1))
        alone = (of_app == app) | (app is None)
        alone &= ~np.isin(file - 1, self.measured.processes.files.file)
        alone &= self.workload.file_class[file - 1] == FileClass.DATASET
        alone[alone] = [paths[code].startswith("/") for code in (file[alone] - 1).tolist()]
        codes, place = np.unique(file[alone] - 1, return_inverse=True)
        return codes, np.bincount(place, balance.users["processes"][alone], len(codes)).astype(np.int64)

    @cached_property
    def _surveyed(self) -> tuple[Ints, Bools | None]:
        """Row of each of `files` in the survey's table, and a mask of those that have one (None: all)."""
        keys, files = self.measured.survey.files.keys, self.files
        if not len(keys):
            return np.zeros(len(files), np.int64), np.zeros(len(files), np.bool_)
        place = np.minimum(np.searchsorted(keys, files), len(keys) - 1)
        known = keys[place] == files
        return place, None if known.all() else known

    def surveyed(self, column: str, missing: int = 0) -> Ints:
        """A survey column at `files`; `missing` if the survey lacks the file or the column."""
        columns, (place, known) = self.measured.survey.files.columns, self._surveyed
        if column not in columns:
            return np.full(len(self.files), missing, np.int64)
        values: Ints = columns[column][place].astype(np.int64)
        return values if known is None else np.where(known, values, missing)

    @cached_property
    def users_of_files(self) -> Mapping[str, Ints]:
        """Number of processes, readers and writers of each of `files`."""
        used, (alone, processes) = self.measured.processes.files, self.files_of_libraries(None)
        in_dataset = self.workload.file_class[used.file] == FileClass.DATASET
        place = np.searchsorted(self.files, used.file[in_dataset])
        users = {name: np.zeros(len(self.files), np.int64) for name in ("processes", "readers", "writers")}
        for name, column in users.items():
            column[place] = getattr(used, name)[in_dataset]
        users["processes"][np.searchsorted(self.files, alone)] = processes
        return users

    @property
    def paths_of_files(self) -> pa.Array:
        """Path of each of `files`."""
        paths = self.workload.paths
        if isinstance(paths, Texts):
            return pc.take(paths.column, to_arrow(self.files))
        return texts([paths[code] for code in self.files.tolist()])

    def _stats(
        self, group_of_phase: Ints, group_of_app: Ints, busy_by: Callable[[BusyTimes], ByGroup]
    ) -> Mapping[int, IOStats]:
        """Statistics of groups of phases; time that an app's phases share counts once in the app's group, if any."""
        spent, busy = self.measured.of(SpentTime), self.measured.of(BusyTimes)
        groups, time = np.concatenate((group_of_phase, group_of_app)), None
        if spent is not None:
            time = ByGroup.summed(groups, np.concatenate((spent.phases, -spent.overlaps)))
        of_busy = None if busy is None else busy_by(busy)
        return stats_by(self.measured, lambda phase, _: group_of_phase[phase], time=time, busy=of_busy)

    @cached_property
    def phase_rows(self) -> PhaseRows:
        """Similar phases, merged."""
        return rows_of(self.measured) if self.timed else each_alone(self.measured.phases)

    @cached_property
    def row_stats(self) -> Mapping[int, IOStats]:
        """Statistics by row of similar phases; the number of rows is the key of excluded calls."""
        rows, none = np.append(self.phase_rows.row, self.phase_rows.rows), np.full(len(self.workload.apps), -1)
        return self._stats(rows, none, lambda busy: ByGroup.summed(rows, busy.phases))

    @cached_property
    def app_stats(self) -> Mapping[int, IOStats]:
        """Statistics by app."""
        app_of_phase, apps = np.append(self.measured.phases.app, -1), np.arange(len(self.workload.apps))
        return self._stats(app_of_phase, apps, lambda busy: ByGroup(apps, busy.apps))

    @cached_property
    def workload_stats(self) -> IOStats:
        """Statistics of the workload."""
        apps = len(self.workload.apps)
        if apps == 1:
            return self.app_stats.get(0, empty_stats())
        phases = np.append(np.zeros(len(self.measured.phases), np.int64), -1)
        whole = np.zeros(1, np.int64)
        stats = self._stats(phases, np.zeros(apps, np.int64), lambda busy: ByGroup(whole, busy.workload[None]))
        return stats.get(0, empty_stats())

    @cached_property
    def file_stats(self) -> Mapping[int, IOStats]:
        """Statistics of the listed files, by code."""
        listed, spent, busy = self.measured.listed, self.measured.of(SpentTime), self.measured.of(BusyTimes)
        number = np.full(self.workload.files + 1, -1, np.int64)
        number[listed + 1] = listed
        time = None
        if spent is not None:
            time = ByGroup.of_cells(number[spent.cell_file + 1], spent.phase_file_kind, spent.cell_time)
        of_busy = None if busy is None else ByGroup.summed(listed, busy.files)
        return stats_by(self.measured, lambda _, file: number[file + 1], time=time, busy=of_busy)

    @cached_property
    def run_ns(self) -> list[tuple[int, int]] | None:
        """(start, end) of each app, from its first trace's start to its last trace's end; None without known times."""
        spans: list[tuple[int, int]] = []
        for app in range(len(self.workload.apps)):
            own = [
                (shift, trace)
                for shift, trace, of in zip(
                    self.workload.shift_ns, self.measured.traces, self.workload.app_of_trace, strict=True
                )
                if of == app
            ]
            ends = [shift + trace.span_ns for shift, trace in own if trace.span_ns is not None]
            if len(ends) < len(own):
                return None
            spans.append((min(shift + trace.begin_ns for shift, trace in own), max(ends)))
        return spans

    @property
    def process_time(self) -> Ints | None:
        """I/O time of each process in ns, shape (processes,); None if no times are known."""
        spent = self.measured.of(SpentTime)
        return None if spent is None else spent.processes

    def requests(self, app: int, layer: int) -> Requests:
        """Requests of an app's data calls of a library."""
        table = self.measured.of(AccessTable)
        return Requests() if table is None else table.requests(app, layer)

    def layer_time(self, app: int, layer: int) -> int | None:
        """Time in ns of an app's processes in a layer's calls; for posix and stdio, only in calls on data set files.

        None if no times are known.
        """
        times, spent = self.measured.of(LibraryTimes), self.measured.of(SpentTime)
        if times is None or spent is None:
            return None
        return int(times.calls[self.app_of_process == app, layer].sum() + spent.layers[app, layer])

    def library_time(self, app: int | None) -> dict[LayerName, LibraryTime] | None:
        """Time in each I/O library, of an app or (None) of the workload; None if no times are known."""
        measured, calls = self.measured.of(LibraryTimes), self.measured.of(LibraryCallTimes)
        if measured is None or calls is None:
            return None
        of_app = np.ones(self.workload.processes, np.bool_) if app is None else self.app_of_process == app
        times_of_layers: dict[LayerName, LibraryTime] = {}
        for layer in LIBRARIES:
            times, under = measured.calls[of_app, layer], measured.under[of_app, layer]
            if not times.any():
                continue
            times_of_layers[layer_name(layer)] = LibraryTime(  # type: ignore[index]
                total=int(times.sum()) / 1e9,
                outside_file_system=int(np.maximum(times - under, 0).sum()) / 1e9,
                slowest=int(times.max()) / 1e9,
                calls=self._library_calls(calls, app, layer),
            )
        return times_of_layers

    def _library_calls(self, measured: LibraryCallTimes, app: int | None, layer: int) -> list[LibraryCall]:
        """Functions of a library with most time."""
        rows = (measured.layer == layer) & (True if app is None else measured.app == app)
        table = group(measured.function[rows], {"count": measured.count[rows], "time": measured.time[rows]})
        count, time = table["count"], table["time"]
        names = [self.workload.functions[code] for code in table.keys.tolist()]
        order = sorted(range(len(names)), key=lambda at: (-time[at], -count[at], names[at]))
        return [
            LibraryCall(name=names[at], count=int(count[at]), time_s=int(time[at]) / 1e9)
            for at in order[:_LIBRARY_CALLS]
        ]

    @cached_property
    def call_time(self) -> Ints | None:
        """Time of each process in I/O calls of any kind, including libraries, in ns; shape (processes,)."""
        times, alone = self.measured.of(LibraryTimes), self.process_time
        if times is None or alone is None:
            return alone
        # File-system calls outside library calls add to the time in libraries.
        call_time: Ints = times.calls[:, ANY] + np.maximum(alone - times.under[:, ANY], 0)
        return call_time

    @cached_property
    def links(self) -> Links | None:
        """Links between processes; None if the order of calls is unknown."""
        exchanges, extents = self.measured.of(ExchangeCounts), self.measured.of(ProcessExtents)
        if exchanges is None or extents is None:
            return None
        clocks = self.measured.of(ClockSkew)
        return Links(exchanges, extents, self.app_of_process, 0 if clocks is None else clocks.most)

    @property
    def why_no_links(self) -> str:
        """Reason why `links` is None."""
        return self.measured.results.why(ExchangeCounts) or self.measured.why(ProcessExtents)

    @property
    def no_times(self) -> str:
        """Reason why the traces provide no times."""
        return self.measured.unknown.get("times", "some trace does not record when it ends")

    @cached_property
    def files_without_caller(self) -> Ints:
        """Codes of files with calls made by an unknown library."""
        use = self.measured.of(LibraryUse)
        return self.files if use is None else use.caller_unknown_files

    @cached_property
    def app_of_process(self) -> Ints:
        """App of each process, shape (processes,)."""
        apps: Ints = np.array(self.workload.app_of_trace)[self.trace_of_process]
        return apps

    @cached_property
    def trace_of_process(self) -> Ints:
        """Trace of each process, shape (processes,)."""
        bases = np.array(self.workload.process_base)
        return np.searchsorted(bases, np.arange(self.workload.processes), side="right") - 1

    @cached_property
    def interface_of_files(self) -> Int8s:
        """Layer with most opens and data operations of each file, -1 for none; shape (files,)."""
        interface = np.full(self.workload.files, -1, np.int8)
        libraries = self.measured.of(LibraryUse)
        if libraries is None:
            return interface
        use = libraries.outermost_files
        named = use.file >= 0
        layer, file, count = (c[named] for c in (use.layer, use.file, use.count))
        order = np.lexsort((layer, count, file))
        # With repeated indices, the last assignment counts.
        interface[file[order]] = layer[order]
        return interface

    def facts_of(self, app: int, *names: str) -> list[tuple[str, list[str], int]]:
        """An app's library calls whose arguments were kept (`TraceFacts.facts`)."""
        return [
            (name, list(args), count)
            for trace, of in zip(self.measured.traces, self.workload.app_of_trace, strict=True)
            if of == app
            for name, args, count in trace.facts
            if name in names
        ]
