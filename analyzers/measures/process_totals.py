"""What each process moves in all (table IV, balance of processes): bytes and operations on files of the data set.

Unit: bytes, operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.batch import Batch
from vani.analyzers.facts import Facts
from vani.analyzers.gathered import Gathered
from vani.analyzers.keyed import Dense, Keyed
from vani.analyzers.world import Context, World
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

    def begin(self, context: Context, facts: Facts | None) -> _Collector:
        del context, facts
        return _Collector()

    def combine(self, parts: Sequence[Keyed]) -> Keyed:
        return Keyed.merged(parts)

    def finish(self, combined: Keyed, world: World, facts: Facts) -> MovedByProcess:
        del facts
        every = np.arange(world.processes)
        return MovedByProcess(*(combined.at(every, name) for name in ("bytes", "reads", "writes")))


class _Collector:
    def __init__(self) -> None:
        self._rows = Gathered()
        self._parts: list[Keyed] = []

    def add(self, batch: Batch) -> None:
        if not len(batch):
            return
        examples = batch.examples
        sums = (batch.alike.count, batch.alike_bytes)
        if self._rows.add(examples.included, examples.process, examples.kind, *sums):
            self._count()

    def _count(self) -> None:
        if not len(self._rows):
            return
        included, *columns = self._rows.take()
        process, kind, count, size = (column[included] for column in columns)
        dense = Dense.of(process)
        read, write = kind == Kind.READ, kind == Kind.WRITE
        sums = {
            "bytes": dense.sum(size, read | write),
            "reads": dense.sum(count, read),
            "writes": dense.sum(count, write),
        }
        self._parts.append(Keyed(dense.keys, sums))
        if len(self._parts) > 64:
            self._parts = [Keyed.merged(self._parts)]

    def result(self) -> Keyed:
        self._count()
        return Keyed.merged(self._parts)
