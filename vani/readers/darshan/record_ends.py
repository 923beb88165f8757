"""Ends of the records of a module: whether the last one in a region is whole, and where those of any length end."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vani.errors import TraceError
from vani.readers.darshan.record_layouts import LAYOUTS

__all__ = ["GROWING", "GrowingRecord", "checked_records", "damaged_log", "record_parts"]

_AGAIN: Final = "copy it again from where Darshan wrote it, or leave it out"
_MOST: Final = 1 << 40
"""Largest plausible record, in bytes."""


@dataclass(frozen=True)
class GrowingRecord:
    """Records that end in arrays, whose lengths are numbers at their beginning."""

    head: int
    """Bytes before the arrays."""
    at: int
    """Positions of the numbers."""
    bytes_each: tuple[int, ...]
    """Bytes of each element that they count."""


_CALLS: Final = GrowingRecord(head=104, at=88, bytes_each=(32, 32))
_CALLS_OF_THREADS: Final = GrowingRecord(head=104, at=88, bytes_each=(40, 40))
"""Each call has the number of its thread, too: after Darshan 3.5."""
GROWING: Final[Mapping[str, Mapping[int, GrowingRecord]]] = {
    "LUSTRE": {
        1: GrowingRecord(head=56, at=48, bytes_each=(8,)),
        2: GrowingRecord(head=32, at=16, bytes_each=(72, 8)),
    },
    "DXT_POSIX": {1: _CALLS, 2: _CALLS_OF_THREADS},
    "DXT_MPIIO": {1: _CALLS, 2: _CALLS, 3: _CALLS_OF_THREADS},
    "HEATMAP": {1: GrowingRecord(head=48, at=24, bytes_each=(16,))},
}
"""By module and version of its records."""


def damaged_log(path: Path, fault: str) -> TraceError:
    """An error that names the fault of a log."""
    return TraceError(f"is a damaged Darshan log: {fault}", where=path, todo=_AGAIN)


def checked_records(
    path: Path, module: str, version: int, order: str, pieces: Iterable[bytes]
) -> Iterator[bytes]:
    """The pieces of a region; where they have ended inside a record, raises TraceError.

    Records of modules and versions that are not read may have any length.
    """
    if (layout := LAYOUTS.get(module, {}).get(version)) is not None:
        size = 0
        for piece in pieces:
            size += len(piece)
            yield piece
        if size % layout.size:
            raise damaged_log(
                path, f"{module} has {size:,} bytes, and records of {layout.size} bytes: one is cut"
            )
    elif (growing := GROWING.get(module, {}).get(version)) is not None:
        # The caller gets the checked part of each piece.
        for _, part in record_parts(path, module, growing, order, pieces):
            yield part
    else:
        yield from pieces


def record_parts(
    path: Path, module: str, record: GrowingRecord, order: str, pieces: Iterable[bytes]
) -> Iterator[tuple[bool, bytes]]:
    """Parts of records, one after the other: (True, head), then (False, part) until all of its arrays are through.

    Raises
    ------
    TraceError
        A record counts what cannot be, or the last one is cut.
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
                if min(counts) < 0 or left > _MOST:
                    wrong = min(counts) if min(counts) < 0 else max(counts)
                    raise damaged_log(path, f"{module} has a record that counts {wrong:,} of its parts")
                yield True, head
            else:
                rest = data[at:]
                break
    if left or rest:
        raise damaged_log(path, f"{module} has {size:,} bytes, and its last record is incomplete: the log is cut")
