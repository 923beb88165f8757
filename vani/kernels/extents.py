"""Extents of files that calls touched, those that follow each other put together."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.kernels.arrays import address
from vani.kernels.library import function, note

__all__ = ["extents"]

_ADDRESS, _NUMBER = ctypes.c_void_p, ctypes.c_int64

Ints = NDArray[np.int64]


def extents(
    codes: NDArray[Any], offset: Ints, size: Ints, side: NDArray[Any], sides: int
) -> tuple[Ints, Ints, Ints] | None:
    """Side, start and end of what calls of known place and size touched; None if numpy decides.

    Parameters
    ----------
    codes, offset, size
        Group, and where it was, of each call; shape (n,).
    side
        Shape (groups,): what extents are put together by, below `sides`; -1 leaves a group out.

    Returns
    -------
    tuple or None
        Columns of the same length, in no order; extents may overlap.
    """
    kernel = function("vani_extents", *[_ADDRESS] * 3, _NUMBER, _ADDRESS, _NUMBER, _NUMBER, *[_ADDRESS] * 3)
    if kernel is None:
        return None
    n, groups = len(codes), len(side)
    codes, side = np.ascontiguousarray(codes, np.int32), np.ascontiguousarray(side, np.int32)
    offset, size = np.ascontiguousarray(offset, np.int64), np.ascontiguousarray(size, np.int64)
    opened, found, count = np.zeros(sides, np.int32), np.empty((n, 3), np.int64), np.zeros(1, np.int64)
    done = kernel(
        address(codes, np.int32, n),
        address(offset, np.int64, n),
        address(size, np.int64, n),
        n,
        address(side, np.int32, groups),
        groups,
        sides,
        address(opened, np.int32),
        address(found, np.int64),
        address(count, np.int64),
    )
    note("extents", used=done == 0)
    if done:
        return None
    of, start, end = np.ascontiguousarray(found[: int(count[0])].T)
    return of, start, end
