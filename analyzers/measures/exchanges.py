"""Who reads what another wrote: the data of process and app dependencies (tables III and IV).

Kept per process and file, for files of the data set that are both written and read, under whatever name (a file that
is renamed counts under its last one): when it first wrote and first and last read, and how much. Where no write (no
read) of a file is in the trace, opens that empty it (that only read it) stand for them: formatted output and input of
streams leaves no records. Unit: nanoseconds, bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vani.analyzers.base import NO_VALUE, Batch, Context, Facts
from vani.analyzers.keyed import Dense, How, Keyed
from vani.calls import Flag, Kind

__all__ = ["HOW", "NEVER", "Exchanges"]

NEVER = np.iinfo(np.int64).max
HOW: dict[str, How] = {"first_write": "min", "first_read": "min", "last_read": "max"}
"""How exchanges become one; bytes are added up."""


class Exchanges:
    """Columns by process * (files + 1) + file + 1: first_write, first_read (`NEVER` if not), last_read, bytes."""

    name = "exchanges"
    columns = frozenset({"rank", "kind", "file", "bytes", "start_ns"})

    def begin(self, context: Context, facts: Facts | None) -> _Collector:
        if facts is None:
            raise ValueError("what files are exchanged is known in the second pass")
        return _Collector(context, facts)

    def combine(self, parts: Sequence[Keyed]) -> Keyed:
        return Keyed.merged(parts, HOW)


class _Collector:
    def __init__(self, context: Context, facts: Facts) -> None:
        self._linked, self._by_open = facts.linked, facts.linked_by_open
        self._files = context.world.files + 1
        self._final = context.world.final_name
        self._parts: list[Keyed] = []

    def add(self, batch: Batch) -> None:
        if not self._linked.any():
            return
        file = batch.file
        moves = batch.kind <= Kind.WRITE
        named = np.maximum(file, 0)
        anew = (batch.flags & Flag.TRUNCATE) != 0
        if self._by_open.any():
            looks = (batch.flags & (Flag.OPEN | Flag.WRITABLE | Flag.DIRECTORY)) == Flag.OPEN
            moves = moves | ((anew | looks) & self._by_open[named])
        rows = np.flatnonzero(moves & (file >= 0) & self._linked[named])
        if not len(rows):
            return
        dense = Dense.of(batch.process[rows] * self._files + self._final[file[rows]] + 1)
        start = batch.start[rows]
        write = (batch.kind[rows] == Kind.WRITE) | anew[rows]
        size = np.where(batch.bytes[rows] == NO_VALUE, 0, batch.bytes[rows])
        columns = {n: np.full(len(dense.keys), NEVER) for n in ("first_write", "first_read")}
        columns["last_read"] = np.full(len(dense.keys), -NEVER)
        np.minimum.at(columns["first_write"], dense.codes[write], start[write])
        np.minimum.at(columns["first_read"], dense.codes[~write], start[~write])
        np.maximum.at(columns["last_read"], dense.codes[~write], start[~write])
        columns["bytes_written"] = dense.sum(size, write)
        columns["bytes_read"] = dense.sum(size, ~write)
        self._parts.append(Keyed(dense.keys, columns))
        if len(self._parts) > 64:
            self._parts = [self.result()]

    def result(self) -> Keyed:
        return Keyed.merged(self._parts, HOW)
