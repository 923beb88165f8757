"""Totals of each process (table IV, balance of processes): bytes and operations on data set files.

Unit: bytes, operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch
from vani.analyzers.tables.int_table import IntTable, IntTableBuilder
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context, Workload
from vani.calls import Kind

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

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _Collector:
        del context, findings
        return _Collector()

    def combine(self, parts: Sequence[IntTable]) -> IntTable:
        return IntTable.merged(parts)

    def aggregate(self, combined: IntTable, workload: Workload, findings: SurveyFindings) -> MovedByProcess:
        del findings
        every = np.arange(workload.processes)
        return MovedByProcess(*(combined.at(every, name) for name in ("bytes", "reads", "writes")))


class _Collector:
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
