"""What processes do from moment to moment."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.kernels.arrays import address
from vani.kernels.library import function, note

__all__ = ["BITS", "COLUMNS", "activity"]

_ADDRESS, _NUMBER = ctypes.c_void_p, ctypes.c_int64

Ints = NDArray[np.int64]

BITS = {"counted": 1, "reads": 2, "writes": 4, "opens": 8}
"""What the calls of a group are."""
COLUMNS = ("process", "moment", "start", "end", "read", "written", "data", "opens", "calls")


def activity(
    calls: tuple[NDArray[Any], Ints, Ints, Ints],
    process: Ints,
    what: NDArray[Any],
    *,
    length: int,
    most: int,
    level: int,
) -> dict[str, Ints] | None:
    """`COLUMNS` of what each process did at each moment, which may come several times; None if numpy decides.

    Parameters
    ----------
    calls
        Group, bytes, start and duration (ns) of each call, shape (n,) each.
    process, what
        Shape (groups,), `what` of `BITS`.
    length, most, level
        Moments are pieces of `length` ns, the last one is `most`; 2 ** level of them are put together.
    """
    kernel = function(
        "vani_activity", *[_ADDRESS] * 4, _NUMBER, _ADDRESS, _ADDRESS, *[_NUMBER] * 4, _ADDRESS, _ADDRESS
    )
    if kernel is None:
        return None
    n, groups = len(calls[0]), len(what)
    codes, what = np.ascontiguousarray(calls[0], np.int32), np.ascontiguousarray(what, np.uint8)
    columns = [np.ascontiguousarray(column, np.int64) for column in calls[1:]]
    process = np.ascontiguousarray(process, np.int64)
    found, count = np.empty((n, len(COLUMNS)), np.int64), np.zeros(1, np.int64)
    done = kernel(
        address(codes, np.int32, n),
        *(address(column, np.int64, n) for column in columns),
        n,
        address(process, np.int64, groups),
        address(what, np.uint8, groups),
        *(groups, length, most, level),
        address(found, np.int64),
        address(count, np.int64),
    )
    note("activity", used=done == 0)
    if done:
        return None
    return dict(zip(COLUMNS, np.ascontiguousarray(found[: int(count[0])].T), strict=True))
