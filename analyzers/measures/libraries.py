"""Calls, bytes and time by I/O library (tables VI and VII).

**Time** in calls of I/O libraries, and in the file-system calls made under them: per process and library (MPI-IO,
HDF5, PnetCDF, netCDF), the union of its calls' intervals: calls of a library within its own calls count once, and so
do simultaneous calls of several threads. The part outside file-system calls is data exchange between processes,
waiting, and packing. The same is measured for all libraries together, which gives a process's time in I/O calls of
any kind; and for posix and stdio in processes that run calls concurrently, whose durations do not add up. Unit:
nanoseconds.

**Calls by function**: their number and time, including everything inside them. An MPI-IO call made by HDF5 counts in
both. Unit: calls, nanoseconds.

**File-system calls**: their bytes count once in every layer through which they were made. An H5Dwrite that
becomes an MPI_File_write_at that becomes a pwrite64 counts in hdf5, mpiio and posix. Library calls
themselves: their number; `accesses` measures their requests. Unit: calls, bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from vani.analyzers.batch import Batch, CallGroups, CountedGroups, GroupedCalls
from vani.analyzers.int_table import LAYERS, Pairs, Sums, SumsBuilder, count_pairs, key_widths, pack, unpack
from vani.analyzers.intervals import RunningUnion
from vani.analyzers.measures.accesses import LIBRARIES
from vani.analyzers.passes import SumsCollector, SumsMeasure
from vani.analyzers.workload import Context, SurveyFindings, Workload
from vani.calls import Flag, Kind, Layer
from vani.columns import Bools, Int8s, Int32s, Ints, Numbers

ANY = 7
"""All libraries together."""
WIDTH = 8
"""Libraries, and `ANY`."""
_CODE = (2, WIDTH)
"""Widths of keys of whether calls are file-system calls made under a library, and of layer or `ANY`; under any library,
only calls on data set files."""
ANY_LIBRARY = 15
"""All of them together, in `LibrariesResult.data`; no layer has this number."""
_FIRST, _LAST = min(LIBRARIES), max(LIBRARIES)
_BITS = sum(1 << layer for layer in LIBRARIES)


@dataclass(frozen=True, eq=False)
class LibraryTimes:
    """Time of processes in ns, shape (processes, WIDTH) each; columns are layers or `ANY`."""

    calls: Ints
    """In library calls; in posix and stdio calls if the process runs calls concurrently."""
    under: Ints
    """In file-system calls made under a library; under `ANY`, only those on data set files."""


class LibraryTime(SumsMeasure):
    """Table `library_time` by process, whether under a library (0 or 1), and layer or `ANY`: `time`."""

    name = "library_time"
    result = LibraryTimes
    columns = frozenset({"rank", "file", "start_ns", "duration_ns", "within"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _TimeCollector:
        return _TimeCollector(self, np.empty(0, np.int64) if findings is None else findings.threaded)

    def aggregate(self, combined: Sums, workload: Workload, findings: SurveyFindings) -> LibraryTimes:
        table, times = combined["library_time"], np.zeros((workload.processes, *_CODE), np.int64)
        times[unpack(table.keys, times.shape)] = table["time"]
        return LibraryTimes(times[:, 0], times[:, 1])


class _TimeCollector(SumsCollector):
    def __init__(self, measure: LibraryTime, threaded: Ints) -> None:
        super().__init__(measure)
        self._threaded = threaded
        self._unions = RunningUnion(prod(_CODE), threaded)

    def add(self, batch: Batch) -> None:
        workload, trace = batch.context.workload, batch.context.trace
        groups, others, shift = batch.groups, batch.uncounted_groups, workload.shift_ns[trace]
        rank, every_start = batch.all_calls("rank"), batch.all_calls("start_ns")
        # The last call may belong to a process without library calls here; unions of others are then complete.
        current, latest = (-1, 0)
        if len(rank):
            current, latest = int(rank[-1]) + workload.process_base[trace], int(every_start[-1]) + shift
        included, within = groups.included, groups.within & _BITS
        unions = within.astype(np.int64) << WIDTH
        unions += ((within != 0) & included).astype(np.int64) << WIDTH + ANY
        if len(self._threaded):
            threads = included & np.isin(groups.process, self._threaded)
            unions += np.where(threads, 1 << groups.layer.astype(np.int64), 0)
        layer = others.layer.astype(np.int64)
        of_library = np.where((layer >= _FIRST) & (layer <= _LAST), (1 << layer) + (1 << ANY), 0)
        rows = slice(None) if others.rows is None else others.rows
        start, duration = every_start[rows] + shift, batch.all_calls("duration_ns")[rows]
        parts = (
            _in_unions(groups, unions, batch.start, batch.duration),
            _in_unions(others, of_library, start, duration),
        )
        key, start, end = (np.concatenate(column) for column in zip(*parts, strict=True))
        self._unions.add(key, start, end, current=current, latest=latest)

    def result(self) -> Sums:
        table = self._unions.result()
        self.sums.add("library_time", table.keys, table.columns)
        return super().result()


def _in_unions(groups: CallGroups, unions: Ints, start: Ints, duration: Ints) -> tuple[Ints, Ints, Ints]:
    """Key of process and union, start and end of each call in each of its unions: the bits of its group's number."""
    some = int(np.bitwise_or.reduce(unions, initial=0))
    keys = [key for key in range(prod(_CODE)) if some >> key & 1]
    rows = [np.flatnonzero((unions >> key & 1)[groups.codes]) for key in keys]
    at = np.concatenate([np.empty(0, np.int64), *rows])
    key = np.repeat(np.array(keys, np.int64), [len(of_key) for of_key in rows])
    return pack((groups.process[groups.codes[at]], key), key_widths(prod(_CODE))), start[at], start[at] + duration[at]


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


class LibraryCalls(SumsMeasure):
    """Table `library_calls` by app, layer and function: `count` and `time`."""

    name = "library_calls"
    result = LibraryCallTimes
    columns = frozenset({"rank", "kind", "file", "func", "bytes", "start_ns", "duration_ns", "via", "within"})

    def add(self, batch: Batch, sums: SumsBuilder) -> None:
        groups, workload = batch.uncounted_groups, batch.context.workload
        wanted = np.isin(groups.layer, LIBRARIES)
        if not wanted.any():
            return
        durations = batch.all_calls("duration_ns")
        if groups.rows is not None:
            durations = durations[groups.rows]
        # Exact, because a batch has less than 2^53 ns, 104 days.
        time = np.bincount(groups.codes, weights=durations, minlength=len(groups)).astype(np.int64)
        columns = (batch.context.app, groups.layer[wanted], groups.function[wanted])
        keys = pack(columns, (len(workload.apps), LAYERS, len(workload.functions)))
        sums.add("library_calls", keys, {"count": groups.count[wanted], "time": time[wanted]})

    def aggregate(self, combined: Sums, workload: Workload, findings: SurveyFindings) -> LibraryCallTimes:
        table = combined["library_calls"]
        app, layer, function = unpack(table.keys, (len(workload.apps), LAYERS, len(workload.functions)))
        return LibraryCallTimes(app, layer, function, table["count"], table["time"])


def under_any_library(within: Numbers) -> Bools:
    """Select calls made through a library, by the layers around them (a bit per layer)."""
    under: Bools = (within & _BITS) != 0
    return under


@dataclass(frozen=True, eq=False)
class LayerFiles:
    """File-system calls that use a file, by layer; shape (n,) each."""

    app: Int32s
    layer: Int8s
    file: Numbers
    """-1 for none."""
    count: Numbers


@dataclass(frozen=True, eq=False)
class LayerSizes:
    """Data operations of each size, by layer (and again for `ANY_LIBRARY`); shape (n,) each."""

    app: Int32s
    layer: Int8s
    size: Ints
    count: Ints


@dataclass(frozen=True, eq=False)
class LibraryUse:
    """File-system calls on data set files by the layers through which they were made, and calls of the layers.

    Arrays have shape (apps, LAYERS).
    """

    used: Bools
    """Whether there are calls of the layer, or under it."""
    bytes_read: Ints
    """Bytes of calls under a call of the layer (its own, for posix and stdio); likewise the next ones."""
    bytes_written: Ints
    read_unknown: Bools
    """Whether there are such reads, all of unknown size; likewise `written_unknown`."""
    written_unknown: Bools
    calls: Ints
    """Number of calls of the layer itself."""
    outermost_bytes: Ints
    """For calls with this outermost layer, so that they add up over layers; likewise the other `outermost_` ones."""
    outermost_calls: Ints
    files: LayerFiles
    sizes: LayerSizes
    outermost_files: LayerFiles
    caller_unknown: Bools
    """Shape (apps,): whether an unknown library made some of its calls."""
    caller_unknown_files: Ints
    """Codes of files with such calls."""


class Libraries(SumsMeasure):
    """Tables and pairs by app and layer.

    - `under`: file-system calls made under a call of the layer (or its own, for posix and stdio), with the pairs
      `files` (calls by file) and `transfers` (data operations by size, and again for `ANY_LIBRARY`);
    - `calls` of the layer itself;
    - `via` and the pairs `outer` (calls by file): file-system calls by their outermost layer only, so that they add up
      over layers.
    """

    name = "libraries"
    result = LibraryUse
    columns = frozenset({"rank", "kind", "file", "func", "bytes", "start_ns", "duration_ns", "via", "within"})
    packed = ("files", "outer")

    def add(self, batch: GroupedCalls, sums: SumsBuilder) -> None:
        context = batch.context
        by_layer = ByLayer(sums, len(context.workload.apps), context.app)
        for groups in (batch.groups, batch.uncounted_groups):
            # The calls of each layer itself.
            known = groups.layer != Layer.USER
            sums.add("calls", by_layer.key(groups.layer[known]), {"calls": groups.count[known]})
        if len(batch.groups):
            self._add_file_system_calls(batch.groups, by_layer)
            self._add_sizes(batch.groups, batch.sizes, by_layer)

    def _add_file_system_calls(self, groups: CountedGroups, by_layer: ByLayer) -> None:
        """Count calls on data set files by the layers through which they were made."""
        names = ("within", "kind", "flags", "file", "via", "count", "bytes", "unsized")
        layers, kind, flags, file, via, count, size, unsized = (getattr(groups, n)[groups.included] for n in names)
        read, write = kind == Kind.READ, kind == Kind.WRITE
        uses = (read | write | ((flags & Flag.OPEN) != 0)) & ((flags & Flag.DIRECTORY) == 0)
        columns = {
            "reads": np.where(read, count, 0),
            "writes": np.where(write, count, 0),
            "bytes_read": np.where(read, size, 0),
            "bytes_written": np.where(write, size, 0),
            "unsized_reads": np.where(read, unsized, 0),
            "unsized_writes": np.where(write, unsized, 0),
        }
        by_layer.add(layers, via, file, columns, calls=count, uses=np.where(uses, count, 0))

    def _add_sizes(self, groups: CountedGroups, sizes: Pairs, by_layer: ByLayer) -> None:
        included = groups.included[sizes.first]
        within = groups.within[sizes.first][included].astype(np.int64)
        by_layers = count_pairs(within, sizes.second[included], sizes.count[included])
        by_layer.add_sizes(by_layers.first, by_layers.second, by_layers.count)

    def aggregate(self, combined: Sums, workload: Workload, findings: SurveyFindings) -> LibraryUse:
        shape = (len(workload.apps), LAYERS)

        def by_layer(name: str, column: str) -> Ints:
            table, sums = combined[name], np.zeros(shape, np.int64)
            sums[unpack(table.keys, shape)] = table[column]
            return sums

        def of_no_size(side: str) -> Bools:
            calls = by_layer("under", side)
            unknown: Bools = (calls > 0) & (calls == by_layer("under", f"unsized_{side}"))
            return unknown

        def pairs(name: str) -> tuple[Int32s, Int8s, Numbers, Numbers]:
            some = combined.counts(name)
            app, layer = unpack(some.first, shape)
            return app.astype(np.int32), layer.astype(np.int8), some.second, some.count

        used = np.zeros(shape, np.bool_)
        for name in ("under", "calls"):
            used[unpack(combined[name].keys, shape)] = True
        return LibraryUse(
            used,
            by_layer("under", "bytes_read"),
            by_layer("under", "bytes_written"),
            of_no_size("reads"),
            of_no_size("writes"),
            by_layer("calls", "calls"),
            by_layer("via", "bytes"),
            by_layer("via", "calls"),
            LayerFiles(*pairs("files")),
            LayerSizes(*pairs("transfers")),
            LayerFiles(*pairs("outer")),
            np.zeros(shape[0], np.bool_),
            np.empty(0, np.int64),
        )


@dataclass(frozen=True)
class ByLayer:
    """Adds up calls on data set files, shape (n,) each, by the layers around them (a bit per layer)."""

    sums: SumsBuilder
    apps: int
    app: Numbers | int

    def key(self, layer: Numbers | int, rows: Numbers | slice = slice(None)) -> Ints:
        """Keys of the app, of each row if there are several, and a layer."""
        app = self.app if isinstance(self.app, int) else self.app[rows]
        return pack((app, layer), (self.apps, LAYERS))

    def add(
        self, layers: Numbers, via: Numbers, file: Numbers, columns: Mapping[str, Ints], *, calls: Ints, uses: Ints
    ) -> None:
        """Add the columns of `under` once for each layer, and calls by their outermost layer, `via`."""
        outer, moved = self.key(via), columns["bytes_read"] + columns["bytes_written"]
        self.sums.count("outer", outer[uses > 0], file[uses > 0], uses[uses > 0])
        self.sums.add("via", outer, {"bytes": moved, "calls": calls})
        for layer in _set_bits(layers):
            through = (layers >> layer & 1).astype(np.bool_)
            key = self._keys(layer, through)
            self.sums.add("under", key, {name: column[through] for name, column in columns.items()})
            used = uses[through] > 0
            self.sums.count("files", key[used], file[through][used], uses[through][used])

    def add_sizes(self, layers: Numbers, size: Ints, count: Ints) -> None:
        """Add data operations by size, for each layer and for any library."""
        through = {layer: (layers >> layer & 1).astype(np.bool_) for layer in _set_bits(layers)}
        for layer, rows in (through | {ANY_LIBRARY: under_any_library(layers)}).items():
            self.sums.count("transfers", self._keys(layer, rows), size[rows], count[rows])

    def _keys(self, layer: int, rows: Bools) -> Ints:
        return np.broadcast_to(self.key(layer, rows), int(rows.sum()))


def _set_bits(layers: Numbers) -> list[int]:
    """Layers for which any of the numbers has a bit."""
    every = int(np.bitwise_or.reduce(layers, initial=0))
    return [layer for layer in range(every.bit_length()) if every >> layer & 1]
