"""What each process moves in all (table IV, balance of processes): bytes and operations on files of the data set.

Unit: bytes, operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch
from vani.analyzers.tables.int_table import Factorized, IntTable
from vani.analyzers.tables.row_buffer import RowBuffer
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context, Workload
from vani.calls import Kind

__all__ = ["MovedByProcess", "ProcessTotals"]

Ints = NDArray[np.int64]


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

    def begin(self, context: Context, findings: SurveyFindings | None) -> _Collector:
        del context, findings
        return _Collector()

    def combine(self, parts: Sequence[IntTable]) -> IntTable:
        return IntTable.merged(parts)

    def finish(self, combined: IntTable, workload: Workload, findings: SurveyFindings) -> MovedByProcess:
        del findings
        every = np.arange(workload.processes)
        return MovedByProcess(*(combined.at(every, name) for name in ("bytes", "reads", "writes")))


class _Collector:
    def __init__(self) -> None:
        self._rows = RowBuffer()
        self._parts: list[IntTable] = []

    def add(self, batch: Batch) -> None:
        if not len(batch):
            return
        examples = batch.examples
        sums = (batch.call_groups.count, batch.group_bytes)
        if self._rows.add(examples.included, examples.process, examples.kind, *sums):
            self._count()

    def _count(self) -> None:
        if not len(self._rows):
            return
        included, *columns = self._rows.take()
        process, kind, count, size = (column[included] for column in columns)
        dense = Factorized.of(process)
        read, write = kind == Kind.READ, kind == Kind.WRITE
        sums = {
            "bytes": dense.sum(size, read | write),
            "reads": dense.sum(count, read),
            "writes": dense.sum(count, write),
        }
        self._parts.append(IntTable(dense.keys, sums))
        if len(self._parts) > 64:
            self._parts = [IntTable.merged(self._parts)]

    def result(self) -> IntTable:
        self._count()
        return IntTable.merged(self._parts)
