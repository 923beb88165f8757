"""Sizes of data operations, exact: operations of each size, per phase and file (tables VI, VII: "granularity").

Unit: bytes. Operations whose size the trace does not tell are counted by `Operations` as unsized.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vani.analyzers.base import NO_VALUE, Batch, Context, Facts, Pairs, count_pairs
from vani.calls import Kind

__all__ = ["TransferSize"]


class TransferSize:
    """Counts by (cell * 2 + direction, size); direction 0 read, 1 write."""

    name = "transfer_size"
    columns = frozenset({"kind", "file", "bytes", "start_ns", "rank"})

    def begin(self, context: Context, facts: Facts | None) -> _Collector:
        del context, facts
        return _Collector()

    def combine(self, parts: Sequence[Pairs]) -> Pairs:
        return Pairs.merged(parts)


class _Collector:
    def __init__(self) -> None:
        self._parts: list[Pairs] = []

    def add(self, batch: Batch) -> None:
        rows = np.flatnonzero((batch.kind <= Kind.WRITE) & (batch.bytes != NO_VALUE))
        if not len(rows):
            return
        side = batch.cell.codes[rows] * 2 + batch.kind[rows]
        pairs = count_pairs(side, batch.bytes[rows])
        keys = batch.cell.keys[pairs.first // 2] * 2 + pairs.first % 2
        self._parts.append(Pairs(keys, pairs.second, pairs.count))
        if len(self._parts) > 32:
            self._parts = [Pairs.merged(self._parts)]

    def result(self) -> Pairs:
        return Pairs.merged(self._parts)
