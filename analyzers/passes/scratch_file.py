"""A file without a name, for what has no room in memory or would be sent between processes that share it.

Threads append to it and read what they wrote. So do forks of this process, each to a file of its own; whoever is told
of a place opens the file through the process that tells it.
"""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from vani.errors import NoRoomError, VaniError

__all__ = ["Place", "ScratchFile", "can_lie_in_memory"]


class _Nameless:
    """A file that is gone when nothing in it is needed any more, however the processes end."""

    def __init__(self, descriptor: int, name: tuple[int, int]) -> None:
        self.descriptor, self._name = descriptor, name
        weakref.finalize(self, os.close, descriptor)
        _open[name] = self

    @staticmethod
    def made_in(folder: Path | None) -> _Nameless:
        if folder is None:
            return _Nameless(os.memfd_create("vani"), _next_name())
        with tempfile.TemporaryFile(dir=folder) as file:
            return _Nameless(os.dup(file.fileno()), _next_name())

    def __reduce__(self) -> tuple[object, ...]:
        return _opened_as_by, (self._name, os.getpid(), self.descriptor)


def _next_name() -> tuple[int, int]:
    return os.getpid(), next(_numbers)


_numbers = count()
_open: weakref.WeakValueDictionary[tuple[int, int], _Nameless] = weakref.WeakValueDictionary()
"""By the process that made it, and how many it had made before."""


def _opened_as_by(name: tuple[int, int], process: int, descriptor: int) -> _Nameless:
    """The file of this name, which another process has opened."""
    if (found := _open.get(name)) is not None:
        return found
    try:
        # The same file, though it lies in no folder (proc_pid_fd(5)).
        opened = os.open(f"/proc/{process}/fd/{descriptor}", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise VaniError(
            f"temporary data of a process that shares the work cannot be read ({error.strerror})",
            todo="use --scheduler synchronous",
        ) from error
    return _Nameless(opened, name)


@dataclass(frozen=True, eq=False)
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


def can_lie_in_memory() -> bool:
    """Tell whether the system makes files that lie in no folder: Linux does, see memfd_create(2)."""
    return hasattr(os, "memfd_create")


class ScratchFile:
    """Appends to a file in a folder; where that takes nothing more, to one in the system's temporary folder.

    Parameters
    ----------
    folder
        Where the file is made when the first bytes come; None: in memory, if `can_lie_in_memory`.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._folders = (folder, Path(tempfile.gettempdir()))
        self._process, self._tried = os.getpid(), 0
        self._file: _Nameless | None = None
        self._end = 0
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[object, ...]:
        return ScratchFile, (self._folder,)

    def append(self, parts: Sequence[bytes | memoryview]) -> Place:
        """Write some bytes, one behind the other.

        Raises
        ------
        NoRoomError
            Neither folder takes them.
        """
        size = sum(len(part) for part in parts)
        with self._lock:
            if self._process != os.getpid():
                self._process, self._tried, self._file = os.getpid(), 0, None
            while True:
                try:
                    if self._file is None:
                        self._file, self._end = _Nameless.made_in(self._folders[self._tried]), 0
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


def _write(descriptor: int, part: bytes | memoryview, at: int) -> int:
    """Write all of it; returns where it ends."""
    left = memoryview(part).cast("B")
    while len(left):
        done = os.pwrite(descriptor, left, at)
        left, at = left[done:], at + done
    return at
