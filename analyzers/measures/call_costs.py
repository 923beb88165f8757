"""What each function costs, per phase and file: calls, their time and their bytes.

Time is the length of the calls, added up: of two threads that are in a call at the same time both count, unlike in
I/O time, so that the times of functions are those that the trace shows. Unit: calls, nanoseconds, bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vani.analyzers.base import Batch, Context, Facts
from vani.analyzers.keyed import Dense, Keyed
from vani.calls import Kind

__all__ = ["CallCosts"]


class CallCosts:
    """Columns by listed cell * functions of the workload + function.

    `count`, `time`, `bytes`, how many of the calls are operations on `data` or on `metadata`, and of how many of `data`
    the size is not known, `unsized`.
    """

    name = "call_costs"
    columns = frozenset({"rank", "kind", "file", "func", "bytes", "start_ns", "duration_ns", "via", "within"})

    def begin(self, context: Context, facts: Facts | None) -> _Collector:
        del facts
        return _Collector(context)

    def combine(self, parts: Sequence[Keyed]) -> Keyed:
        return Keyed.merged(parts)


class _Collector:
    def __init__(self, context: Context) -> None:
        self._functions = len(context.world.functions)
        self._parts: list[Keyed] = []

    def add(self, batch: Batch) -> None:
        if not len(batch):
            return
        cell, alike = batch.listed_cell, batch.alike
        rows = alike.row
        dense = Dense.of(cell.keys[cell.codes[rows]] * self._functions + batch.function[rows])
        kind = batch.kind[rows]
        columns = {
            "count": alike.count,
            "time": batch.alike_time,
            "bytes": batch.alike_bytes,
            "data": np.where(kind <= Kind.WRITE, alike.count, 0),
            "metadata": np.where(kind == Kind.METADATA, alike.count, 0),
            "unsized": batch.alike_unsized,
        }
        self._parts.append(Keyed(dense.keys, {n: dense.sum(c) for n, c in columns.items()}))
        if len(self._parts) > 64:
            self._parts = [Keyed.merged(self._parts)]

    def result(self) -> Keyed:
        return Keyed.merged(self._parts)
