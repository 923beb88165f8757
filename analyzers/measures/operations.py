"""Number of calls and their bytes, per phase and file (tables III to V, X, XI: "I/O amount", "I/O ops dist").

A data operation is a read or write of layers posix and stdio, a flush is one of fsync, fdatasync, fflush, msync and
sync_file_range, a metadata operation every other call of these layers; a call made inside another of them is not
counted again. `bytes` is what the calls asked for (moved, where the trace stores return values). Unit: calls, bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch, phases_and_files
from vani.analyzers.tables.int_table import Factorized, How, IntTable
from vani.analyzers.tables.row_buffer import RowBuffer
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context, Workload
from vani.calls import Flag, Kind

__all__ = ["OperationCounts", "Operations"]

Ints = NDArray[np.int64]
_HOW: dict[str, How] = {"first": "min", "last": "max"}


@dataclass(frozen=True, eq=False)
class OperationCounts:
    """Per phase and listed file; shape (n,) each. Integers of any size: to be added up with `group`."""

    phase: Ints
    """The number of phases stands for excluded calls."""
    file: Ints
    """-1: none, or none that is listed."""
    reads: Ints
    writes: Ints
    metadata: Ints
    syncs: Ints
    bytes_read: Ints
    bytes_written: Ints
    unsized: Ints
    """Data operations whose size is not known."""
    opens: Ints
    first: Ints
    """Start of the first call, ns; 0 where no time is known."""
    last: Ints
    """End of the last call, ns."""

    def __len__(self) -> int:
        return len(self.phase)


class Operations:
    """Columns per listed phase and file: operations of each kind, their bytes, opens, and when they took place.

    reads, writes, metadata, syncs, bytes_read, bytes_written, unsized, opens, first and last (ns).
    """

    name = "operations"
    result = OperationCounts
    columns = frozenset({"kind", "file", "bytes", "start_ns", "duration_ns", "rank", "via", "within"})

    def begin(self, context: Context, findings: SurveyFindings | None) -> _Collector:
        del context, findings
        return _Collector()

    def combine(self, parts: Sequence[IntTable]) -> IntTable:
        return IntTable.merged(parts, _HOW)

    def finish(self, combined: IntTable, workload: Workload, findings: SurveyFindings) -> OperationCounts:
        phase, file = phases_and_files(combined.keys, workload, findings)
        return OperationCounts(phase, file, *(combined.stored(f.name) for f in fields(OperationCounts)[2:]))


class _Collector:
    def __init__(self) -> None:
        self._rows = RowBuffer()
        self._parts: list[IntTable] = []

    def add(self, batch: Batch) -> None:
        if not len(batch):
            return
        # One row stands for all calls that are alike.
        examples = batch.examples
        if self._rows.add(
            examples.listed_phase_file_key,
            examples.kind,
            examples.flags,
            batch.call_groups.count,
            batch.group_bytes,
            batch.group_unsized,
            batch.group_starts[0],
            batch.group_ends,
        ):
            self._count()

    def _count(self) -> None:
        if not len(self._rows):
            return
        phase_file, kind, flags, count, size, unsized, start, end = self._rows.take()
        groups = Factorized.of(phase_file)
        read, write = kind == Kind.READ, kind == Kind.WRITE
        first = np.full(len(groups.keys), np.iinfo(np.int64).max)
        last = np.full(len(groups.keys), np.iinfo(np.int64).min)
        np.minimum.at(first, groups.codes, start)
        np.maximum.at(last, groups.codes, end)
        self._parts.append(
            IntTable(
                groups.keys,
                {
                    "reads": groups.sum(count, read),
                    "writes": groups.sum(count, write),
                    "metadata": groups.sum(count, kind == Kind.METADATA),
                    "syncs": groups.sum(count, kind == Kind.SYNC),
                    "bytes_read": groups.sum(size, read),
                    "bytes_written": groups.sum(size, write),
                    "unsized": groups.sum(unsized),
                    "opens": groups.sum(count, (flags & Flag.OPEN) != 0),
                    "first": first,
                    "last": last,
                },
            )
        )
        if len(self._parts) > 64:
            self._parts = [IntTable.merged(self._parts, _HOW)]

    def result(self) -> IntTable:
        self._count()
        return IntTable.merged(self._parts, _HOW)
