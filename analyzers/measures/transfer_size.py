"""Sizes of data operations, exact: operations of each size, per phase and file (tables VI, VII: "granularity").

Unit: bytes. Operations whose size the trace does not tell are counted by `Operations` as unsized.
"""

from __future__ import annotations

from collections.abc import Sequence

from vani.analyzers.base import Batch, Context, Facts, Pairs, count_pairs

__all__ = ["TransferSize"]


class TransferSize:
    """Counts by (listed cell * 2 + direction, size); direction 0 read, 1 write."""

    name = "transfer_size"
    columns = frozenset({"rank", "kind", "file", "bytes", "start_ns", "via", "within"})

    def begin(self, context: Context, facts: Facts | None) -> _Collector:
        del context, facts
        return _Collector()

    def combine(self, parts: Sequence[Pairs]) -> Pairs:
        return Pairs.merged(parts)


class _Collector:
    def __init__(self) -> None:
        self._parts: list[Pairs] = []

    def add(self, batch: Batch) -> None:
        if not len(batch):
            return
        sizes, row = batch.sizes, batch.alike.row[batch.sizes.first]
        side = batch.listed_cell.keys[batch.listed_cell.codes[row]] * 2 + batch.kind[row]
        self._parts.append(count_pairs(side, sizes.second, sizes.count))
        if len(self._parts) > 32:
            self._parts = [Pairs.merged(self._parts)]

    def result(self) -> Pairs:
        return Pairs.merged(self._parts)
