"""Memory that a process and its forks share, where it lays down what forks are told once they are at work."""

from __future__ import annotations

import mmap
from collections.abc import Sequence

__all__ = ["SharedMemory"]

_APART = 64
"""Arrays begin where a line of the processor's cache does."""


class SharedMemory:
    """Bytes that one process lays down and those that are forked from it afterwards read, none of which has a copy.

    Parameters
    ----------
    size
        Bytes that it holds; what is not written to takes no memory.

    Raises
    ------
    OSError
        The system does not give as many.
    """

    def __init__(self, size: int) -> None:
        self._bytes = memoryview(mmap.mmap(-1, size))
        self._end = 0

    def put(self, parts: Sequence[memoryview]) -> list[slice] | None:
        """Lay down some bytes, each part apart from the others; where they are, or None where there is no room."""
        places, end = [], self._end
        for part in parts:
            begin = -(-end // _APART) * _APART
            end = begin + part.nbytes
            places.append(slice(begin, end))
        if end > len(self._bytes):
            return None
        for place, part in zip(places, parts, strict=True):
            self._bytes[place] = part.cast("B")
        self._end = end
        return places

    def at(self, places: Sequence[slice]) -> list[memoryview]:
        """What lies there, to be read only: another process would see it change."""
        return [self._bytes[place].toreadonly() for place in places]

    def clear(self) -> None:
        """Make room, once nobody reads what lies there any more."""
        self._end = 0
