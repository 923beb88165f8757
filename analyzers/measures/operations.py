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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch
from vani.analyzers.calls.call_columns import phases_and_files
from vani.analyzers.int_table import How, IntTable, IntTableBuilder, Pairs, PairsBuilder, group, pack, unpack
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context, Workload
from vani.calls import Flag, Kind

Ints = NDArray[np.int64]

_HOW: dict[str, How] = {"first": "min", "last": "max"}


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


class Operations:
    """Columns per listed phase and file: operations of each kind, their bytes, opens, and times.

    reads, writes, metadata, syncs, bytes_read, bytes_written, unsized, opens, first and last (ns).
    """

    name = "operations"
    result = OperationCounts
    columns = frozenset({"kind", "file", "bytes", "start_ns", "duration_ns", "rank", "via", "within"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _OperationsCollector:
        del context, findings
        return _OperationsCollector()

    def combine(self, parts: Sequence[IntTable]) -> IntTable:
        return IntTable.merged(parts, _HOW)

    def aggregate(self, combined: IntTable, workload: Workload, findings: SurveyFindings) -> OperationCounts:
        phase, file = phases_and_files(combined.keys, workload, findings)
        return OperationCounts(phase, file, *(combined.stored(f.name) for f in fields(OperationCounts)[2:]))


class _OperationsCollector:
    def __init__(self) -> None:
        self._operations = IntTableBuilder(_HOW)

    def add(self, batch: Batch) -> None:
        if not len(batch):
            return
        groups = batch.groups
        kind, count = groups.kind, groups.count
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
        self._operations.add(groups.listed_phase_file_key, columns)

    def result(self) -> IntTable:
        return self._operations.table()


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
    unsized: Ints
    """Number of data operations without a recorded size."""


class CallCosts:
    """Columns by listed phase and file and function.

    `count`, `time`, `bytes`, the numbers of `data` and `metadata` operations, and the number of data operations of
    unknown size, `unsized`.
    """

    name = "call_costs"
    result = FunctionCosts
    columns = frozenset({"rank", "kind", "file", "func", "bytes", "start_ns", "duration_ns", "via", "within"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _CostsCollector:
        del findings
        return _CostsCollector(context)

    def combine(self, parts: Sequence[IntTable]) -> IntTable:
        return IntTable.merged(parts)

    def aggregate(self, combined: IntTable, workload: Workload, findings: SurveyFindings) -> FunctionCosts:
        columns = (combined.stored(f.name) for f in fields(FunctionCosts)[3:])
        return FunctionCosts(*phases_and_files(combined.keys, workload, findings, len(workload.functions)), *columns)


class _CostsCollector:
    def __init__(self, context: Context) -> None:
        self._functions = len(context.workload.functions)
        self._costs = IntTableBuilder()

    def add(self, batch: Batch) -> None:
        if not len(batch):
            return
        groups = batch.groups
        columns = {
            "count": groups.count,
            "time": groups.time,
            "bytes": groups.bytes,
            "data": np.where(groups.kind <= Kind.WRITE, groups.count, 0),
            "metadata": np.where(groups.kind == Kind.METADATA, groups.count, 0),
            "unsized": groups.unsized,
        }
        widths = (batch.phase_file_width, self._functions)
        self._costs.add(pack((groups.listed_phase_file_key, groups.function), widths), columns)

    def result(self) -> IntTable:
        return self._costs.table()


@dataclass(frozen=True, eq=False)
class SizeBins:
    """Data operations by the source's own bins, per phase and file; shape (n,) each."""

    names: tuple[str, ...]
    ends: NDArray[np.int64]
    """Inclusive upper end of each bin except the last one, in bytes."""
    phase: NDArray[np.int64]
    file: NDArray[np.int64]
    kind: NDArray[np.int64]
    """Read or write."""
    bin: NDArray[np.int64]
    """Index in `names`."""
    count: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SizeCounts:
    """Data operations of each size, per phase and listed file; shape (n,) each."""

    phase: NDArray[np.int32]
    file: NDArray[np.int32]
    """-1 for no file or an unlisted one."""
    kind: NDArray[np.int8]
    """Read or write."""
    size: NDArray[np.int64]
    count: NDArray[np.int64]
    bins: SizeBins | None = None
    """Bins of all operations, if the sizes above do not cover all of them."""


class TransferSize:
    """Counts by (key of listed phase and file and direction, size); direction is 0 for reads, 1 for writes."""

    name = "transfer_size"
    result = SizeCounts
    columns = frozenset({"rank", "kind", "file", "bytes", "start_ns", "via", "within"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _SizesCollector:
        del context, findings
        return _SizesCollector()

    def combine(self, parts: Sequence[Pairs]) -> Pairs:
        return Pairs.merged(parts)

    def aggregate(self, combined: Pairs, workload: Workload, findings: SurveyFindings) -> SizeCounts:
        phase, file, kind = phases_and_files(combined.first, workload, findings, 2)
        return SizeCounts(
            phase.astype(np.int32),
            file.astype(np.int32),
            kind.astype(np.int8),
            combined.second,
            combined.count,
        )


class _SizesCollector:
    def __init__(self) -> None:
        self._sizes = PairsBuilder()

    def add(self, batch: Batch) -> None:
        if not len(batch):
            return
        groups, sizes = batch.groups, batch.sizes
        columns = (groups.listed_phase_file_key[sizes.first], groups.kind[sizes.first])
        self._sizes.add(pack(columns, (batch.phase_file_width, 2)), sizes.second, sizes.count)

    def result(self) -> Pairs:
        return self._sizes.pairs()


@dataclass(frozen=True, eq=False)
class MovedByProcess:
    """Shape (processes,) each."""

    bytes: Ints
    reads: Ints
    """Operations."""
    writes: Ints


class ProcessTotals:
    """Columns by process: bytes, reads, writes."""

    name = "process_totals"
    result = MovedByProcess
    columns = frozenset({"rank", "kind", "file", "bytes", "start_ns", "via", "within"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _TotalsCollector:
        del context, findings
        return _TotalsCollector()

    def combine(self, parts: Sequence[IntTable]) -> IntTable:
        return IntTable.merged(parts)

    def aggregate(self, combined: IntTable, workload: Workload, findings: SurveyFindings) -> MovedByProcess:
        del findings
        every = np.arange(workload.processes)
        return MovedByProcess(*(combined.at(every, name) for name in ("bytes", "reads", "writes")))


class _TotalsCollector:
    def __init__(self) -> None:
        self._totals = IntTableBuilder()

    def add(self, batch: Batch) -> None:
        if not len(batch):
            return
        groups = batch.groups
        read, write = groups.kind == Kind.READ, groups.kind == Kind.WRITE
        columns = {
            "bytes": np.where(read | write, groups.bytes, 0),
            "reads": np.where(read, groups.count, 0),
            "writes": np.where(write, groups.count, 0),
        }
        included = groups.included
        self._totals.add(groups.process[included], {name: c[included] for name, c in columns.items()})

    def result(self) -> IntTable:
        return self._totals.table()


@dataclass(frozen=True, eq=False)
class ProcessesResult:
    """`files` and `apps` (by app and file + 1): processes, readers, writers. `phases`: processes."""

    files: IntTable
    apps: IntTable
    phases: IntTable


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


class Processes:
    """See the module's docstring."""

    name = "processes"
    result = ProcessCounts
    columns = frozenset({"rank", "kind", "file", "bytes", "start_ns", "via", "within"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _ProcessesCollector:
        if findings is None:
            raise ValueError("phases are known in the second pass")
        return _ProcessesCollector(context, findings)

    def combine(self, parts: Sequence[ProcessesResult]) -> ProcessesResult:
        return ProcessesResult(
            *(IntTable.merged([getattr(p, n) for p in parts]) for n in ("files", "apps", "phases"))
        )

    def aggregate(self, combined: ProcessesResult, workload: Workload, findings: SurveyFindings) -> ProcessCounts:
        files = combined.files
        app, file = unpack(combined.apps.keys, (len(workload.apps), workload.files + 1))
        return ProcessCounts(
            FileUsers(files.keys, *(files.stored(name) for name in ("processes", "readers", "writers"))),
            app,
            file - 1,
            combined.phases.at(np.arange(findings.phases), "processes"),
        )


class _ProcessesCollector:
    def __init__(self, context: Context, findings: SurveyFindings) -> None:
        workload = context.workload
        self._app = context.app
        self._of_file = (workload.processes, workload.files + 1)
        self._of_phase = (workload.processes, findings.phases + 1)
        self._of_app = (len(workload.apps), workload.files + 1)
        self._uses = IntTableBuilder({"readers": "max", "writers": "max"})
        self._in_phase = IntTableBuilder()

    def add(self, batch: Batch) -> None:
        if not len(batch):
            return
        groups = batch.groups
        read, write = groups.kind == Kind.READ, groups.kind == Kind.WRITE
        opens = (groups.flags & Flag.OPEN) != 0
        uses = (groups.file >= 0) & (read | write | opens) & ((groups.flags & Flag.DIRECTORY) == 0)
        self._uses.add(
            pack((groups.process[uses], groups.file[uses] + 1), self._of_file),
            {"readers": read[uses].astype(np.int64), "writers": write[uses].astype(np.int64)},
        )
        included = groups.included
        self._in_phase.add(pack((groups.process[included], groups.phase[included]), self._of_phase), {})

    def result(self) -> ProcessesResult:
        uses, in_phase = self._uses.table(), self._in_phase.table()
        files = apps = phases = IntTable()
        if len(uses):
            columns = {"processes": np.ones(len(uses), np.int64), **uses.columns}
            _, file = unpack(uses.keys, self._of_file)
            files = group(file - 1, columns)
            apps = group(pack((self._app, file), self._of_app), columns)
        if len(in_phase):
            _, phase = unpack(in_phase.keys, self._of_phase)
            phases = group(phase, {"processes": np.ones(len(in_phase), np.int64)})
        return ProcessesResult(files, apps, phases)
