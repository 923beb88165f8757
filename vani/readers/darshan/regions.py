"""Check that a log is whole before PyDarshan sees it, which ends the interpreter on many damaged logs.

A log begins with a header (version as text, a magic number, how regions are compressed, and where the name table and
the records of each module are), then comes the job's own region, then the others. Here every region must be inside the
file, behind the header, overlap no other one, and inflate whole, those of counters to whole records. A region is one
compressed stream after the other: each process compressed its own.
"""

from __future__ import annotations

import bz2
import hashlib
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from vani.errors import TraceError, UnknownFormatError, one_line
from vani.readers.darshan.probe import MAGIC
from vani.readers.darshan.record_ends import damaged_log, module_numbers, without_cut_record

__all__ = ["MOST_KEPT", "Header", "checked_header", "header_of", "inflated"]

_MOST_INFLATED = 1 << 31
MOST_KEPT = 1 << 29
"""Bytes of a region that are kept at most: 512 MiB."""
_CHUNK = 1 << 20
_VERSION = re.compile(rb"([0-9]{1,3})\.([0-9]{2})\0")
_NEWEST = (3, 41)
_WIDE = (3, 41)
"""Since this version there are 64 modules, and flags of 64 bits."""
_ZLIB, _BZIP2, _NONE = 0, 1, 2
_GZIP = b"\x1f\x8b"
_AGAIN = "copy it once more from where Darshan wrote it, or leave it out"


@dataclass(frozen=True)
class Header:
    """The header of a log."""

    version: str
    compression: int
    regions: tuple[tuple[int, int], ...]
    """(offset, length) of each region: the job's, the name table's, those of modules."""
    versions: tuple[int, ...]
    """Version of the records of each module."""
    order: str
    """Order of bytes, as `struct` has it."""
    digest: str
    """Digest of the whole log."""


def checked_header(path: Path) -> Header:
    """Read the header of a log and every region.

    Raises
    ------
    UnknownFormatError
        It is no log, or of a version that is not read.
    TraceError
        It is damaged, or cannot be read.
    """
    try:
        with path.open("rb") as file:
            content = file.read()
    except OSError as error:
        raise TraceError(f"cannot be read ({error.strerror})", where=path) from error
    header = header_of(path, content)
    for number in range(len(header.regions)):
        inflated(path, content, header, number)
    return header


def header_of(path: Path, content: bytes) -> Header:
    """Read the header of a log, of which `content` is all; raises what `checked_header` does."""
    if not content:
        raise TraceError("is an empty file, no Darshan log", where=path, todo=_AGAIN)
    version = _VERSION.match(content)
    order = next((o for o in "<>" if content[8:16] == struct.pack(f"{o}q", MAGIC)), None)
    if content.startswith(_GZIP):
        raise UnknownFormatError("is compressed by gzip", where=path, todo="name what gunzip makes of it")
    if order is None:
        if version is not None and int(version[1]) < 3:
            raise UnknownFormatError(
                f"is a log of Darshan {version[1].decode()}, whose format is not read",
                where=path,
                todo="convert it with darshan-convert of that release",
            )
        raise UnknownFormatError("is no Darshan log", where=path, todo="name a log of Darshan 3")
    if version is None:
        raise damaged_log(path, f"its version is {one_line(repr(content[:8]))}")
    number = (int(version[1]), int(version[2]))
    text = f"{number[0]}.{number[1]:02}"
    if number > _NEWEST or number[0] < 3:
        raise UnknownFormatError(
            f"is a Darshan log of version {text}, and 3.00 to {_NEWEST[0]}.{_NEWEST[1]} are read",
            where=path,
            todo="update Vani and PyDarshan" if number > _NEWEST else "convert it with darshan-convert",
        )
    modules, at = (64, 32) if number >= _WIDE else (16, 24)
    size = at + 16 * (1 + modules) + 4 * modules
    size = -(-size // 8) * 8
    if len(content) <= size:
        raise damaged_log(path, f"it ends after {len(content):,} bytes, inside its header")
    compression = content[16]
    if compression not in (_ZLIB, _BZIP2, _NONE):
        raise damaged_log(path, f"its compression is {compression}, and 0 to 2 are known")
    pairs = [struct.unpack_from(f"{order}QQ", content, at + 16 * i) for i in range(1 + modules)]
    placed = sorted(p for p in pairs if p[1])
    end = size
    for offset, length in placed:
        if offset < end:
            raise damaged_log(
                path, f"a region begins at byte {offset:,}, before {end:,}, where the one before it ends"
            )
        end = offset + length
        if end > len(content):
            raise damaged_log(path, f"a region ends at byte {end:,} of {len(content):,}: it was cut off")
    if placed and end < len(content):
        raise damaged_log(
            path, f"{len(content) - end:,} bytes follow its last region: something was written behind it"
        )
    job = (size, (placed[0][0] if placed else len(content)) - size)
    names, *regions = pairs
    versions = struct.unpack_from(f"{order}{modules}I", content, at + 16 * (1 + modules))
    return Header(
        text, compression, (job, names, *regions), versions, order, hashlib.sha256(content).hexdigest()
    )


@cache
def _modules(version: str) -> dict[int, str]:
    return {number: name for name, number in module_numbers(version).items()}


def inflated(path: Path, content: bytes, header: Header, number: int, *, keep: bool = False) -> bytes:
    """Inflate a region of a log, and return its content if it is to be kept (else nothing).

    Parameters
    ----------
    number
        Of `header.regions`.

    Raises
    ------
    TraceError
        It does not inflate whole, or to more than 2 GiB, where it is kept to more than `MOST_KEPT`; or its last record
        is cut.
    """
    offset, length = header.regions[number]
    if not length:
        return b""
    module = _modules(header.version).get(number - 2, "")
    name = ("the job's region", "the name table")[number] if number < 2 else module or f"region {number - 2}"
    region = memoryview(content)[offset : offset + length]
    if header.compression == _NONE:
        pieces = iter([bytes(region)])
    else:
        most, limit = (MOST_KEPT, "512 MiB") if keep else (_MOST_INFLATED, "2 GiB")
        pieces = _pieces(path, name, region, header.compression, most, limit)
    if module:
        pieces = without_cut_record(path, module, header.versions[number - 2], header.order, pieces)
    if keep:
        return b"".join(pieces)
    for _ in pieces:
        pass
    return b""


def _pieces(
    path: Path, name: str, region: memoryview, compression: int, most: int, limit: str
) -> Iterator[bytes]:
    left, total = bytes(region), 0
    while left:
        stream = zlib.decompressobj(47) if compression == _ZLIB else bz2.BZ2Decompressor()
        data = left
        try:
            while not stream.eof:
                piece = stream.decompress(data, _CHUNK)
                total += len(piece)
                if total > most:
                    raise damaged_log(path, f"{name} inflates to more than {limit}")
                yield piece
                data = stream.unconsumed_tail if compression == _ZLIB else b""  # type: ignore[union-attr]
                if not data and not stream.eof and (compression == _ZLIB or stream.needs_input):  # type: ignore[union-attr]
                    raise damaged_log(path, f"{name} ends inside its compressed data")
        except (zlib.error, OSError, EOFError, ValueError) as error:
            raise damaged_log(path, f"{name} does not inflate ({one_line(str(error))})") from error
        left = stream.unused_data
