"""A file without a name, for what has no room in memory: threads append to it and read what they wrote."""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vani.errors import NoRoomError

__all__ = ["Place", "ScratchFile"]


class _Nameless:
    """A file that is gone when nothing in it is needed any more, however the process ends."""

    def __init__(self, folder: Path) -> None:
        with tempfile.TemporaryFile(dir=folder) as file:
            self.descriptor = os.dup(file.fileno())
        weakref.finalize(self, os.close, self.descriptor)


@dataclass(frozen=True)
class Place:
    """Where some bytes lie."""

    file: _Nameless
    offset: int
    size: int

    def read(self) -> bytes:
        """The bytes.

        Raises
        ------
        NoRoomError
            They are not there any more.
        """
        found = os.pread(self.file.descriptor, self.size, self.offset)
        if len(found) != self.size:
            raise NoRoomError("a file for temporary data was cut", todo="run this again")
        return found


class ScratchFile:
    """Appends to a file in a folder; where that takes nothing more, to one in the system's temporary folder.

    Parameters
    ----------
    folder
        Where the file is made when the first bytes come.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._next = folder, [Path(tempfile.gettempdir())]
        self._file: _Nameless | None = None
        self._end = 0
        self._lock = threading.Lock()

    def append(self, parts: Sequence[bytes | memoryview]) -> Place:
        """Write some bytes, one behind the other.

        Raises
        ------
        NoRoomError
            Neither folder takes them.
        """
        size = sum(len(part) for part in parts)
        with self._lock:
            while True:
                try:
                    if self._file is None:
                        self._file, self._end = _Nameless(self._folder), 0
                    file, offset = self._file, self._end
                    at = offset
                    for part in parts:
                        at = _write(file.descriptor, part, at)
                except OSError as error:
                    # What lies in the file that is full stays there.
                    self._file = None
                    if not self._next:
                        raise NoRoomError(
                            f"cannot write temporary data here ({error.strerror})",
                            where=self._folder,
                            todo="free some space, or name another folder with VANI_CACHE",
                        ) from error
                    self._folder = self._next.pop()
                    continue
                self._end = at
                return Place(file, offset, size)


def _write(descriptor: int, part: bytes | memoryview, at: int) -> int:
    """Write all of it; returns where it ends."""
    left = memoryview(part).cast("B")
    while len(left):
        done = os.pwrite(descriptor, left, at)
        left, at = left[done:], at + done
    return at
