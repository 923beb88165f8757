"""What each function costs, per phase and file: calls, their time and their bytes.

Time is the length of the calls, added up: of two threads that are in a call at the same time both count, unlike in
I/O time, so that the times of functions are those that the trace shows. Unit: calls, nanoseconds, bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch, phases_and_files
from vani.analyzers.tables.int_table import Factorized, IntTable
from vani.analyzers.tables.keys import pack
from vani.analyzers.tables.row_buffer import RowBuffer
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context, Workload
from vani.calls import Kind

__all__ = ["CallCosts", "FunctionCosts"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FunctionCosts:
    """Per phase, listed file and function; shape (n,) each. Integers of any size: to be added up with `group`."""

    phase: Ints
    file: Ints
    """-1: none, or none that is listed."""
    function: Ints
    """Code in `Workload.functions`."""
    count: Ints
    time: Ints
    """ns; 0 where no time is known."""
    bytes: Ints
    data: Ints
    """Of the calls, those on data."""
    metadata: Ints
    unsized: Ints
    """Of those on data, how many do not tell their size."""


class CallCosts:
    """Columns by listed phase and file and function.

    `count`, `time`, `bytes`, how many of the calls are operations on `data` or on `metadata`, and of how many of `data`
    the size is not known, `unsized`.
    """

    name = "call_costs"
    result = FunctionCosts
    columns = frozenset({"rank", "kind", "file", "func", "bytes", "start_ns", "duration_ns", "via", "within"})

    def begin(self, context: Context, findings: SurveyFindings | None) -> _Collector:
        del findings
        return _Collector(context)

    def combine(self, parts: Sequence[IntTable]) -> IntTable:
        return IntTable.merged(parts)

    def finish(self, combined: IntTable, workload: Workload, findings: SurveyFindings) -> FunctionCosts:
        columns = (combined.stored(f.name) for f in fields(FunctionCosts)[3:])
        return FunctionCosts(*phases_and_files(combined.keys, workload, findings, len(workload.functions)), *columns)


class _Collector:
    def __init__(self, context: Context) -> None:
        self._functions = len(context.workload.functions)
        self._phase_files = 0
        self._rows = RowBuffer()
        self._parts: list[IntTable] = []

    def add(self, batch: Batch) -> None:
        if not len(batch):
            return
        examples, self._phase_files = batch.examples, batch.phase_file_width
        if self._rows.add(
            examples.listed_phase_file_key,
            examples.function,
            examples.kind,
            batch.call_groups.count,
            batch.group_time,
            batch.group_bytes,
            batch.group_unsized,
        ):
            self._count()

    def _count(self) -> None:
        if not len(self._rows):
            return
        phase_file, function, kind, count, time, size, unsized = self._rows.take()
        dense = Factorized.of(pack((phase_file, function), (self._phase_files, self._functions)))
        columns = {
            "count": count,
            "time": time,
            "bytes": size,
            "data": np.where(kind <= Kind.WRITE, count, 0),
            "metadata": np.where(kind == Kind.METADATA, count, 0),
            "unsized": unsized,
        }
        self._parts.append(IntTable(dense.keys, {n: dense.sum(c) for n, c in columns.items()}))
        if len(self._parts) > 64:
            self._parts = [IntTable.merged(self._parts)]

    def result(self) -> IntTable:
        self._count()
        return IntTable.merged(self._parts)
