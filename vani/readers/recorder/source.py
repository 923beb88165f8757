"""The parts of a trace, whether they are files of a directory or sections of one recorder.dat."""

from __future__ import annotations

import hashlib
import re
import struct
from dataclasses import dataclass
from pathlib import Path

from vani.errors import TraceError
from vani.readers.recorder.frames import MOST_TABLE_BYTES, read_file

__all__ = ["Extent", "Source", "open_source"]

_PART = re.compile(r"VERSION|recorder\.(mt|ts|cst|dat)|ug\.(mt|cfg)|\d+\.(ts|cst|cfg)")
_RANK_TABLE = re.compile(r"([0-9]{1,9})\.(?:cst|cfg)")
_SECTIONS = {
    0: "recorder.mt",
    1: "recorder.ts",
    2: "recorder.cst",
    3: "ug.cfg",
    4: "ug.mt",
    5: "{rank}.cst",
    6: "{rank}.cfg",
}


@dataclass(frozen=True)
class Extent:
    """Where the bytes of a part lie."""

    path: Path
    offset: int
    length: int


class Source:
    """Parts of a trace by the names they have in the directory layouts."""

    def __init__(self, path: Path, parts: dict[str, Extent] | None) -> None:
        self.path = path
        self._parts = parts

    def extent(self, name: str) -> Extent | None:
        """Where a part lies, or None if there is none."""
        if self._parts is not None:
            return self._parts.get(name)
        path = self.path / name
        try:
            return Extent(path, 0, path.stat().st_size) if path.is_file() else None
        except OSError:
            return None

    def read(self, name: str) -> bytes:
        """Read a part into memory.

        Raises
        ------
        TraceError
            Missing, unreadable or too large.
        """
        if self._parts is None:
            return read_file(self.path / name)
        extent = self._parts.get(name)
        if extent is None:
            raise TraceError(f"has no section for {name}", where=self.path / "recorder.dat")
        if extent.length > MOST_TABLE_BYTES:
            raise TraceError(f"section for {name} has {extent.length} bytes", where=extent.path)
        try:
            with extent.path.open("rb") as file:
                file.seek(extent.offset)
                return file.read(extent.length)
        except OSError as error:
            raise TraceError(f"cannot be read ({error.strerror})", where=extent.path) from error

    def ranks_with_tables(self, ranks: int) -> list[int]:
        """Ranks below `ranks` of which there is a call table or grammar of their own, ascending."""
        try:
            names = (
                [entry.name for entry in self.path.iterdir()] if self._parts is None else list(self._parts)
            )
        except OSError as error:
            raise TraceError(f"cannot be listed ({error.strerror})", where=self.path) from error
        found = {int(match[1]) for name in names if (match := _RANK_TABLE.fullmatch(name))}
        return sorted(rank for rank in found if rank < ranks)

    def where(self, name: str) -> str:
        """Name a part in a message."""
        return str(self.path / name) if self._parts is None else f"{self.path / 'recorder.dat'} ({name})"

    def digest(self) -> str:
        """Identify the trace's content by its parts' names, sizes, times of change and first bytes."""
        digest = hashlib.sha256()
        try:
            for part in sorted(p for p in self.path.iterdir() if _PART.fullmatch(p.name) and p.is_file()):
                stat = part.stat()
                digest.update(f"{part.name}\0{stat.st_size}\0{stat.st_mtime_ns}\0".encode())
                with part.open("rb") as file:
                    digest.update(file.read(4096))
        except OSError as error:
            raise TraceError(
                f"cannot be read ({error.strerror})", where=error.filename or self.path
            ) from error
        return digest.hexdigest()


def open_source(path: Path, *, combined: bool) -> Source:
    """Open the parts of the trace at `path`.

    Raises
    ------
    TraceError
        recorder.dat is damaged.
    """
    if not combined:
        return Source(path, None)
    file = path / "recorder.dat"
    try:
        if not file.is_file():
            # Opening a pipe would wait for its writer.
            raise TraceError("is not a regular file", where=file)
        size = file.stat().st_size
        with file.open("rb") as opened:
            head = opened.read(16)
            if len(head) < 16 or head[:8] != b"RECORDER":
                raise TraceError("does not begin with RECORDER", where=file)
            version, sections = struct.unpack_from("<II", head, 8)
            if sections * 24 > size - 16:
                raise TraceError(f"format {version} claims {sections} sections", where=file)
            table = opened.read(24 * sections)
    except OSError as error:
        raise TraceError(f"cannot be read ({error.strerror})", where=file) from error
    parts = {}
    for kind, rank, offset, length in struct.iter_unpack("<IiQQ", table):
        if kind not in _SECTIONS:
            raise TraceError(f"format {version} has a section of the unknown type {kind}", where=file)
        if offset > size or length > size - offset:
            raise TraceError(f"format {version}: section of type {kind} lies outside the file", where=file)
        parts[_SECTIONS[kind].format(rank=rank)] = Extent(file, offset, length)
    return Source(path, parts)
