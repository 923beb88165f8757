"""The container format of a log: its header and its regions, each checked completely.

A log begins with a header (version text, magic number, compression method, and the place of the name table and of each
module's records). The job region follows, then the others. Each region must lie inside the file, start after the
header, overlap no other region, and inflate completely. A region is a sequence of compressed streams, because each
process compressed its own. No allocation uses a length that the file claims.
"""

import bz2
import hashlib
import os
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from vani.errors import TraceError, UnknownFormatError, one_line
from vani.readers.darshan import MAGIC
from vani.readers.darshan.record_layouts import damaged_log, module_numbers
from vani.readers.files import readable

_MAX_STREAMED = 1 << 31
"""Limit for a region that is read in pieces: 2 GiB, or `_MAX_RATIO` times its compressed length."""
_MAX_RATIO = 64
MAX_KEPT = 1 << 29
"""Limit for a region that is kept: 512 MiB."""
_AT_ONCE = 1 << 26
"""Bytes that are read from a file at once: 64 MiB."""
_CHUNK = 1 << 20
_VERSION = re.compile(rb"([0-9]{1,3})\.([0-9]{2})\0")
_ANY_VERSION = re.compile(rb"([0-9]{1,3})\.[0-9]{1,2}\0")
_NEWEST = (3, 41)
_WIDE = (3, 41)
"""First version with 64 modules and 64-bit flags."""
_ZLIB, _BZIP2, _NONE = 0, 1, 2
_OUTER = {b"\x1f\x8b": _ZLIB, b"BZh": _BZIP2}
"""Compression of a whole file, by its first bytes."""
_OLD = ("2.00", "2.01", "2.02", "2.03", "2.04", "2.05", "2.06")
_MAX_HEADER = 1328
_AGAIN = "copy it again from where Darshan wrote it, or leave it out"


@dataclass(frozen=True)
class Header:
    """Header of a log."""

    version: str
    compression: int
    regions: tuple[tuple[int, int], ...]
    """(offset, length) of each region: the job, the name table, and the modules."""
    versions: tuple[int, ...]
    """Record version of each module."""
    flags: int
    """Bit n is set if module n dropped records while the program ran."""
    order: str
    """Byte order, in the notation of `struct`."""


class LogFile:
    """The file of a log, possibly compressed with gzip or bzip2; large uncompressed files are not kept in memory.

    Attributes
    ----------
    digest
        SHA-256 of the whole file as stored, compressed or not.
    header
        Header of a Darshan 3 log.
    old_version, old_order
        Version and byte order of a Darshan 2 log; for other logs, None and meaningless.

    Raises
    ------
    UnknownFormatError
        The file is not a log, or of an unsupported version.
    TraceError
        The log is damaged, or cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with readable(path), path.open("rb") as file:
            length = os.fstat(file.fileno()).st_size
            content = file.read() if length <= _AT_ONCE else None
            head = file.read(_MAX_HEADER) if content is None else content
            file.seek(0)
            self.digest = hashlib.file_digest(file, "sha256").hexdigest()
        if (outer := next((way for magic, way in _OUTER.items() if head.startswith(magic)), None)) is not None:
            chunks = self._stored(0, length) if content is None else iter((content,))
            most = f"{MAX_KEPT >> 20:,} MiB"
            content = head = b"".join(_inflated(path, "the file", chunks, outer, MAX_KEPT, most))
        self._content = content
        self.old_version, self.old_order = _old_version(path, head)
        if self.old_version is None:
            self.header = header_of(path, head, length if content is None else len(content))
            self._names = _names(self.header.version)

    def old_pieces(self) -> Iterator[bytes]:
        """The whole content of a Darshan 2 log."""
        return iter((self._content,)) if self._content is not None else self._stored(0, self.path.stat().st_size)

    def name(self, number: int) -> str:
        """Describe a region, by its number in `Header.regions`."""
        return self._names.get(number, f"region {number - 2}")

    def pieces(self, number: int, *, keep: bool) -> Iterator[bytes]:
        """Yield the inflated content of a region, in pieces.

        Parameters
        ----------
        keep
            The caller keeps all of it in memory.

        Raises
        ------
        TraceError
            The region does not inflate completely, or exceeds a limit: `MAX_KEPT`, or without `keep` both 2 GiB and
            64 times its length.
        """
        offset, length = self.header.regions[number]
        if keep:
            most, limit = MAX_KEPT, f"{MAX_KEPT >> 20:,} MiB"
        else:
            most = max(_MAX_STREAMED, _MAX_RATIO * length)
            limit = f"{most >> 20:,} MiB"
        chunks = self._chunks(offset, length)
        if self.header.compression == _NONE:
            return chunks
        return _inflated(self.path, self.name(number), chunks, self.header.compression, most, limit)

    def _chunks(self, offset: int, length: int) -> Iterator[bytes]:
        if self._content is None:
            yield from self._stored(offset, length)
        elif length:
            yield self._content[offset : offset + length]

    def _stored(self, offset: int, length: int) -> Iterator[bytes]:
        with readable(self.path), self.path.open("rb") as file:
            file.seek(offset)
            while length:
                chunk = file.read(min(_CHUNK, length))
                if not chunk:
                    raise damaged_log(self.path, "it became shorter while it was read")
                length -= len(chunk)
                yield chunk


def _old_version(path: Path, head: bytes) -> tuple[str | None, str]:
    version = _ANY_VERSION.match(head)
    if version is None or int(version[1]) > 2:
        return None, "<"
    text = version[0][:-1].decode()
    order = next((o for o in "<>" if head[8:16] == struct.pack(f"{o}q", MAGIC)), None)
    if text not in _OLD:
        raise UnknownFormatError(
            f"is a Darshan log of version {text}, and {_OLD[0]} to {_OLD[-1]} are read of those before 3",
            where=path,
            todo="convert it with darshan-convert of Darshan 2.3.1",
        )
    if order is None:
        raise damaged_log(path, "it lacks the number of logs of Darshan 2")
    return text, order


@cache
def _names(version: str) -> dict[int, str]:
    names = {0: "the job's region", 1: "the name table"}
    return names | {number + 2: name for name, number in module_numbers(version).items()}


def header_of(path: Path, head: bytes, length: int) -> Header:
    """Read the header of a log.

    Parameters
    ----------
    head
        The beginning of the file.
    length
        Length of the whole file, in bytes.
    """
    if not head:
        raise TraceError("is an empty file, not a Darshan log", where=path, todo=_AGAIN)
    version = _VERSION.match(head)
    order = next((o for o in "<>" if head[8:16] == struct.pack(f"{o}q", MAGIC)), None)
    if order is None:
        raise UnknownFormatError("is not a Darshan log", where=path, todo="name a log of Darshan 2 or 3")
    if version is None:
        raise damaged_log(path, f"its version is {one_line(repr(head[:8]))}")
    number = (int(version[1]), int(version[2]))
    text = f"{number[0]}.{number[1]:02}"
    if number > _NEWEST:
        raise UnknownFormatError(
            f"is a Darshan log of version {text}, and 3.00 to {_NEWEST[0]}.{_NEWEST[1]} are read",
            where=path,
            todo="update Vani",
        )
    wide = number >= _WIDE
    modules, at = (64, 32) if wide else (16, 24)
    size = at + 16 * (1 + modules) + 4 * modules
    size = -(-size // 8) * 8
    if length <= size:
        raise damaged_log(path, f"it ends after {length:,} bytes, inside its header")
    compression = head[16]
    if compression not in (_ZLIB, _BZIP2, _NONE):
        raise damaged_log(path, f"its compression is {compression}, and 0 to 2 are known")
    (flags,) = struct.unpack_from(f"{order}{'Q' if wide else 'I'}", head, 24 if wide else 20)
    numbers = struct.unpack_from(f"{order}{2 * (1 + modules)}Q", head, at)
    pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
    placed = sorted(p for p in pairs if p[1])
    end = size
    for offset, extent in placed:
        if offset < end:
            raise damaged_log(
                path, f"a region begins at byte {offset:,}, before {end:,}, where the one before it ends"
            )
        end = offset + extent
        if end > length:
            raise damaged_log(path, f"a region ends at byte {end:,} of {length:,}: it was cut off")
    if placed and end < length:
        raise damaged_log(path, f"{length - end:,} bytes follow its last region: something was written behind it")
    job = (size, (placed[0][0] if placed else length) - size)
    versions = struct.unpack_from(f"{order}{modules}I", head, at + 16 * (1 + modules))
    return Header(text, compression, (job, *pairs), versions, flags, order)


def _inflated(
    path: Path, name: str, chunks: Iterator[bytes], compression: int, most: int, limit: str
) -> Iterator[bytes]:
    """Inflate consecutive streams; each may begin and end anywhere in the chunks."""
    stream: Any = None
    total = 0
    try:
        for data in chunks:
            left = data
            # A bzip2 stream keeps what it has not inflated yet.
            while left or not getattr(stream, "needs_input", True):
                if stream is None:
                    stream = zlib.decompressobj(47) if compression == _ZLIB else bz2.BZ2Decompressor()
                piece = stream.decompress(left, _CHUNK)
                left = getattr(stream, "unconsumed_tail", b"")
                total += len(piece)
                if total > most:
                    raise damaged_log(path, f"{name} inflates to more than {limit}")
                if piece:
                    yield piece
                if stream.eof:
                    left, stream = stream.unused_data, None
    except (zlib.error, OSError, EOFError, ValueError) as error:
        raise damaged_log(path, f"{name} does not inflate ({one_line(str(error))})") from error
    if stream is not None:
        raise damaged_log(path, f"{name} ends inside its compressed data")
