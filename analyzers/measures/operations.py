"""Number of calls and their bytes, per phase and file (tables III to V, X, XI: "I/O amount", "I/O ops dist").

A data operation is a read or write of layers posix and stdio, a flush is one of fsync, fdatasync, fflush, msync and
sync_file_range, a metadata operation every other call of these layers; a call made inside another of them is not
counted again. `bytes` is what the calls asked for (moved, where the trace stores return values). Unit: calls, bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vani.analyzers.base import Batch, Context, Facts
from vani.analyzers.keyed import Dense, Keyed
from vani.calls import Flag, Kind

__all__ = ["Operations"]

_HOW = {"first": "min", "last": "max"}


class Operations:
    """Columns per listed cell: operations of each kind, their bytes, opens, and when they took place.

    reads, writes, metadata, syncs, bytes_read, bytes_written, unsized, opens, first and last (ns).
    """

    name = "operations"
    columns = frozenset({"kind", "file", "bytes", "start_ns", "duration_ns", "rank", "via", "within"})

    def begin(self, context: Context, facts: Facts | None) -> _Collector:
        del context, facts
        return _Collector()

    def combine(self, parts: Sequence[Keyed]) -> Keyed:
        return Keyed.merged(parts, _HOW)  # type: ignore[arg-type]


class _Collector:
    def __init__(self) -> None:
        self._parts: list[Keyed] = []

    def add(self, batch: Batch) -> None:
        if not len(batch):
            return
        cell, alike = batch.listed_cell, batch.alike
        groups = Dense(cell.keys, cell.codes[alike.row])
        kind = batch.kind[alike.row]
        read, write = kind == Kind.READ, kind == Kind.WRITE
        size = batch.alike_bytes
        first = np.full(len(cell.keys), np.iinfo(np.int64).max)
        last = np.full(len(cell.keys), np.iinfo(np.int64).min)
        np.minimum.at(first, cell.codes, batch.start)
        np.maximum.at(last, cell.codes, batch.end)
        self._parts.append(
            Keyed(
                cell.keys,
                {
                    "reads": groups.sum(alike.count, read),
                    "writes": groups.sum(alike.count, write),
                    "metadata": groups.sum(alike.count, kind == Kind.METADATA),
                    "syncs": groups.sum(alike.count, kind == Kind.SYNC),
                    "bytes_read": groups.sum(size, read),
                    "bytes_written": groups.sum(size, write),
                    "unsized": cell.count(batch.unsized),
                    "opens": groups.sum(alike.count, (batch.flags[alike.row] & Flag.OPEN) != 0),
                    "first": first,
                    "last": last,
                },
            )
        )
        if len(self._parts) > 64:
            self._parts = [Keyed.merged(self._parts, _HOW)]  # type: ignore[arg-type]

    def result(self) -> Keyed:
        return Keyed.merged(self._parts, _HOW)  # type: ignore[arg-type]
