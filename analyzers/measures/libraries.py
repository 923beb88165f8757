"""What goes through which library (tables VI and VII).

For file-system calls: bytes and time by the layer of the outermost traced call they were made in, so nesting counts
once. For calls of libraries themselves: how many, how many of the data calls are collective, and the time of those
that no other traced call surrounds. Unit: calls, bytes, nanoseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vani.analyzers.base import NO_VALUE, Batch, Context, Facts, Pairs, count_pairs
from vani.analyzers.keyed import Dense, Keyed, group
from vani.calls import Flag, Kind, Layer

__all__ = ["Libraries", "LibrariesResult"]


@dataclass(frozen=True)
class LibrariesResult:
    """By app * 16 + layer. `under`: file-system calls made under it; `calls`: its own.

    `files` counts calls by (app * 16 + layer, file).

    `data` counts sizes of transfers made under the layer, by (app * 16 + layer, size).
    """

    under: Keyed
    calls: Keyed
    files: Pairs
    data: Pairs


class Libraries:
    """See the module's docstring."""

    name = "libraries"
    columns = frozenset({"rank", "kind", "file", "bytes", "duration_ns", "via", "depth"})

    def begin(self, context: Context, facts: Facts | None) -> _Collector:
        del facts
        return _Collector(context)

    def combine(self, parts: Sequence[LibrariesResult]) -> LibrariesResult:
        return LibrariesResult(
            Keyed.merged([p.under for p in parts]),
            Keyed.merged([p.calls for p in parts]),
            Pairs.merged([p.files for p in parts]),
            Pairs.merged([p.data for p in parts]),
        )


class _Collector:
    def __init__(self, context: Context) -> None:
        self._base = context.app * 16
        self._under: list[Keyed] = []
        self._calls: list[Keyed] = []
        self._files: list[Pairs] = []
        self._data: list[Pairs] = []

    def add(self, batch: Batch) -> None:
        self._add_own(batch)
        included = batch.included
        rows = np.flatnonzero(included)
        if not len(rows):
            return
        via = batch.via[rows].astype(np.int64) + self._base
        dense = Dense.of(via)
        kind = batch.kind[rows]
        size = np.where(batch.bytes[rows] == NO_VALUE, 0, batch.bytes[rows])
        read, write = kind == Kind.READ, kind == Kind.WRITE
        self._under.append(
            Keyed(
                dense.keys,
                {
                    "reads": dense.count(read),
                    "writes": dense.count(write),
                    "metadata": dense.count(kind == Kind.METADATA),
                    "bytes_read": dense.sum(size, read),
                    "bytes_written": dense.sum(size, write),
                    "time": dense.sum(batch.duration[rows]),
                },
            )
        )
        uses = read | write | ((batch.flags[rows] & Flag.OPEN) != 0)
        uses &= (batch.flags[rows] & Flag.DIRECTORY) == 0
        self._files.append(count_pairs(via[uses], batch.file[rows][uses]))
        moves = read | write
        self._data.append(count_pairs(via[moves], size[moves]))
        for store in (self._files, self._data):
            if len(store) > 32:
                store[:] = [Pairs.merged(store)]
        if len(self._under) > 64:
            self._under = [Keyed.merged(self._under)]

    def _add_own(self, batch: Batch) -> None:
        layer = batch.all_calls("layer")
        rows = np.flatnonzero(layer != Layer.USER)
        if not len(rows):
            return
        dense = Dense.of(layer[rows].astype(np.int64) + self._base)
        kind = batch.all_calls("kind")[rows]
        flags = batch.all_calls("flags")[rows]
        duration = batch.all_calls("duration_ns")[rows]
        own = batch.all_calls("via")[rows] == layer[rows]
        outer = own & (batch.all_calls("depth")[rows] == 0)
        data = kind <= Kind.WRITE
        self._calls.append(
            group(
                dense.keys,
                {
                    "calls": dense.count(),
                    "data": dense.count(data),
                    "collective": dense.count(data & ((flags & Flag.COLLECTIVE) != 0)),
                    "time": dense.sum(duration, outer),
                },
            )
        )
        if len(self._calls) > 64:
            self._calls = [Keyed.merged(self._calls)]

    def result(self) -> LibrariesResult:
        return LibrariesResult(
            Keyed.merged(self._under),
            Keyed.merged(self._calls),
            Pairs.merged(self._files),
            Pairs.merged(self._data),
        )
