"""How far writes and cuts reached from moment to moment, by group of calls."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.kernels.arrays import address
from vani.kernels.library import function, note

__all__ = ["CUTS", "LEFT_OUT", "WRITES", "reach"]

_ADDRESS, _NUMBER = ctypes.c_void_p, ctypes.c_int64

Ints = NDArray[np.int64]

LEFT_OUT, WRITES, CUTS = range(3)
"""What the calls of a group are; the offset of a cut is the new length."""


def reach(
    calls: tuple[NDArray[Any], Ints, Ints, Ints],
    what: NDArray[Any],
    *,
    length: int,
    most: int,
    level: int = 0,
    empty: bool = False,
    after: Ints | None = None,
) -> tuple[Ints, Ints, Ints, Ints] | None:
    """Group, moment, furthest end and latest start of calls of known place and size; None if numpy decides.

    Parameters
    ----------
    calls
        Group, offset, bytes and start (ns) of each call, shape (n,) each.
    what
        Shape (groups,).
    length, most, level
        Moments are pieces of `length` ns, the last one is `most`; 2 ** level of them are put together.
    empty
        Writes of nothing count, with an end of 0.
    after
        Shape (groups,): the first call of each group that counts; None for all.

    Returns
    -------
    tuple or None
        Columns of the same length; a group and moment may come several times.
    """
    kernel = function("vani_reach", *[_ADDRESS] * 4, _NUMBER, _ADDRESS, _ADDRESS, *[_NUMBER] * 5, *[_ADDRESS] * 3)
    if kernel is None:
        return None
    n, groups = len(calls[0]), len(what)
    codes, what = np.ascontiguousarray(calls[0], np.int32), np.ascontiguousarray(what, np.uint8)
    after = np.zeros(groups, np.int64) if after is None else np.ascontiguousarray(after, np.int64)
    columns = [np.ascontiguousarray(column, np.int64) for column in calls[1:]]
    opened, found, count = np.zeros(groups, np.int32), np.empty((n, 4), np.int64), np.zeros(1, np.int64)
    done = kernel(
        address(codes, np.int32, n),
        *(address(column, np.int64, n) for column in columns),
        n,
        address(what, np.uint8, groups),
        address(after, np.int64, groups),
        *(groups, length, most, level, empty),
        address(opened, np.int32),
        address(found, np.int64),
        address(count, np.int64),
    )
    note("reach", used=done == 0)
    if done:
        return None
    group, moment, end, last = np.ascontiguousarray(found[: int(count[0])].T)
    return group, moment, end, last
