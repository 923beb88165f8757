"""How far files reached over time, for kernels that ask for it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.kernels.arrays import address

__all__ = ["ByTime", "FileEnds"]

Ints = NDArray[np.int64]
_ADDRESS, _NUMBER = ctypes.c_void_p, ctypes.c_int64


class FileEnds(ctypes.Structure):
    """As `struct ends`."""

    _fields_ = (
        *((name, _ADDRESS) for name in ("known", "since")),
        ("files", _NUMBER),
        *((name, _ADDRESS) for name in ("keys", "reach")),
        *((name, _NUMBER) for name in ("count", "bucket_ns", "level", "buckets", "moments")),
    )


@dataclass(frozen=True, eq=False)
class ByTime:
    """Columns by file, `known` and `since`, shape (files,); and by key of file and moment, shape (n,), ascending."""

    known: NDArray[np.bool_]
    since: Ints
    keys: Ints
    reach: NDArray[Any]
    bucket_ns: int
    level: int
    buckets: int
    moments: int

    @cached_property
    def _columns(self) -> tuple[NDArray[np.uint8], Ints, Ints, Ints]:
        since, keys, reach = (np.ascontiguousarray(c, np.int64) for c in (self.since, self.keys, self.reach))
        return np.ascontiguousarray(self.known, np.bool_).view(np.uint8), since, keys, reach

    @cached_property
    def structure(self) -> FileEnds:
        """For a kernel, which needs this kept alive."""
        known, since, keys, reach = self._columns
        return FileEnds(
            address(known, np.uint8),
            address(since, np.int64, len(known)),
            len(known),
            address(keys, np.int64),
            address(reach, np.int64, len(keys)),
            len(keys),
            self.bucket_ns,
            self.level,
            self.buckets,
            self.moments,
        )
