"""Record boundaries in a module's region: whether the last record is complete, and where variable ones end."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vani.errors import TraceError
from vani.readers.darshan.record_layouts import LAYOUTS

_AGAIN: Final = "copy it again from where Darshan wrote it, or leave it out"
_MOST: Final = 1 << 40
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


def checked_records(
    path: Path, module: str, version: int, order: str, pieces: Iterable[bytes]
) -> Iterator[bytes]:
    """Yield a region's pieces; raises TraceError if they end inside a record.

    Records of unread modules and versions may have any length.
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
                if min(counts) < 0 or left > _MOST:
                    wrong = min(counts) if min(counts) < 0 else max(counts)
                    raise damaged_log(path, f"{module} has a record that counts {wrong:,} of its parts")
                yield True, head
            else:
                rest = data[at:]
                break
    if left or rest:
        raise damaged_log(path, f"{module} has {size:,} bytes, and its last record is incomplete: the log is cut")
