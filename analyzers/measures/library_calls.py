"""Calls of I/O libraries by function: their number and time, including everything inside them.

An MPI-IO call made by HDF5 counts in both. Unit: calls, nanoseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch
from vani.analyzers.measures.library_time import LIBRARIES
from vani.analyzers.tables.int_table import IntTable, IntTableBuilder
from vani.analyzers.tables.keys import LAYERS, pack, unpack
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context, Workload

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LibraryCallTimes:
    """Per app, library and function; shape (n,) each."""

    app: Ints
    layer: Ints
    function: Ints
    """Code in `Workload.functions`."""
    count: Ints
    time: Ints
    """ns, summed over processes."""


class LibraryCalls:
    """Columns `count` and `time` by app, layer and function."""

    name = "library_calls"
    result = LibraryCallTimes
    columns = frozenset({"rank", "kind", "file", "func", "bytes", "start_ns", "duration_ns", "via", "within"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _Collector:
        del findings
        return _Collector(context)

    def combine(self, parts: Sequence[IntTable]) -> IntTable:
        return IntTable.merged(parts)

    def aggregate(self, combined: IntTable, workload: Workload, findings: SurveyFindings) -> LibraryCallTimes:
        del findings
        app, layer, function = unpack(combined.keys, (len(workload.apps), LAYERS, len(workload.functions)))
        return LibraryCallTimes(app, layer, function, combined["count"], combined["time"])


class _Collector:
    def __init__(self, context: Context) -> None:
        self._app = context.app
        self._widths = (len(context.workload.apps), LAYERS, len(context.workload.functions))
        self._sums = IntTableBuilder()

    def add(self, batch: Batch) -> None:
        groups = batch.uncounted_groups
        wanted = np.isin(groups.layer, LIBRARIES)
        if not wanted.any():
            return
        durations = batch.all_calls("duration_ns")
        if groups.rows is not None:
            durations = durations[groups.rows]
        # Exact, because a batch has less than 2^53 ns, 104 days.
        time = np.bincount(groups.codes, weights=durations, minlength=len(groups)).astype(np.int64)
        keys = pack((self._app, groups.layer[wanted], groups.function[wanted]), self._widths)
        self._sums.add(keys, {"count": groups.count[wanted], "time": time[wanted]})

    def result(self) -> IntTable:
        return self._sums.table()
