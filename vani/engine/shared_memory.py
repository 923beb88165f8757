"""Memory that a process and its forks share, where one of them lays down what others are told."""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Sequence

__all__ = ["SharedMemory"]

_APART = 64
"""Arrays begin where a line of the processor's cache does."""


class SharedMemory:
    """Bytes that one process lays down and those that have it by a fork read, none of which has a copy.

    Parameters
    ----------
    size
        Bytes that it holds; what is not written to takes no memory.

    Raises
    ------
    OSError
        The system makes no files that lie in memory.
    """

    def __init__(self, size: int) -> None:
        if not hasattr(os, "memfd_create"):
            raise OSError("no files that lie in memory")
        # What is written to a file gets its memory in half the time that it takes where a program touches pages first.
        self._file = _File()
        self._begin = self._end = 0
        self._size = size

    def region(self, number: int) -> SharedMemory:
        """As much again for another process to lay down things, apart from those of all other numbers; 0 is this."""
        other = object.__new__(SharedMemory)
        other._file, other._size = self._file, self._size
        other._begin = other._end = number * self._size
        return other

    def put(self, parts: Sequence[memoryview]) -> list[slice] | None:
        """Lay down some bytes, each part apart from the others; where they are, or None where there is no room."""
        places, end = [], self._end
        for part in parts:
            begin = -(-end // _APART) * _APART
            end = begin + part.nbytes
            places.append(slice(begin, end))
        if end > self._begin + self._size:
            return None
        for place, part in zip(places, parts, strict=True):
            if not self._file.write(part.cast("B"), place.start):
                return None
        self._end = end
        return places

    def at(self, places: Sequence[slice]) -> list[memoryview]:
        """What lies there, to be read only: another process would see it change."""
        full = [place for place in places if place.stop > place.start]
        low = min((place.start for place in full), default=0)
        low -= low % mmap.ALLOCATIONGRANULARITY
        size = max((place.stop for place in full), default=0) - low
        # Memory of length 0 cannot be mapped.
        content = memoryview(self._file.mapped(low, size) if size else b"")
        return [content[place.start - low : place.stop - low] for place in places]


class _File:
    """A file in memory, closed when nobody needs it."""

    def __init__(self) -> None:
        self._descriptor = os.memfd_create("vani")
        weakref.finalize(self, os.close, self._descriptor)

    def write(self, part: memoryview, at: int) -> bool:
        """Whether it took all of it."""
        while part.nbytes:
            try:
                done = os.pwrite(self._descriptor, part, at)
            except OSError:
                return False
            part, at = part[done:], at + done
        return True

    def mapped(self, begin: int, size: int) -> mmap.mmap:
        return mmap.mmap(self._descriptor, size, offset=begin, access=mmap.ACCESS_READ)
