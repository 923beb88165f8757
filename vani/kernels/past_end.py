"""Bytes that reads asked for beyond the end of their file, by group."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.kernels.arrays import address
from vani.kernels.ends import ByTime, FileEnds
from vani.kernels.library import function, note

__all__ = ["past_end"]

_ADDRESS, _NUMBER = ctypes.c_void_p, ctypes.c_int64

Ints = NDArray[np.int64]


def past_end(
    calls: tuple[NDArray[Any], Ints, Ints, Ints, Ints], file: Ints, ends: ByTime
) -> tuple[Ints, Ints] | None:
    """Bytes beyond the end, and reads of files whose end is known, by group, shape (groups,); None if numpy decides.

    Parameters
    ----------
    calls
        Group, offset, bytes, start and duration (ns) of each call, shape (n,) each.
    file
        Shape (groups,): file of the reads of the group, -1 leaves a group out.
    """
    kernel = function(
        "vani_past_end",
        *[_ADDRESS] * 5,
        *(_NUMBER, _ADDRESS, _NUMBER, ctypes.POINTER(FileEnds), *[_ADDRESS] * 3),
    )
    if kernel is None:
        return None
    n, groups = len(calls[0]), len(file)
    codes, file = np.ascontiguousarray(calls[0], np.int32), np.ascontiguousarray(file, np.int64)
    columns = [np.ascontiguousarray(column, np.int64) for column in calls[1:]]
    beyond, reads = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    near = np.zeros(groups, np.int64)
    done = kernel(
        address(codes, np.int32, n),
        *(address(column, np.int64, n) for column in columns),
        n,
        address(file, np.int64, groups),
        groups,
        ends.structure,
        address(near, np.int64),
        address(beyond, np.int64),
        address(reads, np.int64),
    )
    note("past_end", used=done == 0)
    return (beyond, reads) if done == 0 else None
