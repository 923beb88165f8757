"""Layouts of each module's records for each record version: counters in file order, and where variable records end.

Source: headers `darshan-*-log-format.h` of Darshan 3.0.0 to 3.5.0. Older versions lack some counters of later
ones. Missing counters are filled in as `darshan-util` does: see `MISSING`.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from vani.errors import TraceError
from vani.readers.signatures import MAX_COUNT, MAX_OFFSET

MISSING: Final[Mapping[str, int]] = {"RENAMED_FROM": 0}
"""Value of a counter that a version lacks, by name; -1 for all others."""
BINS: Final = (
    "0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M", "1M_4M", "4M_10M", "10M_100M", "100M_1G", "1G_PLUS",
)  # fmt: skip
_EXTREMES: Final = ("FASTEST_RANK", "FASTEST_RANK_BYTES", "SLOWEST_RANK", "SLOWEST_RANK_BYTES")
_EXTREME_TIMES: Final = (
    "F_FASTEST_RANK_TIME", "F_SLOWEST_RANK_TIME", "F_VARIANCE_RANK_TIME", "F_VARIANCE_RANK_BYTES",
)  # fmt: skip


IDS: Final = ("RENAMED_FROM", "_REC_ID")
"""Ends of names of counters that are ids of records, which need all 64 bits."""


def largest(counter: str) -> int:
    """Upper bound of a counter, by Darshan's name: of sizes and offsets in bytes, or of calls."""
    if counter.endswith(IDS):
        return (1 << 63) - 1
    is_size = "BYTE" in counter or counter.endswith(("_ACCESS", "_STRIDE", "_ALIGNMENT", "_TIME_SIZE"))
    return MAX_OFFSET if is_size or "LUSTRE" in counter else MAX_COUNT


@dataclass(frozen=True)
class RecordLayout:
    """Layout of a record version: id, rank, counters as 64-bit integers, times as 64-bit floats."""

    counters: tuple[str, ...]
    times: tuple[str, ...]
    names_file: bool = False
    """The record describes part of a file, and the file's id follows the rank."""

    @property
    def first(self) -> int:
        """Position of the first counter, in 8-byte words."""
        return 3 if self.names_file else 2

    @property
    def size(self) -> int:
        """Record size in bytes."""
        return 8 * (self.first + len(self.counters) + len(self.times))

    @cached_property
    def largest(self) -> tuple[int, ...]:
        """Upper bound of each counter."""
        return tuple(largest(name) for name in self.counters)

    @cached_property
    def at(self) -> Mapping[str, int]:
        """Position of each counter among the counters, and of each time among the times."""
        return {name: at for names in (self.counters, self.times) for at, name in enumerate(names)}

    def without(self, *names: str, names_file: bool = False) -> "RecordLayout":
        """The layout of a version that lacks some counters."""
        return RecordLayout(
            tuple(name for name in self.counters if name not in names),
            tuple(name for name in self.times if name not in names),
            names_file,
        )


def _each(form: str, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(form.format(value) for value in values)


def bins(form: str) -> tuple[str, ...]:
    """Names of the size bins, those of reads first; `form` has placeholders for the direction and the bin."""
    return (*_each(form.format("READ", "{}"), BINS), *_each(form.format("WRITE", "{}"), BINS))


def _stamps(*kinds: str) -> tuple[str, ...]:
    return (*_each("F_{}_START_TIMESTAMP", kinds), *_each("F_{}_END_TIMESTAMP", kinds))


_FOUR: Final = ("1", "2", "3", "4")
_FIVE: Final = (*_FOUR, "5")
_ACCESSES: Final = tuple(
    f"ACCESS{number}_{name}"
    for number in _FOUR
    for name in ("ACCESS", *_each("LENGTH_D{}", _FIVE), *_each("STRIDE_D{}", _FIVE))
)
_STAMPS: Final = _stamps("OPEN", "READ", "WRITE", "CLOSE")
_TIMES: Final = (
    *_STAMPS, "F_READ_TIME", "F_WRITE_TIME", "F_META_TIME", "F_MAX_READ_TIME", "F_MAX_WRITE_TIME", *_EXTREME_TIMES,
)  # fmt: skip
_POSIX = RecordLayout(
    (
        "OPENS", "FILENOS", "DUPS", "READS", "WRITES", "SEEKS", "STATS", "MMAPS", "FSYNCS", "FDSYNCS",
        "RENAME_SOURCES", "RENAME_TARGETS", "RENAMED_FROM", "MODE", "BYTES_READ", "BYTES_WRITTEN", "MAX_BYTE_READ",
        "MAX_BYTE_WRITTEN", "CONSEC_READS", "CONSEC_WRITES", "SEQ_READS", "SEQ_WRITES", "RW_SWITCHES",
        "MEM_NOT_ALIGNED", "MEM_ALIGNMENT", "FILE_NOT_ALIGNED", "FILE_ALIGNMENT", "MAX_READ_TIME_SIZE",
        "MAX_WRITE_TIME_SIZE", *bins("SIZE_{}_{}"), *_each("STRIDE{}_STRIDE", _FOUR), *_each("STRIDE{}_COUNT", _FOUR),
        *_each("ACCESS{}_ACCESS", _FOUR), *_each("ACCESS{}_COUNT", _FOUR), *_EXTREMES,
    ),
    _TIMES,
)  # fmt: skip
_POSIX_3 = _POSIX.without("FILENOS", "DUPS", "RENAME_SOURCES", "RENAME_TARGETS", "RENAMED_FROM")
_LATER_STAMPS: Final = ("F_CLOSE_START_TIMESTAMP", "F_OPEN_END_TIMESTAMP")
_POSIX_2 = _POSIX_3.without(*_LATER_STAMPS)
_STREAMS = _POSIX_2.counters.index("MMAPS") + 1
_POSIX_1 = RecordLayout(
    (*_POSIX_2.counters[:_STREAMS], "FOPENS", "FREADS", "FWRITES", "FSEEKS", *_POSIX_2.counters[_STREAMS:]),
    _POSIX_2.times,
)
_MPIIO = RecordLayout(
    (
        "INDEP_OPENS", "COLL_OPENS", "INDEP_READS", "INDEP_WRITES", "COLL_READS", "COLL_WRITES", "SPLIT_READS",
        "SPLIT_WRITES", "NB_READS", "NB_WRITES", "SYNCS", "HINTS", "VIEWS", "MODE", "BYTES_READ", "BYTES_WRITTEN",
        "RW_SWITCHES", "MAX_READ_TIME_SIZE", "MAX_WRITE_TIME_SIZE", *bins("SIZE_{}_AGG_{}"),
        *_each("ACCESS{}_ACCESS", _FOUR), *_each("ACCESS{}_COUNT", _FOUR), *_EXTREMES,
    ),
    _TIMES,
)  # fmt: skip
_STDIO = RecordLayout(
    (
        "OPENS", "FDOPENS", "READS", "WRITES", "SEEKS", "FLUSHES", "BYTES_WRITTEN", "BYTES_READ", "MAX_BYTE_READ",
        "MAX_BYTE_WRITTEN", *_EXTREMES,
    ),
    ("F_META_TIME", "F_WRITE_TIME", "F_READ_TIME", *_stamps("OPEN", "CLOSE", "WRITE", "READ"), *_EXTREME_TIMES),
)  # fmt: skip
_H5F = RecordLayout(("OPENS", "FLUSHES", "USE_MPIIO"), (*_stamps("OPEN", "CLOSE"), "F_META_TIME"))
_H5F_2 = _H5F.without("FLUSHES", "USE_MPIIO", "F_META_TIME")
_H5D = RecordLayout(
    (
        "OPENS", "READS", "WRITES", "FLUSHES", "BYTES_READ", "BYTES_WRITTEN", "RW_SWITCHES",
        "REGULAR_HYPERSLAB_SELECTS", "IRREGULAR_HYPERSLAB_SELECTS", "POINT_SELECTS", "MAX_READ_TIME_SIZE",
        "MAX_WRITE_TIME_SIZE", *bins("SIZE_{}_AGG_{}"), *_ACCESSES, *_each("ACCESS{}_COUNT", _FOUR),
        "DATASPACE_NDIMS", "DATASPACE_NPOINTS", "DATATYPE_SIZE", *_each("CHUNK_SIZE_D{}", _FIVE),
        "USE_MPIIO_COLLECTIVE", "USE_DEPRECATED", *_EXTREMES,
    ),
    _TIMES,
    names_file=True,
)  # fmt: skip
_PNETCDF_FILE = RecordLayout(
    (
        "CREATES", "OPENS", "REDEFS", "INDEP_WAITS", "COLL_WAITS", "SYNCS", "BYTES_READ", "BYTES_WRITTEN",
        "WAIT_FAILURES",
    ),
    (*_stamps("OPEN", "CLOSE", "WAIT"), "F_META_TIME", "F_WAIT_TIME"),
)  # fmt: skip
_SELECTIONS: Final = ("VAR", "VAR1", "VARA", "VARS", "VARM", "VARN")
_PNETCDF_VAR = RecordLayout(
    (
        "OPENS", "INDEP_READS", "INDEP_WRITES", "COLL_READS", "COLL_WRITES", "NB_READS", "NB_WRITES", "BYTES_READ",
        "BYTES_WRITTEN", "RW_SWITCHES", *_each("PUT_{}", (*_SELECTIONS, "VARD")),
        *_each("GET_{}", (*_SELECTIONS, "VARD")), *_each("IPUT_{}", _SELECTIONS), *_each("IGET_{}", _SELECTIONS),
        *_each("BPUT_{}", _SELECTIONS), "MAX_READ_TIME_SIZE", "MAX_WRITE_TIME_SIZE", *bins("SIZE_{}_AGG_{}"),
        *_ACCESSES, *_each("ACCESS{}_COUNT", _FOUR), "NDIMS", "NPOINTS", "DATATYPE_SIZE", "IS_RECORD_VAR", *_EXTREMES,
    ),
    _TIMES,
    names_file=True,
)  # fmt: skip
LAYOUTS: Final[Mapping[str, Mapping[int, RecordLayout]]] = {
    "POSIX": {1: _POSIX_1, 2: _POSIX_2, 3: _POSIX_3, 4: _POSIX},
    "STDIO": {1: _STDIO.without("FDOPENS"), 2: _STDIO},
    "MPI-IO": {1: _MPIIO.without(*_LATER_STAMPS), 2: _MPIIO.without(*_LATER_STAMPS), 3: _MPIIO},
    "H5F": {1: _H5F_2.without(*_LATER_STAMPS), 2: _H5F_2, 3: _H5F},
    "H5D": {1: _H5D.without(), 2: _H5D},
    "PNETCDF_FILE": {
        1: RecordLayout(("INDEP_OPENS", "COLL_OPENS"), ("F_OPEN_START_TIMESTAMP", "F_CLOSE_END_TIMESTAMP")),
        2: RecordLayout(("INDEP_OPENS", "COLL_OPENS"), _stamps("OPEN", "CLOSE")),
        3: _PNETCDF_FILE,
    },
    "PNETCDF_VAR": {1: _PNETCDF_VAR},
}
"""Layouts by module and record version. Names are Darshan's, without the module's prefix."""
_ORDER: Final = (
    "", "POSIX", "MPI-IO", "H5F", "H5D", "PNETCDF_FILE", "PNETCDF_VAR", "BG/Q", "LUSTRE", "STDIO", "DXT_POSIX",
    "DXT_MPIIO", "MDHIM", "APXC", "APMPI", "HEATMAP", "DFS", "DAOS",
)  # fmt: skip


def module_numbers(version: str) -> dict[str, int]:
    """Number of each module in log headers of a version; PnetCDF and HDF5 each used to be a single module."""
    later = {"H5D"} if version < "3.20" else set()
    if version < "3.41":
        later |= {"PNETCDF_VAR", "DFS", "DAOS"}
    names = [name for name in _ORDER if name not in later]
    return {name: number for number, name in enumerate(names) if name}


_AGAIN: Final = "copy it again from where Darshan wrote it, or leave it out"
_MAX_RECORD: Final = 1 << 40
"""Largest plausible record, in bytes."""


@dataclass(frozen=True)
class GrowingRecord:
    """Records that end in arrays, which begin with the array lengths."""

    head: int
    """Bytes before the arrays."""
    at: int
    """Word positions of the array lengths."""
    bytes_each: tuple[int, ...]
    """Bytes per array element, for each length."""


_CALLS: Final = GrowingRecord(head=104, at=88, bytes_each=(32, 32))
_CALLS_OF_THREADS: Final = GrowingRecord(head=104, at=88, bytes_each=(40, 40))
"""After Darshan 3.5, each call also has its thread number."""
GROWING: Final[Mapping[str, Mapping[int, GrowingRecord]]] = {
    "LUSTRE": {
        1: GrowingRecord(head=56, at=48, bytes_each=(8,)),
        2: GrowingRecord(head=32, at=16, bytes_each=(72, 8)),
    },
    "DXT_POSIX": {1: _CALLS, 2: _CALLS_OF_THREADS},
    "DXT_MPIIO": {1: _CALLS, 2: _CALLS, 3: _CALLS_OF_THREADS},
    "HEATMAP": {1: GrowingRecord(head=48, at=24, bytes_each=(16,))},
}
"""Growing records by module and record version."""


def damaged_log(path: Path, fault: str) -> TraceError:
    """An error that describes a log's fault."""
    return TraceError(f"is a damaged Darshan log: {fault}", where=path, todo=_AGAIN)


def checked_records(path: Path, module: str, version: int, order: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a region's pieces; raises TraceError if they end inside a record.

    Records of unread modules and versions may have any length.
    """
    if (layout := LAYOUTS.get(module, {}).get(version)) is not None:
        size = 0
        for piece in pieces:
            size += len(piece)
            yield piece
        if size % layout.size:
            raise damaged_log(path, f"{module} has {size:,} bytes, and records of {layout.size} bytes: one is cut")
    elif (growing := GROWING.get(module, {}).get(version)) is not None:
        # Yield the checked part of each piece.
        for _, part in record_parts(path, module, growing, order, pieces):
            yield part
    else:
        yield from pieces


def record_parts(
    path: Path, module: str, record: GrowingRecord, order: str, pieces: Iterable[bytes]
) -> Iterator[tuple[bool, bytes]]:
    """Yield the parts of records in order: (True, head), then (False, part) until all arrays of the record are read.

    Raises
    ------
    TraceError
        A record has an impossible count, or the last one is incomplete.
    """
    numbers = struct.Struct(f"{order}{len(record.bytes_each)}q")
    size, left, rest = 0, 0, b""
    for piece in pieces:
        size += len(piece)
        data, at = rest + piece, 0
        rest = b""
        while at < len(data):
            if left:
                part = data[at : at + left]
                at += len(part)
                left -= len(part)
                yield False, part
            elif at + record.head <= len(data):
                head = data[at : at + record.head]
                at += record.head
                counts = numbers.unpack_from(head, record.at)
                left = sum(n * each for n, each in zip(counts, record.bytes_each, strict=True))
                if min(counts) < 0 or left > _MAX_RECORD:
                    wrong = min(counts) if min(counts) < 0 else max(counts)
                    raise damaged_log(path, f"{module} has a record that counts {wrong:,} of its parts")
                yield True, head
            else:
                rest = data[at:]
                break
    if left or rest:
        raise damaged_log(path, f"{module} has {size:,} bytes, and its last record is incomplete: the log is cut")
