"""Sizes of the records of a module, which show whether the last one in a region is whole."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vani.errors import TraceError
from vani.readers.darshan.record_columns import MPIIO, POSIX, STDIO

__all__ = ["damaged_log", "module_numbers", "without_cut_record"]

_AGAIN: Final = "copy it once more from where Darshan wrote it, or leave it out"
_MOST: Final = 1 << 40
"""Largest plausible record, in bytes."""


@dataclass(frozen=True)
class _Growing:
    """Records that end in arrays, as long as numbers at their beginning say."""

    head: int
    """Bytes before the arrays."""
    at: int
    """Positions of the numbers."""
    bytes_each: tuple[int, ...]
    """Bytes of each element that they count."""


def _fixed(*, counters: int, times: int, more: int = 0) -> int:
    """Bytes of a record: file and rank, fields of the module, counters."""
    return 16 + 8 * (more + counters + times)


_CALLS: Final = _Growing(head=104, at=88, bytes_each=(32, 32))
_RECORDS: Final[Mapping[str, Mapping[int, int | _Growing]]] = {
    **{
        name: {version: layout.size for version, layout in layouts.items()}
        for name, layouts in (("POSIX", POSIX), ("MPI-IO", MPIIO), ("STDIO", STDIO))
    },
    "H5F": {3: _fixed(counters=3, times=5)},
    "H5D": {2: _fixed(counters=94, times=17, more=1)},
    "PNETCDF_FILE": {3: _fixed(counters=9, times=8)},
    "PNETCDF_VAR": {1: _fixed(counters=120, times=17, more=1)},
    "LUSTRE": {1: _Growing(head=56, at=48, bytes_each=(8,)), 2: _Growing(head=32, at=16, bytes_each=(72, 8))},
    "DXT_POSIX": {1: _CALLS},
    "DXT_MPIIO": {1: _CALLS, 2: _CALLS},
    "HEATMAP": {1: _Growing(head=48, at=24, bytes_each=(16,))},
}
"""By module and version of its records, whose lengths have changed."""


def module_numbers(version: str) -> dict[str, int]:
    """Place of a module in the header of logs of a version."""
    # PnetCDF and HDF5 were split in two, which moved the modules behind them.
    stdio = 9 if version >= "3.41" else 8 if version >= "3.20" else 7
    numbers = {"POSIX": 1, "MPI-IO": 2, "LUSTRE": stdio - 1, "STDIO": stdio}
    numbers |= {"DXT_POSIX": stdio + 1, "DXT_MPIIO": stdio + 2}
    if version >= "3.20":
        numbers |= {"H5F": 3, "H5D": 4, "HEATMAP": stdio + 6}
    if version >= "3.41":
        numbers |= {"PNETCDF_FILE": 5, "PNETCDF_VAR": 6}
    return numbers


def damaged_log(path: Path, fault: str) -> TraceError:
    """An error that names the fault of a log."""
    return TraceError(f"is a damaged Darshan log: {fault}", where=path, todo=_AGAIN)


def without_cut_record(
    path: Path, module: str, version: int, order: str, pieces: Iterable[bytes]
) -> Iterator[bytes]:
    """The pieces of a region; where they have ended inside a record, raises TraceError.

    Records of a version that is not known here may have any length.
    """
    record = _RECORDS.get(module, {}).get(version)
    if record is None:
        return iter(pieces)
    if isinstance(record, int):
        return _of_one_length(path, module, record, pieces)
    return _of_any_length(path, module, record, order, pieces)


def _of_one_length(path: Path, module: str, length: int, pieces: Iterable[bytes]) -> Iterator[bytes]:
    size = 0
    for piece in pieces:
        size += len(piece)
        yield piece
    if size % length:
        raise damaged_log(path, f"{module} has {size:,} bytes, and records of {length} bytes: one is cut")


def _of_any_length(
    path: Path, module: str, record: _Growing, order: str, pieces: Iterable[bytes]
) -> Iterator[bytes]:
    numbers = struct.Struct(f"{order}{len(record.bytes_each)}q")
    size, rest, ahead = 0, b"", 0
    for piece in pieces:
        size += len(piece)
        rest += piece
        at = ahead
        while at + record.head <= len(rest):
            counts = numbers.unpack_from(rest, at + record.at)
            sized = record.head + sum(n * each for n, each in zip(counts, record.bytes_each, strict=True))
            if min(counts) < 0 or sized > _MOST:
                wrong = min(counts) if min(counts) < 0 else max(counts)
                raise damaged_log(path, f"{module} has a record that counts {wrong:,} of its parts")
            at += sized
        # The rest of the last record is skipped in the pieces to come.
        ahead, rest = max(0, at - len(rest)), rest[at:]
        yield piece
    if ahead or rest:
        raise damaged_log(path, f"{module} has {size:,} bytes, and its last record goes on: it is cut")
