"""Data calls by layer, file and direction: who asked, and what moved.

A row of the table counts the data calls of one layer on one file in one direction.

- **posix, stdio**: the counted file-system calls and the bytes that they moved. `inside` are the bytes moved by calls
  made inside a collective data call of a library. A call is aligned to a power of two if its offset is a multiple of
  it; calls of unknown offset are in none of the powers.
- **Libraries** (MPI-IO, HDF5, PnetCDF, netCDF): their data calls, and the bytes that their arguments request, which
  `together` splits by collective calls. A call such as H5Dwrite shows neither its file nor its bytes (to the tracer, a
  selection is a pointer), but the calls that it makes do: its file is theirs, and `below` are their requests to MPI-IO.
  Calls that a library makes for itself (headers, indices) are outside its data calls.

Only calls on files of the data set count, and library calls whose file is unknown. Unit: calls, bytes, nanoseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from vani.analyzers import int_table
from vani.analyzers.batch import Batch
from vani.analyzers.passes import SumsCollector, SumsMeasure
from vani.analyzers.workload import Context, SurveyFindings, Workload
from vani.calls import FileClass, Flag, Kind, Layer
from vani.columns import Int8s, Ints, Numbers

LIBRARIES = (Layer.MPIIO, Layer.HDF5, Layer.PNETCDF, Layer.NETCDF)
"""I/O libraries between the program and the file-system calls."""
_ABOVE_MPIIO = LIBRARIES[1:]
_DEFERRED = ("MPI_File_iread", "MPI_File_iwrite", "ncmpi_iget", "ncmpi_iput", "ncmpi_bput")
_DEFERRED_ENDS = ("_begin", "_begin_c", "_async")
_ATTRIBUTES = ("H5Aread", "H5Awrite")
"""HDF5 functions for attributes, whose bytes are part of the headers."""

EDGES = 1024 * 4 ** np.arange(12)
"""Lower ends of all classes of sizes but the first, in bytes."""
_EDGE_NAMES = ("0", "1K", "4K", "16K", "64K", "256K", "1M", "4M", "16M", "64M", "256M", "1G", "4G")
BINS = (*(f"{a}-{b}" for a, b in pairwise(_EDGE_NAMES)), "4G+")
"""Classes of sizes by powers of four, including the lower edge but not the upper one; K, M, G are binary."""
POWERS = 1 << np.arange(9, 25)
"""Powers of two to which the start of a call may be aligned."""


def ask_kind(names: Sequence[str]) -> Int8s:
    """Kind of each function: 0 if its data moves during the call, 1 if later, -1 if it moves no data."""
    return np.array(
        [
            -1
            if name.startswith(_ATTRIBUTES)
            else int(name.startswith(_DEFERRED) or name.endswith(_DEFERRED_ENDS))
            for name in names
        ],
        np.int8,
    )


def class_of(size: Ints) -> Ints:
    """Index in `BINS` of each size."""
    return np.searchsorted(EDGES, size, side="right")


def alignment_of(offset: Ints) -> Ints:
    """Number of `POWERS` that divide each offset."""
    alignment = np.searchsorted(POWERS, offset & -offset, side="right")
    alignment[offset == 0] = len(POWERS)
    return alignment


_CELLS = len(POWERS) + 1
_BY_CELL = ("size", "time", "below", "aligned")
COLUMNS = (
    # data calls, and their bytes, calls of unknown size, and nanoseconds
    "calls", "bytes", "unsized", "time",
    # of libraries: calls that return before their data moves, collective bytes, collective calls; records of counts
    # whose bytes no counter divides between these and others
    "later", "collective", "together", "mixed",
    # requests to MPI-IO inside a library's data calls: bytes, calls of unknown size, collective bytes
    "below", "below_unsized", "below_collective",
    # of the file system: bytes inside collective calls, bytes in order, bytes that may be out of order
    "inside", "ordered", "unordered",
    # processes that make the calls: on the file, and on any file
    "callers", "all_callers",
    # bytes and nanoseconds by class of size, bytes in `below` likewise, and bytes by alignment
    *(f"{name}{cell}" for name in _BY_CELL for cell in range(_CELLS)),
)  # fmt: skip
"""Sums in each row of the table."""
_NUMBER = {name: number for number, name in enumerate(COLUMNS)}


def widths_of(workload: Workload) -> tuple[int, int, int, int]:
    """Widths of the keys of rows: app, file + 1 (0: not listed, or unknown), direction and layer."""
    return len(workload.apps), workload.files + 1, 2, int_table.LAYERS


def by_column(row: Ints, column: str, cell: Ints | int = 0) -> Ints:
    """Keys of a row and a column, or of one of the cells that begin with the column."""
    keys: Ints = row * len(COLUMNS) + _NUMBER[column] + cell
    return keys


def add_columns(sums: int_table.SumsBuilder, row: Ints, **columns: Ints) -> None:
    """Add amounts to rows, shape (n,) each."""
    for name, amount in columns.items():
        sums.add("accesses", by_column(row, name), {"amount": amount})


def add_cells(sums: int_table.SumsBuilder, row: Ints, name: str, cell: Ints, amount: Ints) -> None:
    """Add amounts to the cells `name` of rows, shape (n,) each."""
    dense = int_table.Factorized.of(by_column(row, f"{name}0", cell))
    sums.add("accesses", dense.keys, {"amount": dense.sum(amount)})


@dataclass(frozen=True, eq=False)
class Requests:
    """Sums over some data calls of a library by direction, each by the names of `COLUMNS`."""

    reads: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)

    def both(self, column: str) -> int:
        """A column of reads and writes together."""
        return self.reads[column] + self.writes[column]

    @property
    def from_below(self) -> bool:
        """Whether the bytes are requests to MPI-IO, because the layer's own calls do not show bytes."""
        handed = self.both("below") > 0 and not self.both("below_unsized") and not self.both("later")
        return handed and self.both("unsized") > 0

    def bytes(self, side: Counter[str]) -> int | None:
        """Bytes requested in a direction; None if the size of some call is unknown."""
        if self.from_below:
            return side["below"]
        return None if side["unsized"] else side["bytes"]

    def collective(self, side: Counter[str]) -> int | None:
        """Bytes of these requested in collective calls."""
        if self.bytes(side) is None or side["mixed"]:
            return 0 if not side["together"] else None
        return side["below_collective" if self.from_below else "collective"]

    @property
    def collective_share(self) -> float:
        """Share of the bytes, or of the calls if no bytes are known."""
        sides = (self.reads, self.writes)
        requested, together = ([of(side) for side in sides] for of in (self.bytes, self.collective))
        if None not in (*requested, *together) and any(requested):
            return sum(part or 0 for part in together) / sum(part or 0 for part in requested)
        return self.both("together") / self.both("calls")


@dataclass(frozen=True, eq=False)
class AccessTable:
    """Sums over data calls."""

    widths: tuple[int, int, int, int]
    """See `widths_of`."""
    sums: int_table.IntTable
    """`amount` by keys of `by_column`."""
    bins: Sequence[str] = BINS
    """Names of the classes of size."""
    alignment: int | None = None
    """Largest block for which the alignment decides; None for any."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Reasons for what the source lacks, by column of the profile's table."""

    @cached_property
    def rows(self) -> tuple[Ints, ...]:
        """App, file + 1, direction and layer of each sum."""
        return int_table.unpack(self.sums.keys // len(COLUMNS), self.widths)

    def grouped(self, number: Ints) -> dict[int, Counter[str]]:
        """Sums by column of each group; `number` of each sum's group, -1 for none."""
        column = self.sums.keys % len(COLUMNS)
        summed = int_table.grouped(np.where(number < 0, -1, number * len(COLUMNS) + column), self.sums.columns)
        groups: dict[int, Counter[str]] = {}
        for key, amount in zip(summed.keys.tolist(), summed["amount"].tolist(), strict=True):
            group, at = divmod(key, len(COLUMNS))
            groups.setdefault(group, Counter())[COLUMNS[at]] = amount
        return groups

    def requests(self, app: int, layer: int) -> Requests:
        """Requests of an app's data calls of a library, on all files together."""
        of_app, _, kind, of_layer = self.rows
        sides = self.grouped(np.where((of_app == app) & (of_layer == layer), kind, -1))
        return Requests(*(sides.get(side, Counter()) for side in (0, 1)))


class Accesses(SumsMeasure):
    """Table `accesses` of `AccessTable`."""

    name = "accesses"
    result = AccessTable
    columns = frozenset({"rank", "kind", "file", "func", "offset", "bytes", "start_ns", "duration_ns", "via", "within"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _Collector:
        return _Collector(self, context, findings)

    def aggregate(self, combined: int_table.Sums, workload: Workload, findings: SurveyFindings) -> AccessTable:
        return AccessTable(widths_of(workload), combined["accesses"])


Calls = Numbers
_FIELDS = ("row", "rank", "start", "end", "file", "size", "layer", "kind", "process", "within", "later", "collective")
_NO_CALLS = np.empty(0, [(name, np.int64) for name in _FIELDS])
"""Data calls of libraries in recorded order; `row`: index among all calls of the batch, `file`: -1 if unknown."""


def _owners(own: Calls, row: Ints, rank: Ints, begin: Ints, end: Ints) -> Ints:
    """Index in `own` of the call that made each of some calls, given their rows, ranks and times; -1 for none."""
    if not len(own):
        return np.full(len(row), -1)
    # A call is recorded before the calls that it makes.
    nearest = np.searchsorted(own["row"], row) - 1
    at = np.maximum(nearest, 0)
    within = (nearest >= 0) & (own["rank"][at] == rank) & (own["start"][at] <= begin) & (own["end"][at] >= end)
    return np.where(within, nearest, -1)


class _Collector(SumsCollector):
    def __init__(self, measure: Accesses, context: Context, findings: SurveyFindings | None) -> None:
        super().__init__(measure)
        workload = context.workload
        self._app, self._widths = context.app, widths_of(workload)
        self._listed_as = None if findings is None else findings.listed_as
        self._counted = np.append(workload.file_class == FileClass.DATASET, True)
        """Whether calls on each file count; the last entry is for no file."""
        self._ask_kind = np.append(ask_kind(workload.functions), 0)
        self._collective = _NO_CALLS
        """The last collective call of earlier batches, which may have made calls of this one."""
        self._waiting = {(layer, kind): _NO_CALLS for layer in _ABOVE_MPIIO for kind in (0, 1)}
        """Their last data calls of earlier batches, likewise."""
        self._of_users = (workload.processes, *self._widths[1:])
        self._users = int_table.SumsBuilder()

    def _keys(self, file: Ints, kind: Numbers, layer: Numbers) -> Ints:
        place = file if self._listed_as is None else self._listed_as[file]
        return int_table.pack((self._app, place + 1, kind, layer), self._widths)

    def add(self, batch: Batch) -> None:
        requests = self._requests(batch)
        groups = batch.groups
        data = np.flatnonzero((groups.kind <= Kind.WRITE) & groups.included)
        if len(data):
            self._add_moved(batch, data)
        if len(requests) or len(self._collective) or any(map(len, self._waiting.values())):
            self._add_requests(batch, requests)

    def _requests(self, batch: Batch) -> Calls:
        """The data calls of libraries."""
        groups = batch.uncounted_groups
        asks = (groups.kind <= Kind.WRITE) & (groups.layer >= LIBRARIES[0]) & (groups.layer <= LIBRARIES[-1])
        if not asks.any():
            return _NO_CALLS
        later = self._ask_kind[groups.function]
        asks &= later >= 0
        chosen = np.flatnonzero(asks[groups.codes])
        code = groups.codes[chosen]
        rows = chosen if groups.rows is None else groups.rows[chosen].astype(np.int64)
        start = batch.all_calls("start_ns")[rows]
        collective = (groups.flags & Flag.COLLECTIVE) != 0
        of_groups = (groups.layer, groups.kind, groups.process, groups.within, later, collective)
        requests = np.empty(len(rows), _NO_CALLS.dtype)
        columns: list[Numbers] = [rows, batch.all_calls("rank")[rows], start]
        columns += [start + batch.all_calls("duration_ns")[rows], batch.files_of(rows), batch.all_calls("bytes")[rows]]
        for name, column in zip(_FIELDS, [*columns, *(column[code] for column in of_groups)], strict=True):
            requests[name] = column
        counted: Calls = requests[self._counted[requests["file"]]]
        return counted

    def _add_moved(self, batch: Batch, data: Ints) -> None:
        """Add file-system calls; `data`: their groups."""
        groups = batch.groups
        kind, layer = groups.kind[data].astype(np.int64), groups.layer[data].astype(np.int64)
        key = self._keys(groups.file[data], kind, layer)
        columns = {"calls": groups.count, "bytes": groups.bytes, "unsized": groups.unsized, "time": groups.time}
        add_columns(self.sums, key, **{name: column[data] for name, column in columns.items()})
        self._use(groups.process[data], groups.file[data], kind, layer)
        row = np.full(len(groups), -1)
        row[data] = key
        row = row[groups.codes]
        at = np.flatnonzero((row >= 0) & (batch.bytes != int_table.NO_VALUE))
        row, size, offset = row[at], batch.bytes[at], batch.offset[at]
        self._add_sizes(row, size, batch.duration[at])
        placed = np.flatnonzero(offset != int_table.NO_VALUE)
        add_cells(self.sums, row[placed], "aligned", alignment_of(offset[placed]), size[placed])

    def _add_sizes(self, row: Ints, size: Ints, time: Ints) -> None:
        for name, amount in (("size", size), ("time", time)):
            add_cells(self.sums, row, name, class_of(size), amount)

    def _use(self, process: Ints, file: Ints, kind: Numbers, layer: Numbers) -> None:
        """Note which processes make calls on all files together, and on each listed one."""
        place = (file if self._listed_as is None else self._listed_as[file]) + 1
        for of in (place, np.zeros_like(place)):
            self._users.add("users", int_table.pack((process, of, kind, layer), self._of_users), {})

    def _add_requests(self, batch: Batch, requests: Calls) -> None:
        """Add data calls of libraries, and what the calls that they make show about them."""
        groups = batch.groups
        under = (groups.kind <= Kind.WRITE) & groups.included & ((groups.within >> LIBRARIES[0]) != 0)
        moves = np.flatnonzero(under[groups.codes])
        begin = batch.start[moves] - batch.context.workload.shift_ns[batch.context.trace]
        row, code = batch.rows[moves].astype(np.int64), groups.codes[moves]
        inner = (row, batch.rank[moves].astype(np.int64), begin, begin + batch.duration[moves])
        collective = np.concatenate((self._collective, requests[requests["collective"] > 0]))
        nested = np.flatnonzero((_owners(collective, *inner) >= 0) & (batch.bytes[moves] != int_table.NO_VALUE))
        key = self._keys(groups.file[code[nested]], groups.kind[code[nested]], groups.layer[code[nested]])
        add_columns(self.sums, key, inside=batch.bytes[moves[nested]])
        self._collective = _kept(collective)
        self._ask(requests[requests["layer"] == Layer.MPIIO])
        for (layer, kind), waiting in self._waiting.items():
            of = (requests["layer"] == layer) & (requests["kind"] == kind)
            own = np.concatenate((waiting, requests[of]))
            if not len(own):
                continue
            through = (groups.within[code] >> layer & 1) == 1
            owner = _owners(own, *(column[through] for column in inner))
            self._find_files(own, owner, groups.file[code[through]])
            below = requests[(requests["within"] >> layer & 1 == 1) & (requests["layer"] < layer)]
            owner = _owners(own, *(below[name] for name in _FIELDS[:4]))
            self._find_files(own, owner, below["file"])
            handed = (owner >= 0) & (below["layer"] == Layer.MPIIO) & (below["kind"] == kind)
            self._hand_down(below[handed], layer)
            self._ask(own[:-1])
            self._waiting[layer, kind] = _kept(own)

    @staticmethod
    def _find_files(own: Calls, owner: Ints, file: Ints) -> None:
        """Give calls of unknown file the file of the first call that they made."""
        nested = np.flatnonzero((owner >= 0) & (file >= 0))[::-1]
        nested = nested[own["file"][owner[nested]] < 0]
        own["file"][owner[nested]] = file[nested]

    def _hand_down(self, requests: Calls, layer: int) -> None:
        """Add requests to MPI-IO made by data calls of a library."""
        key = self._keys(requests["file"], requests["kind"], np.full(len(requests), layer))
        sized = requests["size"] != int_table.NO_VALUE
        size = np.where(sized, requests["size"], 0)
        collective = size * requests["collective"]
        add_columns(self.sums, key, below=size, below_unsized=~sized * 1, below_collective=collective)
        add_cells(self.sums, key[sized], "below", class_of(size[sized]), size[sized])

    def _ask(self, requests: Calls) -> None:
        key = self._keys(requests["file"], requests["kind"], requests["layer"])
        sized, time = requests["size"] != int_table.NO_VALUE, requests["end"] - requests["start"]
        size = np.where(sized, requests["size"], 0)
        columns = {
            "calls": np.ones(len(key), np.int64),
            "bytes": size,
            "unsized": ~sized * 1,
            "time": time,
            "later": requests["later"],
            "collective": size * requests["collective"],
            "together": requests["collective"],
        }
        add_columns(self.sums, key, **columns)
        self._use(requests["process"], requests["file"], requests["kind"], requests["layer"])
        self._add_sizes(key[sized], size[sized], time[sized])

    def result(self) -> int_table.Sums:
        for waiting in self._waiting.values():
            self._ask(waiting)
        _, place, kind, layer = int_table.unpack(self._users.result()["users"].keys, self._of_users)
        row, listed = int_table.pack((self._app, place, kind, layer), self._widths), place > 0
        for name, of in (("callers", listed), ("all_callers", ~listed)):
            add_columns(self.sums, row[of], **{name: np.ones(int(of.sum()), np.int64)})
        return super().result()


def _kept(calls: Calls) -> Calls:
    """The last of some calls, which may have made calls of the next batch."""
    last = calls[-1:].copy()
    last["row"] = -1
    return last
