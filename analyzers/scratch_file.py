"""A file without a name, for what has no room in memory: threads append to it and read what they wrote.

So do forks of this process, each to a file of its own, which was opened before.
"""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from vani.engine.forks import fork_number
from vani.errors import NoRoomError
from vani.immutable import immutable

__all__ = ["Place", "ScratchFile"]


class _Nameless:
    """A file that is gone when nothing in it is needed any more, however the process ends."""

    def __init__(self, folder: Path) -> None:
        with tempfile.TemporaryFile(dir=folder) as file:
            self.descriptor = os.dup(file.fileno())
        weakref.finalize(self, os.close, self.descriptor)
        self._number = next(_numbers)
        _open[self._number] = self

    def __reduce__(self) -> tuple[object, ...]:
        # What a fork tells of is open in the process that it comes from, too.
        return _opened_before, (self._number,)


_numbers = count()
_open: weakref.WeakValueDictionary[int, _Nameless] = weakref.WeakValueDictionary()


def _opened_before(number: int) -> _Nameless:
    return _open[number]


@immutable
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
    forks
        How many forks of this process append, too: their files are made at once.
    """

    def __init__(self, folder: Path, *, forks: int = 0) -> None:
        self._folders = (folder, Path(tempfile.gettempdir()))
        self._of_forks = [[_made_or_why_not(place) for place in self._folders] for _ in range(forks)]
        self._writer = self._tried = 0
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
            if self._writer != fork_number():
                self._writer, self._tried, self._file = fork_number(), 0, None
            while True:
                try:
                    if self._file is None:
                        self._file, self._end = self._opened(), 0
                    file, offset = self._file, self._end
                    at = offset
                    for part in parts:
                        at = _write(file.descriptor, part, at)
                except OSError as error:
                    # What lies in the file that is full stays there.
                    self._file = None
                    self._tried += 1
                    if self._tried == len(self._folders):
                        self._tried -= 1
                        raise NoRoomError(
                            f"cannot write temporary data here ({error.strerror})",
                            where=self._folders[-1],
                            todo="free some space, or name another folder with VANI_CACHE",
                        ) from error
                    continue
                self._end = at
                return Place(file, offset, size)

    def _opened(self) -> _Nameless:
        if not self._writer:
            return _Nameless(self._folders[self._tried])
        made = self._of_forks[self._writer - 1][self._tried]
        if isinstance(made, OSError):
            raise made
        return made


def _made_or_why_not(folder: Path) -> _Nameless | OSError:
    try:
        return _Nameless(folder)
    except OSError as error:
        return error


def _write(descriptor: int, part: bytes | memoryview, at: int) -> int:
    """Write all of it; returns where it ends."""
    left = memoryview(part).cast("B")
    while len(left):
        done = os.pwrite(descriptor, left, at)
        left, at = left[done:], at + done
    return at
