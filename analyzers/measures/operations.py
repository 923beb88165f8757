"""Calls, their bytes, sizes and costs, and the processes that make them.

**Operations**: the number of calls and their bytes, per phase and file (tables III to V, X, XI: "I/O amount", "I/O
ops dist").

A data operation is a read or write of layers posix and stdio, a flush is one of fsync, fdatasync, fflush, msync and
sync_file_range, and a metadata operation is any other call of these layers. A call inside another of them is not
counted again. `bytes` are the requested bytes (moved bytes, if the trace stores return values). Unit: calls, bytes.

**Cost of each function**, per phase and file: calls, their time and their bytes.

Time is the sum of the calls' durations: two threads in a call at the same time both count, unlike in
I/O time, so that functions' times are those in the trace. Unit: calls, nanoseconds, bytes.

**Exact sizes** of data operations: counts of each size, per phase and file (tables VI, VII: "granularity").

Unit: bytes. `Operations` counts operations without a recorded size as unsized.

**Totals of each process** (table IV, balance of processes): bytes and operations on data set files.

Unit: bytes, operations.

**Processes** per phase and per file (tables IV and XI, "# processes", FPP or shared).

A process uses a file if it opens it or performs a data operation on it. Unit: processes.

**Look-ups**, per name: opens and stats that fail, stats that succeed, opens, and listings of a folder. A stat counts
as a look-up only where no process opens the name, which is known at the end. Unit: calls, nanoseconds.

**Locks**, per function and file: calls of flock, lockf and fcntl that lock, unlock or query a lock, with the time
that they wait. Unit: calls, nanoseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from vani.analyzers.batch import Batch, GroupedCalls, phases_and_files
from vani.analyzers.int_table import LAYERS, NO_VALUE, IntTable, Sums, SumsBuilder, pack, unpack
from vani.analyzers.passes import SumsCollector, SumsMeasure
from vani.analyzers.workload import Context, SurveyFindings, Workload
from vani.calls import FAILED, LOCK, FileClass, Flag, Kind, Layer
from vani.columns import Int8s, Int32s, Ints


@dataclass(frozen=True, eq=False)
class OperationCounts:
    """Per phase and listed file; shape (n,) each. Integers of any width, to be added up with `group`."""

    phase: Ints
    """The number of phases means excluded calls."""
    file: Ints
    """-1 for no file or an unlisted one."""
    reads: Ints
    writes: Ints
    metadata: Ints
    syncs: Ints
    bytes_read: Ints
    bytes_written: Ints
    unsized: Ints
    """Number of data operations of unknown size."""
    opens: Ints
    first: Ints
    """Start of the first call in ns; 0 if no times are known."""
    last: Ints
    """End of the last call in ns."""

    def __len__(self) -> int:
        return len(self.phase)

    @staticmethod
    def of(phase: Ints, file: Ints, columns: Mapping[str, Ints]) -> OperationCounts:
        """Counts with some columns; the others are 0."""
        rest = dict.fromkeys((field.name for field in fields(OperationCounts)[2:]), np.zeros(len(phase), np.int64))
        return OperationCounts(phase=phase, file=file, **{**rest, **columns})


class Operations(SumsMeasure):
    """Table `operations` by listed phase and file, with the columns of `OperationCounts`."""

    name = "operations"
    result = OperationCounts
    columns = frozenset({"kind", "file", "bytes", "start_ns", "duration_ns", "rank", "via", "within"})
    minima, maxima = ("first",), ("last",)

    def add(self, batch: GroupedCalls, sums: SumsBuilder) -> None:
        groups, kind, count = batch.groups, batch.groups.kind, batch.groups.count
        read, write = kind == Kind.READ, kind == Kind.WRITE
        columns = {
            "reads": np.where(read, count, 0),
            "writes": np.where(write, count, 0),
            "metadata": np.where(kind == Kind.METADATA, count, 0),
            "syncs": np.where(kind == Kind.SYNC, count, 0),
            "bytes_read": np.where(read, groups.bytes, 0),
            "bytes_written": np.where(write, groups.bytes, 0),
            "unsized": groups.unsized,
            "opens": np.where((groups.flags & Flag.OPEN) != 0, count, 0),
            "first": groups.first_start,
            "last": groups.last_end,
        }
        sums.add("operations", groups.listed_phase_file_key, columns)

    def aggregate(self, combined: Sums, workload: Workload, findings: SurveyFindings) -> OperationCounts:
        table = combined["operations"]
        columns = (table.stored(field.name) for field in fields(OperationCounts)[2:])
        return OperationCounts(*phases_and_files(table.keys, workload, findings), *columns)


@dataclass(frozen=True, eq=False)
class FunctionCosts:
    """Per phase, listed file and function; shape (n,) each. Integers of any width, to be added up with `group`."""

    phase: Ints
    file: Ints
    """-1 for no file or an unlisted one."""
    function: Ints
    """Code in `Workload.functions`."""
    count: Ints
    time: Ints
    """ns; 0 if no times are known."""
    bytes: Ints
    data: Ints
    """Number of data operations."""
    metadata: Ints
    metadata_time: Ints
    """ns of the metadata operations: a read at the end of a file is one, the others of its function are not."""
    unsized: Ints
    """Number of data operations without a recorded size."""


class CallCosts(SumsMeasure):
    """Table `costs` by listed phase and file and function, with the columns of `FunctionCosts`."""

    name = "call_costs"
    result = FunctionCosts
    columns = frozenset({"rank", "kind", "file", "func", "bytes", "start_ns", "duration_ns", "via", "within"})

    def add(self, batch: GroupedCalls, sums: SumsBuilder) -> None:
        groups = batch.groups
        columns = {
            "count": groups.count,
            "time": groups.time,
            "bytes": groups.bytes,
            "data": np.where(groups.kind <= Kind.WRITE, groups.count, 0),
            "metadata": np.where(groups.kind == Kind.METADATA, groups.count, 0),
            "metadata_time": np.where(groups.kind == Kind.METADATA, groups.time, 0),
            "unsized": groups.unsized,
        }
        widths = (batch.phase_file_width, len(batch.context.workload.functions))
        sums.add("costs", pack((groups.listed_phase_file_key, groups.function), widths), columns)

    def aggregate(self, combined: Sums, workload: Workload, findings: SurveyFindings) -> FunctionCosts:
        table = combined["costs"]
        columns = (table.stored(field.name) for field in fields(FunctionCosts)[3:])
        return FunctionCosts(*phases_and_files(table.keys, workload, findings, len(workload.functions)), *columns)


@dataclass(frozen=True, eq=False)
class SizeBins:
    """Data operations by the source's own bins, per phase and file; shape (n,) each."""

    names: tuple[str, ...]
    ends: Ints
    """Inclusive upper end of each bin except the last one, in bytes."""
    phase: Ints
    file: Ints
    kind: Ints
    """Read or write."""
    bin: Ints
    """Index in `names`."""
    count: Ints


@dataclass(frozen=True, eq=False)
class SizeCounts:
    """Data operations of each size, per phase and listed file; shape (n,) each."""

    phase: Int32s
    file: Int32s
    """-1 for no file or an unlisted one."""
    kind: Int8s
    """Read or write."""
    size: Ints
    count: Ints
    bins: SizeBins | None = None
    """Bins of all operations, if the sizes above do not cover all of them."""

    @staticmethod
    def of(phase: Ints, file: Ints, kind: Ints, size: Ints, count: Ints, bins: SizeBins | None = None) -> SizeCounts:
        """Convert the first columns to narrow types."""
        return SizeCounts(phase.astype(np.int32), file.astype(np.int32), kind.astype(np.int8), size, count, bins)


class TransferSize(SumsMeasure):
    """Pairs `sizes`: key of listed phase and file and direction (0 for reads, 1 for writes), and size."""

    name = "transfer_size"
    result = SizeCounts
    columns = frozenset({"rank", "kind", "file", "bytes", "start_ns", "via", "within"})

    def add(self, batch: GroupedCalls, sums: SumsBuilder) -> None:
        groups, sizes = batch.groups, batch.sizes
        columns = (groups.listed_phase_file_key[sizes.first], groups.kind[sizes.first])
        sums.count("sizes", pack(columns, (batch.phase_file_width, 2)), sizes.second, sizes.count)

    def aggregate(self, combined: Sums, workload: Workload, findings: SurveyFindings) -> SizeCounts:
        sizes = combined.counts("sizes")
        phase, file, kind = phases_and_files(sizes.first, workload, findings, 2)
        return SizeCounts.of(phase, file, kind, sizes.second, sizes.count)


@dataclass(frozen=True, eq=False)
class MovedByProcess:
    """Shape (processes,) each."""

    bytes: Ints
    reads: Ints
    """Operations."""
    writes: Ints


class ProcessTotals(SumsMeasure):
    """Table `processes` by process: bytes, reads, writes."""

    name = "process_totals"
    result = MovedByProcess
    columns = frozenset({"rank", "kind", "file", "bytes", "start_ns", "via", "within"})

    def add(self, batch: Batch, sums: SumsBuilder) -> None:
        groups, own = batch.groups, batch.groups.included
        read, write = groups.kind[own] == Kind.READ, groups.kind[own] == Kind.WRITE
        columns = {
            "bytes": np.where(read | write, groups.bytes[own], 0),
            "reads": np.where(read, groups.count[own], 0),
            "writes": np.where(write, groups.count[own], 0),
        }
        sums.add("processes", groups.process[own], columns)

    def aggregate(self, combined: Sums, workload: Workload, findings: SurveyFindings) -> MovedByProcess:
        every = np.arange(workload.processes)
        return MovedByProcess(*(combined["processes"].at(every, name) for name in ("bytes", "reads", "writes")))


@dataclass(frozen=True, eq=False)
class FileUsers:
    """Number of processes that use each file, shape (n,) each. Integers of any width."""

    file: Ints
    """File codes, ascending; never -1."""
    processes: Ints
    readers: Ints
    writers: Ints


@dataclass(frozen=True, eq=False)
class ProcessCounts:
    """Number of processes that use data set files (`files` also has others)."""

    files: FileUsers
    used_app: Ints
    """Shape (n,), like `used_file`: which app uses which file, app by app."""
    used_file: Ints
    in_phase: Ints
    """Shape (phases,): number of processes that take part."""

    @staticmethod
    def of_phases(in_phase: Ints) -> ProcessCounts:
        """Counts without files."""
        nothing = np.empty(0, np.int64)
        return ProcessCounts(FileUsers(*(nothing,) * 4), nothing, nothing, in_phase)


class Processes(SumsMeasure):
    """Tables `users` by file and `users_of_apps` by app and file + 1: processes, readers, writers; `in_phase`:
    processes."""

    name = "processes"
    result = ProcessCounts
    columns = frozenset({"rank", "kind", "file", "bytes", "start_ns", "via", "within"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _ProcessesCollector:
        if findings is None:
            raise ValueError("phases are known in the second pass")
        return _ProcessesCollector(self, context, findings)

    def aggregate(self, combined: Sums, workload: Workload, findings: SurveyFindings) -> ProcessCounts:
        users, in_phase = combined["users"], combined["in_phase"]
        app, file = unpack(combined["users_of_apps"].keys, (len(workload.apps), workload.files + 1))
        columns = (users.stored(name) for name in ("processes", "readers", "writers"))
        of_phase = in_phase.at(np.arange(findings.phases), "processes")
        return ProcessCounts(FileUsers(users.keys, *columns), app, file - 1, of_phase)


class _ProcessesCollector(SumsCollector):
    """Counts processes at the end of a partition, which contains all calls of each of them."""

    def __init__(self, measure: Processes, context: Context, findings: SurveyFindings) -> None:
        super().__init__(measure)
        workload, self._app = context.workload, context.app
        self._of_file = (workload.processes, workload.files + 1)
        self._of_phase = (workload.processes, findings.phases + 1)
        self._of_app = (len(workload.apps), workload.files + 1)
        self._seen = SumsBuilder({"readers": "max", "writers": "max"})

    def add(self, batch: Batch) -> None:
        groups, included = batch.groups, batch.groups.included
        read, write = groups.kind == Kind.READ, groups.kind == Kind.WRITE
        opens = (groups.flags & Flag.OPEN) != 0
        uses = (groups.file >= 0) & (read | write | opens) & ((groups.flags & Flag.DIRECTORY) == 0)
        users = {"readers": read[uses].astype(np.int64), "writers": write[uses].astype(np.int64)}
        self._seen.add("files", pack((groups.process[uses], groups.file[uses] + 1), self._of_file), users)
        self._seen.add("phases", pack((groups.process[included], groups.phase[included]), self._of_phase), {})

    def result(self) -> Sums:
        seen = self._seen.result()
        uses, in_phase = seen["files"], seen["phases"]
        columns = {"processes": np.ones(len(uses), np.int64), **uses.columns}
        _, file = unpack(uses.keys, self._of_file)
        self.sums.add("users", file - 1, columns)
        self.sums.add("users_of_apps", pack((self._app, file), self._of_app), columns)
        _, phase = unpack(in_phase.keys, self._of_phase)
        self.sums.add("in_phase", phase, {"processes": np.ones(len(in_phase), np.int64)})
        return super().result()


@dataclass(frozen=True, eq=False)
class Locks:
    """Locks by function and file."""

    function: Ints
    file: Ints
    """-1 for no file."""
    counts: IntTable
    """A row for each of these functions and files: `calls`, `failed`, `time`."""


@dataclass(frozen=True, eq=False)
class NamesAndLocks:
    """Look-ups by name, and locks by function and file."""

    names: IntTable
    """By file: calls that are `opens`, `stats`, `failed`, `listings`, or show that the name is a `folder`; times
    `opens_ns`, `stats_ns` and `failed_ns`; the `first` start; the first and the last process. A failed call is
    only that, and a source that does not record which calls failed has none."""
    locks: Locks | None
    """None if the source does not record them."""


_LOOKED_UP = (FileClass.DATASET, FileClass.SHARED_LIBRARY, FileClass.PROBE)


class LookUps(SumsMeasure):
    """Tables `names` and `locks`, see `NamesAndLocks`."""

    name = "lookups"
    result = NamesAndLocks
    columns = frozenset({"rank", "kind", "file", "func", "start_ns", "duration_ns", "via", "within"})
    minima, maxima = ("first", "first_process"), ("last_process",)

    def add(self, batch: Batch, sums: SumsBuilder) -> None:
        groups, flags, workload = batch.groups, batch.groups.flags, batch.context.workload
        is_open, is_stat, is_folder = ((flags & flag) != 0 for flag in (Flag.OPEN, Flag.STAT, Flag.DIRECTORY))
        is_plain = ~is_open & (groups.kind == Kind.METADATA)
        locks, failed = is_plain & ((flags & LOCK) != 0), is_plain & ((flags & FAILED) != 0)
        lists = np.array(["open" in name for name in workload.functions], np.bool_)[groups.function] & ~failed
        which = {
            "opens": is_open & ~is_folder,
            "stats": is_stat & ~failed,
            "failed": failed & ~locks,
            "listings": is_folder & (is_open | lists) & ~is_stat,
            "folder": is_folder,
        }
        of_class = np.append(np.isin(workload.file_class, _LOOKED_UP), False)[groups.file]
        own = np.flatnonzero(np.logical_or.reduce(list(which.values())) & of_class)
        columns = {name: np.where(rows, groups.count, 0)[own] for name, rows in which.items()}
        columns |= {f"{name}_ns": np.where(which[name], groups.time, 0)[own] for name in ("opens", "stats", "failed")}
        users = dict.fromkeys(("first_process", "last_process"), groups.process[own])
        sums.add("names", groups.file[own], {**columns, **users, "first": groups.first_start[own]})
        own = np.flatnonzero(locks & (groups.included | (groups.file < 0)))
        amounts = {"calls": groups.count, "failed": np.where(failed, groups.count, 0), "time": groups.time}
        key = pack((groups.function[own], groups.file[own] + 1), (len(workload.functions), workload.files + 1))
        sums.add("locks", key, {name: column[own] for name, column in amounts.items()})

    def aggregate(self, combined: Sums, workload: Workload, findings: SurveyFindings) -> NamesAndLocks:
        function, file = unpack(combined["locks"].keys, (len(workload.functions), workload.files + 1))
        return NamesAndLocks(combined["names"], Locks(function, file - 1, combined["locks"]))


@dataclass(frozen=True, eq=False)
class FileBalance:
    """Signs, by file, that calls are missing."""

    idle: IntTable
    """By file code: openings that the program itself made, and closed without a read or write between: `unread` for
    reading, `unwritten` for writing, and `streams` for writing to a stream; `ns` of the last two."""
    requested: IntTable
    """Data calls of libraries by `ASKED`: `calls`, `bytes`, and `unsized` calls."""
    users: IntTable
    """By app and file + 1, `processes`: those with data calls of libraries."""


ASKED = (1 << 40, 2, LAYERS)
"""Widths of keys of file, direction and layer."""


_IDLE = ("unread", "unwritten", "streams")
_OPENS_OTHERWISE, _CLOSES, _MOVES = 4, 5, 6
"""Events of files besides the openings of `_IDLE`, from 1."""
_LOOK_NS = 100_000
"""Shorter openings for writing may well write nothing (our choice)."""


class Balance(SumsMeasure):
    """Tables `idle`, `asked` and `users` of `FileBalance`."""

    name = "balance"
    result = FileBalance
    columns = frozenset({"rank", "kind", "file", "func", "bytes", "start_ns", "duration_ns", "via", "within"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _BalanceCollector:
        return _BalanceCollector(self, context)

    def aggregate(self, combined: Sums, workload: Workload, findings: SurveyFindings) -> FileBalance:
        return FileBalance(*(combined[name] for name in ("idle", "asked", "users")))


class _BalanceCollector(SumsCollector):
    def __init__(self, measure: Balance, context: Context) -> None:
        super().__init__(measure)
        self._app, self._apps = context.app, len(context.workload.apps)
        self._of_file = (context.workload.processes, context.workload.files + 1)
        self._waiting = np.empty((3, 0), np.int64)
        """Last events of files that were opened, or opened and closed: keys of process and file, events, and times."""
        self._users = SumsBuilder()

    def add(self, batch: Batch) -> None:
        others, workload = batch.uncounted_groups, batch.context.workload
        of_library = (others.layer >= Layer.MPIIO) & (others.layer <= Layer.NETCDF)
        rows = others.places(of_library & (others.kind <= Kind.WRITE))
        rows, file = rows[named := batch.files_of(rows) >= 0], batch.files_of(rows)[named]
        rank, kind, layer, size = (batch.all_calls(name)[rows] for name in ("rank", "kind", "layer", "bytes"))
        process = rank + workload.process_base[batch.context.trace]
        self._users.add("users", pack((process, file + 1), self._of_file), {})
        sized = size != NO_VALUE
        columns = {"calls": np.ones(len(rows), np.int64), "bytes": np.where(sized, size, 0), "unsized": ~sized * 1}
        self.sums.add("asked", pack((file, kind, layer), ASKED), columns)
        if len(batch):
            self._add_openings(batch)

    def _add_openings(self, batch: Batch) -> None:
        groups = batch.groups
        flags = groups.flags
        opens = (flags & Flag.OPEN) != 0
        # Libraries open a file in all processes, and move its data in some.
        own = opens & ((groups.within >> Layer.MPIIO) == 0)
        writing = own & ((flags & (Flag.WRITABLE | Flag.CREATE | Flag.TRUNCATE)) != 0)
        moves = (groups.kind != Kind.METADATA) | ((flags & Flag.RESIZE) != 0)
        event = np.select(
            [own & ~writing, writing & (groups.layer == Layer.STDIO), writing, opens, (flags & Flag.CLOSE) != 0, moves],
            [1, 3, 2, _OPENS_OTHERWISE, _CLOSES, _MOVES],
        )
        event[~groups.included | ((flags & Flag.DIRECTORY) != 0)] = 0
        fresh = groups.process_file[(event > 0) & (event < _OPENS_OTHERWISE)]
        followed = np.isin(groups.process_file, np.append(self._waiting[0], fresh)) & (event > 0)
        rows = np.flatnonzero(followed[groups.codes])
        if not len(rows):
            return
        code = groups.codes[rows]
        moment = np.where(event[code] == _CLOSES, batch.start[rows], batch.end[rows])
        events = np.append(self._waiting, np.stack([groups.process_file[code], event[code], moment]), axis=1)
        events = events[:, np.argsort(events[0], kind="stable")]
        key, event = events[0], np.append(events[1], (0, 0))
        same = np.append(key[1:] == key[:-1], (False, False))
        opened = (event[:-2] > 0) & (event[:-2] < _OPENS_OTHERWISE)
        closed = opened & same[:-1] & (event[1:-1] == _CLOSES)
        # A call after the close is through a duplicated descriptor. HDF5 looks at a file before it truncates it.
        looked = (event[2:] == _MOVES) | ((event[:-2] > 1) & (event[2:] < _CLOSES))
        self._add_idle(events, np.flatnonzero(closed & same[1:] & ~looked))
        waits = closed & ~same[1:]
        pending = waits | (opened & ~same[:-1])
        pending[1:] |= waits[:-1]
        self._waiting = events[:, pending]

    def _add_idle(self, events: Ints, at: Ints) -> None:
        """Add openings at some places in the events, which their closes follow."""
        (_, file), opening = unpack(events[0][at], self._of_file), events[1][at]
        length = events[2][at + 1] - events[2][at]
        # Programs also open files for a look, or to create them.
        counts = (opening == 1) | (length >= _LOOK_NS)
        columns = {name: ((opening == number) & counts) * 1 for number, name in enumerate(_IDLE, 1)}
        self.sums.add("idle", file - 1, columns | {"ns": length * (counts & (opening > 1))})

    def result(self) -> Sums:
        # Of a file that was opened and closed, both events wait.
        self._add_idle(self._waiting, np.flatnonzero(self._waiting[1] == _CLOSES) - 1)
        _, file = unpack(self._users.result()["users"].keys, self._of_file)
        users = pack((self._app, file), (self._apps, self._of_file[1]))
        self.sums.add("users", users, {"processes": np.ones(len(file), np.int64)})
        return super().result()
