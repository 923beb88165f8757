"""How often each size occurs in each group of calls."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.kernels.arrays import address
from vani.kernels.library import function, note

__all__ = ["size_counts"]

_ADDRESS, _NUMBER = ctypes.c_void_p, ctypes.c_int64

Ints = NDArray[np.int64]


def size_counts(codes: NDArray[Any], size: Ints, data: NDArray[np.bool_]) -> tuple[Ints, Ints, Ints] | None:
    """Group, size and how often it occurs, by group and size; None if numpy decides.

    Parameters
    ----------
    codes, size
        Group and bytes of each call, shape (n,); the smallest integer for an unknown size, which is left out.
    data
        Shape (groups,): which groups count.
    """
    kernel = function(
        "vani_size_counts",
        _ADDRESS,
        _ADDRESS,
        _NUMBER,
        _ADDRESS,
        _NUMBER,
        _ADDRESS,
        _NUMBER,
        _ADDRESS,
        _ADDRESS,
    )
    if kernel is None:
        return None
    n, groups = len(codes), len(data)
    codes, size = np.ascontiguousarray(codes, np.int32), np.ascontiguousarray(size, np.int64)
    chosen = np.ascontiguousarray(data, np.bool_).view(np.uint8)
    slots = np.zeros(1 << max(1, (2 * n - 1).bit_length()), np.int32)
    found, many = np.empty((n, 3), np.int64), np.zeros(1, np.int64)
    done = kernel(
        address(codes, np.int32, n),
        address(size, np.int64, n),
        n,
        address(chosen, np.uint8, groups),
        groups,
        address(slots, np.int32),
        len(slots),
        address(found, np.int64),
        address(many, np.int64),
    )
    note("size_counts", used=done == 0)
    if done:
        return None
    first, second, count = found[: int(many[0])].T
    order = np.lexsort((second, first))
    return first[order], second[order], count[order]
