"""The lines of one DFTracer file, plain or gzip members, in blocks of some MiB."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from isal import isal_zlib

from vani.errors import TraceError

_BLOCK = 1 << 22
"""Bytes of lines parsed at a time, about 20,000 events."""
_COMPRESSED = 1 << 18
_LONGEST = 1 << 24
"""Longest possible line of DFTracer, in bytes."""
_GZIP = b"\x1f\x8b"
# isal's stub does not declare its error as an exception.
_DAMAGED = cast("type[Exception]", isal_zlib.error)
_ANY_GZIP = 31
"""zlib's window bits for a stream with a gzip header."""


@dataclass
class LineReader:
    """Reads the lines of one file."""

    path: Path
    cut: str = ""
    """Why a file ends too early; empty if it is complete."""
    empty: bool = True
    too_long: int = 0
    """Number of skipped lines."""

    def blocks(self) -> Iterator[list[bytes]]:
        """Yield lines with an event, in blocks, without the brackets and commas around events.

        Raises
        ------
        TraceError
            The file cannot be read.
        """
        rest = b""
        skips = False
        for data in self._contents():
            self.empty = False
            end = data.rfind(b"\n") + 1
            if not end:
                rest += data
                if len(rest) > _LONGEST:
                    self.too_long += not skips
                    rest, skips = b"", True
                continue
            lines = (rest + data[:end]).split(b"\n")
            rest = data[end:]
            if skips:
                lines, skips = lines[1:], False
            yield _events(lines)
        last = _events([] if skips else [rest])
        # A file that was not finalised ends in the middle of an event.
        if last and not last[0].endswith(b"}"):
            self.cut, last = self.cut or "in the middle of a line", []
        yield last

    def _contents(self) -> Iterator[bytes]:
        try:
            with self.path.open("rb") as file:
                data = file.read(_COMPRESSED)
                if not data.startswith(_GZIP):
                    while data:
                        yield data
                        data = file.read(_BLOCK)
                    return
                inflate = isal_zlib.decompressobj(_ANY_GZIP)
                try:
                    while data:
                        yield inflate.decompress(data, _BLOCK)
                        data = inflate.unconsumed_tail or inflate.unused_data or file.read(_COMPRESSED)
                        if inflate.eof:
                            # Zeros may follow a member if a tape or a file system padded a block.
                            data = data.lstrip(b"\0") or file.read(_COMPRESSED)
                            inflate = isal_zlib.decompressobj(_ANY_GZIP) if data else inflate
                except _DAMAGED:
                    self.cut = f"where its compressed data is damaged, before byte {file.tell():,}"
                    return
                if not inflate.eof:
                    self.cut = "within its compressed data"
        except OSError as error:
            raise TraceError(f"cannot be read ({error.strerror})", where=self.path) from error


def _events(lines: list[bytes]) -> list[bytes]:
    stripped = (line.strip(b" \t\r,[]\0") for line in lines)
    return [line for line in stripped if line]
