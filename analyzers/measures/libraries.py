"""What goes through which library (tables VI and VII).

For file-system calls: bytes by every layer that they were made through, once in each: an H5Dwrite that
becomes an MPI_File_write_at that becomes a pwrite64 counts in hdf5, mpiio and posix. For calls of libraries
themselves: how many, and how many of the data calls are collective; their time is in `library_time`.
Unit: calls, bytes, nanoseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch
from vani.analyzers.tables.int_table import Factorized, IntTable, Pairs, count_pairs
from vani.analyzers.tables.keys import LAYERS, pack, unpack
from vani.analyzers.tables.row_buffer import RowBuffer
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context, Workload
from vani.calls import Flag, Kind, Layer

__all__ = [
    "ABOVE_FILE_SYSTEM",
    "ANY_LIBRARY",
    "LayerFiles",
    "LayerSizes",
    "Libraries",
    "LibrariesResult",
    "LibraryUse",
    "under_any_library",
]

Ints = NDArray[np.int64]

ABOVE_FILE_SYSTEM = (Layer.MPIIO, Layer.HDF5, Layer.PNETCDF, Layer.NETCDF)
"""Libraries of I/O between the program and the file-system calls."""
ANY_LIBRARY = 15
"""Stands in `LibrariesResult.data` for all of them together; no layer has this number."""
_ANY = sum(1 << layer for layer in ABOVE_FILE_SYSTEM)


def under_any_library(within: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which calls were made through a library, by the layers that they lie within (a bit per layer)."""
    found: NDArray[np.bool_] = (within & _ANY) != 0
    return found


@dataclass(frozen=True, eq=False)
class LibrariesResult:
    """All by app and layer.

    `under`: file-system calls made under a call of the layer (or its own, for posix and stdio), with `files` (calls
    by file) and `data` (transfers by size, and once more for `ANY_LIBRARY`). `calls`: calls of the layer itself.
    `via` and `outer` (calls by file): file-system calls by the outermost layer alone, so that they add up over layers.
    """

    under: IntTable
    calls: IntTable
    files: Pairs
    data: Pairs
    outer: Pairs
    via: IntTable


@dataclass(frozen=True, eq=False)
class LayerFiles:
    """File-system calls that use a file, by layer; shape (n,) each."""

    app: NDArray[np.int32]
    layer: NDArray[np.int8]
    file: NDArray[Any]
    """-1 for none."""
    count: NDArray[Any]


@dataclass(frozen=True, eq=False)
class LayerSizes:
    """Data operations of each size, by layer (and once more for `ANY_LIBRARY`); shape (n,) each."""

    app: NDArray[np.int32]
    layer: NDArray[np.int8]
    size: NDArray[np.int64]
    count: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LibraryUse:
    """File-system calls on files of the data set by the layers that they were made through, and calls of the layers.

    Arrays have the shape (apps, LAYERS).
    """

    used: NDArray[np.bool_]
    """There is a call of the layer, or under it."""
    bytes_read: NDArray[np.int64]
    """By calls under a call of the layer, or its own, for posix and stdio; as `bytes_written`, `files` and `sizes`."""
    bytes_written: NDArray[np.int64]
    read_unknown: NDArray[np.bool_]
    """There are such reads, and the size of none of them is known; as `written_unknown`."""
    written_unknown: NDArray[np.bool_]
    calls: NDArray[np.int64]
    """Calls of the layer itself."""
    data_calls: NDArray[np.int64]
    """Of them, those that transfer data."""
    collective_calls: NDArray[np.int64]
    """Of those, the collective ones."""
    outermost_bytes: NDArray[np.int64]
    """By calls whose outermost layer it is, so that they add up over layers; as the other `outermost_` ones."""
    outermost_calls: NDArray[np.int64]
    files: LayerFiles
    sizes: LayerSizes
    outermost_files: LayerFiles
    caller_unknown: NDArray[np.bool_]
    """Shape (apps,): of some of its calls it is not known which library made them."""
    caller_unknown_files: NDArray[np.int64]
    """Codes of files with such calls."""


def _layers(keys: NDArray[Any], apps: int) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    app, layer = unpack(keys, (apps, LAYERS))
    return app.astype(np.int32), layer.astype(np.int8)


class Libraries:
    """See the module's docstring."""

    name = "libraries"
    result = LibraryUse
    columns = frozenset({"rank", "kind", "file", "bytes", "start_ns", "duration_ns", "via", "within"})

    def begin(self, context: Context, findings: SurveyFindings | None) -> _Collector:
        del findings
        return _Collector(context)

    def combine(self, parts: Sequence[LibrariesResult]) -> LibrariesResult:
        return LibrariesResult(
            IntTable.merged([p.under for p in parts]),
            IntTable.merged([p.calls for p in parts]),
            Pairs.merged([p.files for p in parts], packed=True),
            Pairs.merged([p.data for p in parts]),
            Pairs.merged([p.outer for p in parts], packed=True),
            IntTable.merged([p.via for p in parts]),
        )

    def finish(self, combined: LibrariesResult, workload: Workload, findings: SurveyFindings) -> LibraryUse:
        del findings
        apps = len(workload.apps)

        def by_layer(table: IntTable, column: str) -> NDArray[np.int64]:
            found = np.zeros((apps, LAYERS), np.int64)
            found[unpack(table.keys, (apps, LAYERS))] = table[column]
            return found

        def of_no_size(side: str) -> NDArray[np.bool_]:
            calls, unsized = (by_layer(combined.under, name) for name in (side, f"unsized_{side}"))
            unknown: NDArray[np.bool_] = (calls > 0) & (calls == unsized)
            return unknown

        used = np.zeros((apps, LAYERS), np.bool_)
        for table in (combined.under, combined.calls):
            used[unpack(table.keys, (apps, LAYERS))] = True
        files, outer, data = combined.files, combined.outer, combined.data
        return LibraryUse(
            used,
            by_layer(combined.under, "bytes_read"),
            by_layer(combined.under, "bytes_written"),
            of_no_size("reads"),
            of_no_size("writes"),
            by_layer(combined.calls, "calls"),
            by_layer(combined.calls, "data"),
            by_layer(combined.calls, "collective"),
            by_layer(combined.via, "bytes"),
            by_layer(combined.via, "calls"),
            LayerFiles(*_layers(files.first, apps), files.second, files.count),
            LayerSizes(*_layers(data.first, apps), data.second, data.count),
            LayerFiles(*_layers(outer.first, apps), outer.second, outer.count),
            np.zeros(apps, np.bool_),
            np.empty(0, np.int64),
        )


class _Collector:
    def __init__(self, context: Context) -> None:
        self._widths = (len(context.workload.apps), LAYERS)
        self._app = context.app
        self._groups, self._sizes, self._own = RowBuffer(), RowBuffer(), RowBuffer()
        self._under: list[IntTable] = []
        self._calls: list[IntTable] = []
        self._files: list[Pairs] = []
        self._data: list[Pairs] = []
        self._outer: list[Pairs] = []
        self._via: list[IntTable] = []

    def _of_layer(self, layer: NDArray[Any] | int) -> Ints:
        return pack((self._app, layer), self._widths)

    def add(self, batch: Batch) -> None:
        every = batch.every
        if self._own.add(*(every[name] for name in ("layer", "kind", "flags", "count"))):
            self._count_own()
        if not len(batch):
            return
        examples, sizes = batch.examples, batch.sizes
        within, included = examples.within, examples.included
        attributes = (within, examples.kind, examples.flags, examples.file, examples.via)
        sums = (batch.call_groups.count, batch.group_bytes, batch.group_unsized)
        if self._groups.add(included, *attributes, *sums):
            self._count_groups()
        if self._sizes.add(included[sizes.first], within[sizes.first], sizes.second, sizes.count):
            self._count_sizes()

    def _count_groups(self) -> None:
        if not len(self._groups):
            return
        included, *columns = self._groups.take()
        if not included.any():
            return
        layers, kind, flags, file, via, count, size, unsized = (column[included] for column in columns)
        read, write = kind == Kind.READ, kind == Kind.WRITE
        moves = read | write
        uses = moves | ((flags & Flag.OPEN) != 0)
        uses &= (flags & Flag.DIRECTORY) == 0
        via = self._of_layer(via)
        self._outer.append(count_pairs(via[uses], file[uses], count[uses]))
        dense = Factorized.of(via)
        self._via.append(IntTable(dense.keys, {"bytes": dense.sum(size, moves), "calls": dense.sum(count)}))
        seen = int(np.bitwise_or.reduce(layers))
        for layer in range(seen.bit_length()):
            if not seen >> layer & 1:
                continue
            # A call counts once in each layer that it was made through.
            mine = (layers >> layer & 1).astype(np.bool_)
            key = int(self._of_layer(layer))
            sums = {
                "reads": count[read & mine],
                "writes": count[write & mine],
                "bytes_read": size[read & mine],
                "bytes_written": size[write & mine],
                "unsized_reads": unsized[read & mine],
                "unsized_writes": unsized[write & mine],
            }
            self._under.append(IntTable(np.array([key]), {n: np.array([c.sum()]) for n, c in sums.items()}))
            used = uses & mine
            self._files.append(count_pairs(np.full(int(used.sum()), key), file[used], count[used]))
        for store in (self._files, self._outer):
            if len(store) > 32:
                store[:] = [Pairs.merged(store)]
        if len(self._under) > 64:
            self._under, self._via = [IntTable.merged(self._under)], [IntTable.merged(self._via)]

    def _count_sizes(self) -> None:
        if not len(self._sizes):
            return
        included, *columns = self._sizes.take()
        within, size, count = (column[included] for column in columns)
        found = count_pairs(within.astype(np.int64), size, count)
        made = {
            layer: (found.first >> layer & 1).astype(np.bool_)
            for layer in range(int(np.bitwise_or.reduce(found.first, initial=0)).bit_length())
        }
        for layer, mine in (made | {ANY_LIBRARY: under_any_library(found.first)}).items():
            if mine.any():
                key = np.full(int(mine.sum()), self._of_layer(layer))
                self._data.append(count_pairs(key, found.second[mine], found.count[mine]))
        if len(self._data) > 32:
            self._data = [Pairs.merged(self._data)]

    def _count_own(self) -> None:
        if not len(self._own):
            return
        layer, *columns = self._own.take()
        mine = layer != Layer.USER
        if not mine.any():
            return
        layer, kind, flags, count = (column[mine] for column in (layer, *columns))
        dense = Factorized.of(self._of_layer(layer))
        data = kind <= Kind.WRITE
        self._calls.append(
            IntTable(
                dense.keys,
                {
                    "calls": dense.sum(count),
                    "data": dense.sum(count, data),
                    "collective": dense.sum(count, data & ((flags & Flag.COLLECTIVE) != 0)),
                },
            )
        )
        if len(self._calls) > 64:
            self._calls = [IntTable.merged(self._calls)]

    def result(self) -> LibrariesResult:
        self._count_own()
        self._count_groups()
        self._count_sizes()
        return LibrariesResult(
            IntTable.merged(self._under),
            IntTable.merged(self._calls),
            Pairs.merged(self._files, packed=True),
            Pairs.merged(self._data),
            Pairs.merged(self._outer, packed=True),
            IntTable.merged(self._via),
        )
