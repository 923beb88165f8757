"""Number of calls and their bytes, per phase and file (tables III to V, X, XI: "I/O amount", "I/O ops dist").

A data operation is a read or write of layers posix and stdio, a flush is one of fsync, fdatasync, fflush, msync and
sync_file_range, and a metadata operation is any other call of these layers. A call inside another of them is not
counted again. `bytes` are the requested bytes (moved bytes, if the trace stores return values). Unit: calls, bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch
from vani.analyzers.calls.call_columns import phases_and_files
from vani.analyzers.tables.int_table import How, IntTable, IntTableBuilder
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

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _Collector:
        del context, findings
        return _Collector()

    def combine(self, parts: Sequence[IntTable]) -> IntTable:
        return IntTable.merged(parts, _HOW)

    def aggregate(self, combined: IntTable, workload: Workload, findings: SurveyFindings) -> OperationCounts:
        phase, file = phases_and_files(combined.keys, workload, findings)
        return OperationCounts(phase, file, *(combined.stored(f.name) for f in fields(OperationCounts)[2:]))


class _Collector:
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
