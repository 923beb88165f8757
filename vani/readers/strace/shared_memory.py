"""Files in /dev/shm through which processes share memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa

from vani.calls import Flag, Kind
from vani.columns import to_numpy
from vani.readers.plausible import NO_VALUE
from vani.readers.strace.system_calls import FUNCTIONS, kind_of
from vani.readers.system_files import SHM

_READS = np.array([kind_of(name) is Kind.READ for name in FUNCTIONS])
"""Whether each function reads, by code."""
_SOON_NS = 1_000_000_000
"""Nanoseconds: a file in /dev/shm that is mapped and unlinked this soon after its creation shares memory between
processes. Programs that keep data there read it back, or remove it when they end."""


class SharedMemory:
    """Times when files in /dev/shm were created, read and removed."""

    def __init__(self) -> None:
        self._in_shm = np.zeros(0, np.bool_)
        """Whether each file is in /dev/shm."""
        self._created: dict[int, int] = {}
        """Nanoseconds, by file."""
        self._removed: dict[int, int] = {}
        self._read: set[int] = set()

    def see(self, rows: pa.RecordBatch, paths: Sequence[str]) -> None:
        """Add rows of a block (`rows.ROWS`); `paths` are by code."""
        new = [path.startswith(SHM) for path in paths[len(self._in_shm) :]]
        self._in_shm = np.append(self._in_shm, np.array(new, np.bool_))
        if not self._in_shm.any():
            return
        file = to_numpy(rows.column("file"))
        at = np.flatnonzero((file >= 0) & self._in_shm[file])
        file, start, flags = file[at], to_numpy(rows.column("start"))[at], to_numpy(rows.column("flags"))[at]
        func, size = to_numpy(rows.column("func"))[at], to_numpy(rows.column("bytes"))[at]
        self._read.update(file[_READS[func] & (size != NO_VALUE)].tolist())
        for flag, times in ((Flag.CREATE, self._created), (Flag.REMOVE, self._removed)):
            rows_of_flag = np.flatnonzero(flags & flag)
            for code, when in zip(file[rows_of_flag].tolist(), start[rows_of_flag].tolist(), strict=True):
                times.setdefault(code, when)

    def passes_memory(self, mapped: Collection[int]) -> list[int]:
        """Files that were created, mapped (`mapped`) and soon unlinked, and that no call reads."""
        return [
            code
            for code, when in self._created.items()
            if code in mapped
            and code not in self._read
            and when <= self._removed.get(code, -1) <= when + _SOON_NS
        ]
