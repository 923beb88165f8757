"""Bounded reading of a Recorder trace's files, with one clear line if a file contradicts itself."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import cast

from isal import isal_zlib

from vani.errors import TraceError
from vani.units import counted

# isal's stub does not declare its error as an exception.
_DAMAGED: tuple[type[Exception], ...] = (zlib.error, cast("type[Exception]", isal_zlib.error))

CUT_OFF = "the file was cut off or damaged: copy the trace again, or run the program again"
"""Advice for a truncated file."""

MOST_TABLE_BYTES = 1 << 27
"""Largest call table that is read into memory (two million calls); real ones have a few MB, and decoding takes about
ten times as much."""

MOST_STREAMED_BYTES = 1 << 30
"""Largest call table that is inflated in pieces."""

_DEFLATE_RATIO = 1032
"""No deflate stream expands by more than this (zlib technical details, "Maximum Compression Factor")."""


def read_file(path: Path, *, most: int = MOST_TABLE_BYTES) -> bytes:
    """Read a whole file of a trace.

    Raises
    ------
    TraceError
        The file is missing, unreadable, not a regular file, or larger than `most` bytes.
    """
    try:
        if not path.is_file():
            raise TraceError("is missing" if not path.exists() else "is not a regular file", where=path)
        size = path.stat().st_size
        if size > most:
            raise TraceError(
                f"has {counted(size, 'byte')}, more than the {most:,} that Vani takes into memory", where=path
            )
        return path.read_bytes()
    except OSError as error:
        raise TraceError(f"cannot be read ({error.strerror})", where=path) from error


def split_frames(buffer: memoryview, *, where: str) -> list[memoryview]:
    """Split concatenated zlib frames, each of which is 16 bytes of sizes and a stream.

    Raises
    ------
    TraceError
        A size points outside the buffer.
    """
    frames = []
    at = 0
    while at < len(buffer):
        if at + 16 > len(buffer):
            raise TraceError(
                f"ends within the header of a zlib frame at byte {at}", where=where, todo=CUT_OFF
            )
        (packed,) = struct.unpack_from("<Q", buffer, at)
        if packed > len(buffer) - at - 16:
            raise TraceError(
                f"zlib frame at byte {at} claims {counted(packed, 'byte')}, {len(buffer) - at - 16:,} are left",
                where=where,
                todo=CUT_OFF,
            )
        frames.append(buffer[at : at + 16 + packed])
        at += 16 + packed
    return frames


def inflate_frame(frame: memoryview | bytes, *, where: str) -> bytes:
    """Inflate one zlib frame, checking its sizes first.

    Raises
    ------
    TraceError
        The sizes are wrong, the stream is damaged, or it has more than `MOST_TABLE_BYTES` of content.
    """
    if len(frame) < 16:
        raise TraceError(
            f"zlib frame of {counted(len(frame), 'byte')} has no header", where=where, todo=CUT_OFF
        )
    packed, content = struct.unpack_from("<QQ", frame)
    if packed != len(frame) - 16:
        raise _wrong_size(packed, len(frame) - 16, where)
    if content > min(MOST_TABLE_BYTES, packed * _DEFLATE_RATIO + 64):
        raise TraceError(f"zlib frame of {counted(packed, 'byte')} claims to contain {content:,}", where=where)
    stream = isal_zlib.decompressobj()
    try:
        data = stream.decompress(frame[16:], content + 1)
    except _DAMAGED as error:
        raise TraceError(f"zlib stream is damaged ({error})", where=where) from error
    if len(data) != content or not stream.eof:
        raise TraceError(
            f"zlib stream contains {counted(len(data), 'byte')} or more, its header says {content:,}",
            where=where,
        )
    return bytes(data)


def _wrong_size(claimed: int, actual: int, where: str) -> TraceError:
    return TraceError(
        f"zlib frame claims {counted(claimed, 'byte')}, there are {actual:,}",
        where=where,
        todo=CUT_OFF if actual < claimed else "",
    )


class Inflater:
    """Inflates a long zlib stream from a file, in pieces and bounded memory."""

    _READ = 1 << 18

    def __init__(self, path: Path, offset: int, packed: int, content: str = "time stamps: ") -> None:
        """Start at `offset` in the file; the stream has `packed` bytes, and errors name its `content`."""
        self._what = content
        self._file = path.open("rb")
        self._file.seek(offset)
        self._where = str(path)
        self._left = packed
        self._stream = isal_zlib.decompressobj()
        self._pending = b""

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, or fewer at the end of the stream.

        Raises
        ------
        TraceError
            The stream is damaged or ends early.
        """
        pieces = []
        while size > 0 and not self._stream.eof:
            source = self._pending
            if not source:
                source = self._file.read(min(self._READ, self._left))
                self._left -= len(source)
            try:
                piece = self._stream.decompress(source, size)
            except _DAMAGED as error:
                raise TraceError(
                    f"{self._what}zlib stream is damaged ({error})", where=self._where
                ) from error
            # All input may be read long before the last output is produced.
            if not source and not piece:
                break
            self._pending = self._stream.unconsumed_tail
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    @property
    def finished(self) -> bool:
        """Whether the stream has ended properly."""
        return bool(self._stream.eof)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class FramedTable:
    """The content of a zlib frame in a file, inflated in pieces; for tables that are too large for memory."""

    def __init__(self, path: Path, offset: int, packed: int, *, where: str) -> None:
        """Open the frame at `offset`, which has `packed` bytes including its header.

        Raises
        ------
        TraceError
            The sizes are wrong, or the frame has more than `MOST_STREAMED_BYTES` of content.
        """
        self._where = where
        with path.open("rb") as file:
            file.seek(offset)
            head = file.read(min(16, packed))
        if len(head) < 16:
            raise TraceError(
                f"zlib frame of {counted(packed, 'byte')} has no header", where=where, todo=CUT_OFF
            )
        claimed, self.size = struct.unpack("<QQ", head)
        if claimed != packed - 16:
            raise _wrong_size(claimed, packed - 16, where)
        if self.size > min(MOST_STREAMED_BYTES, claimed * _DEFLATE_RATIO + 64):
            raise TraceError(
                f"zlib frame of {counted(claimed, 'byte')} claims to contain {self.size:,}", where=where
            )
        self._left = self.size
        self._stream = Inflater(path, offset + 16, claimed, content="")

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, or fewer at the end.

        Raises
        ------
        TraceError
            The stream is damaged, or contains less or more than its header states.
        """
        amount = min(size, self._left)
        data = self._stream.read(amount)
        self._left -= len(data)
        short = len(data) < amount
        # After all content was read, request one more byte: the stream must have ended.
        if short or (not self._left and (self._stream.read(1) or not self._stream.finished)):
            raise TraceError(
                f"zlib stream contains {counted(self.size - self._left, 'byte')} or more, not {self.size:,}",
                where=self._where,
            )
        return data

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
