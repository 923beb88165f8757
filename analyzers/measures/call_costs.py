"""What each function costs, per phase and file: calls, their time and their bytes.

Time is the length of the calls, added up: of two threads that are in a call at the same time both count, unlike in
I/O time, so that the times of functions are those that the trace shows. Unit: calls, nanoseconds, bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.batch import Batch, cells_of
from vani.analyzers.facts import Facts
from vani.analyzers.gathered import Gathered
from vani.analyzers.keyed import Dense, Keyed
from vani.analyzers.keys import pack
from vani.analyzers.world import Context, World
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
    """Code in `World.functions`."""
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
    """Columns by listed cell and function.

    `count`, `time`, `bytes`, how many of the calls are operations on `data` or on `metadata`, and of how many of `data`
    the size is not known, `unsized`.
    """

    name = "call_costs"
    result = FunctionCosts
    columns = frozenset({"rank", "kind", "file", "func", "bytes", "start_ns", "duration_ns", "via", "within"})

    def begin(self, context: Context, facts: Facts | None) -> _Collector:
        del facts
        return _Collector(context)

    def combine(self, parts: Sequence[Keyed]) -> Keyed:
        return Keyed.merged(parts)

    def finish(self, combined: Keyed, world: World, facts: Facts) -> FunctionCosts:
        columns = (combined.stored(f.name) for f in fields(FunctionCosts)[3:])
        return FunctionCosts(*cells_of(combined.keys, world, facts, len(world.functions)), *columns)


class _Collector:
    def __init__(self, context: Context) -> None:
        self._functions = len(context.world.functions)
        self._cells = 0
        self._rows = Gathered()
        self._parts: list[Keyed] = []

    def add(self, batch: Batch) -> None:
        if not len(batch):
            return
        examples, self._cells = batch.examples, batch.cells
        if self._rows.add(
            examples.listed_key,
            examples.function,
            examples.kind,
            batch.alike.count,
            batch.alike_time,
            batch.alike_bytes,
            batch.alike_unsized,
        ):
            self._count()

    def _count(self) -> None:
        if not len(self._rows):
            return
        cell, function, kind, count, time, size, unsized = self._rows.take()
        dense = Dense.of(pack((cell, function), (self._cells, self._functions)))
        columns = {
            "count": count,
            "time": time,
            "bytes": size,
            "data": np.where(kind <= Kind.WRITE, count, 0),
            "metadata": np.where(kind == Kind.METADATA, count, 0),
            "unsized": unsized,
        }
        self._parts.append(Keyed(dense.keys, {n: dense.sum(c) for n, c in columns.items()}))
        if len(self._parts) > 64:
            self._parts = [Keyed.merged(self._parts)]

    def result(self) -> Keyed:
        self._count()
        return Keyed.merged(self._parts)
