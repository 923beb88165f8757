"""Cost of each function, per phase and file: calls, their time and their bytes.

Time is the sum of the calls' durations: two threads in a call at the same time both count, unlike in
I/O time, so that functions' times are those in the trace. Unit: calls, nanoseconds, bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch
from vani.analyzers.calls.call_columns import phases_and_files
from vani.analyzers.tables.int_table import IntTable, IntTableBuilder
from vani.analyzers.tables.keys import pack
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context, Workload
from vani.calls import Kind

Ints = NDArray[np.int64]


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

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _Collector:
        del findings
        return _Collector(context)

    def combine(self, parts: Sequence[IntTable]) -> IntTable:
        return IntTable.merged(parts)

    def aggregate(self, combined: IntTable, workload: Workload, findings: SurveyFindings) -> FunctionCosts:
        columns = (combined.stored(f.name) for f in fields(FunctionCosts)[3:])
        return FunctionCosts(*phases_and_files(combined.keys, workload, findings, len(workload.functions)), *columns)


class _Collector:
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
