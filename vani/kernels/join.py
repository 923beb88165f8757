"""The union of two lists of intervals by group, each in order and without overlaps."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.kernels.arrays import address
from vani.kernels.library import function, note

__all__ = ["join"]

_ADDRESS, _NUMBER = ctypes.c_void_p, ctypes.c_int64

Ints = NDArray[np.int64]


class _Intervals(ctypes.Structure):
    _fields_ = (*((name, _ADDRESS) for name in ("group", "start", "end")), ("count", _NUMBER))


def join(one: Sequence[NDArray[Any]], other: Sequence[NDArray[Any]]) -> tuple[Ints, Ints, Ints] | None:
    """Join intervals of a group that overlap or touch; None if numpy decides.

    Parameters
    ----------
    one, other
        Group, start and end, shape (n,) each: sorted by group and start, none of them empty.

    Returns
    -------
    tuple or None
        The same of what is left, in the same order.
    """
    lists = ctypes.POINTER(_Intervals)
    kernel = function("vani_join", lists, lists, *[_ADDRESS] * 4)
    if kernel is None:
        return None
    both = [[np.ascontiguousarray(column, np.int64) for column in columns] for columns in (one, other)]
    found = [np.empty(len(both[0][0]) + len(both[1][0]), np.int64) for _ in range(3)]
    count = np.zeros(1, np.int64)
    done = kernel(
        *(
            _Intervals(*(address(column, np.int64, len(columns[0])) for column in columns), len(columns[0]))
            for columns in both
        ),
        *(address(column, np.int64) for column in (*found, count)),
    )
    note("join", used=done == 0)
    if done:
        return None
    group, start, end = (column[: int(count[0])] for column in found)
    return group, start, end
