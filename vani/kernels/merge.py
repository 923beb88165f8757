"""Unions of intervals by group, where those of a group come in few runs in order of their starts."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.kernels.arrays import address
from vani.kernels.library import function, note

__all__ = ["merge"]

_ADDRESS, _NUMBER = ctypes.c_void_p, ctypes.c_int64

Ints = NDArray[np.int64]


def merge(group: NDArray[Any], start: Ints, end: Ints) -> tuple[Ints, Ints, Ints] | None:
    """Join intervals of a group that overlap or touch, leave empty ones out; None if numpy decides.

    Parameters
    ----------
    group, start, end
        Shape (n,) each.

    Returns
    -------
    tuple or None
        The same of what is left, sorted by group and start.
    """
    kernel = function("vani_merge", *[_ADDRESS] * 3, *[_NUMBER] * 3, *[_ADDRESS] * 8)
    n = len(group)
    if kernel is None or not n:
        return None
    lowest = int(group.min())
    groups = int(group.max()) - lowest + 1
    if groups > 4 * n + 1024:
        return None
    columns = [np.ascontiguousarray(column, np.int64) for column in (group, start, end)]
    first, last = np.zeros(groups + 2, np.int64), np.full(groups, np.iinfo(np.int64).min)
    pairs, spare = np.empty((n, 2), np.int64), np.empty((n, 2), np.int64)
    found, count = [np.empty(n, np.int64) for _ in range(3)], np.zeros(1, np.int64)
    done = kernel(
        *(address(column, np.int64, n) for column in columns),
        n,
        lowest,
        groups,
        *(address(column, np.int64) for column in (first, last, pairs, spare, *found, count)),
    )
    note("merge", used=done == 0)
    if done:
        return None
    of, begin, stop = (column[: int(count[0])] for column in found)
    return of, begin, stop
