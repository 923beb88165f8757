"""Calls in groups that share every attribute but place, size and time."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.kernels.arrays import address
from vani.kernels.library import function, note

__all__ = ["COLUMNS", "Signatures", "signatures"]

COLUMNS = (
    ("rank", np.int32),
    ("file", np.int32),
    ("func", np.int16),
    ("within", np.int16),
    ("flags", np.int16),
    ("layer", np.int8),
    ("kind", np.int8),
    ("via", np.int8),
    ("offset", np.int64),
    ("bytes", np.int64),
    ("start_ns", np.int64),
    ("duration_ns", np.int64),
)
"""What it reads of calls, -1 for no file and the smallest integer for no offset and no bytes."""

_SUMS = (
    *("row", "phase", "count", "bytes", "time"),
    *("unsized", "placeless", "displaced", "first", "last", "end"),
)
_WIDTH = len(_SUMS) + 2
_ADDRESS = ctypes.c_void_p

Ints = NDArray[np.int64]


class _Calls(ctypes.Structure):
    _fields_ = tuple((name, _ADDRESS) for name, _ in COLUMNS)


@dataclass(frozen=True, eq=False, repr=False)
class Signatures:
    """Groups of calls and what is added up of each; shape (groups,) but for `codes`."""

    codes: NDArray[np.int32]
    """Group of each call."""
    row: Ints
    """The last call of each group."""
    phase: Ints
    """Place among the starts of phases."""
    count: Ints
    """Calls."""
    bytes: Ints
    time: Ints
    """Duration, ns."""
    unsized: Ints
    """Reads and writes of unknown size."""
    placeless: Ints
    """Calls of unknown offset."""
    displaced: Ints
    """Of them, those of more than 0 bytes."""
    first: Ints
    """Earliest and latest start, ns, and latest end."""
    last: Ints
    end: Ints


def signatures(calls: Sequence[NDArray[Any]], phase_starts: Ints, shift: int) -> Signatures | None:
    """Group calls; None if numpy decides.

    Parameters
    ----------
    calls
        `COLUMNS`, shape (n,) each.
    phase_starts
        Ascending, ns.
    shift
        Added to the starts, ns.
    """
    kernel = function(
        "vani_signatures",
        *(ctypes.POINTER(_Calls), ctypes.c_int64, _ADDRESS, ctypes.c_int64, ctypes.c_int64),
        *(_ADDRESS, ctypes.c_int64, _ADDRESS, ctypes.c_int64, _ADDRESS, _ADDRESS),
    )
    if kernel is None:
        return None
    n = len(calls[0])
    columns = [np.ascontiguousarray(c, t) for c, (_, t) in zip(calls, COLUMNS, strict=True)]
    phase_starts = np.ascontiguousarray(phase_starts, np.int64)
    slots = np.zeros(1 << max(1, (2 * n - 1).bit_length()), np.int32)
    groups, codes, found = (
        np.empty((max(1, n), _WIDTH), np.int64),
        np.empty(n, np.int32),
        np.zeros(1, np.int64),
    )
    done = kernel(
        _Calls(*(address(c, t, n) for c, (_, t) in zip(columns, COLUMNS, strict=True))),
        n,
        address(phase_starts, np.int64),
        len(phase_starts),
        shift,
        address(slots, np.int32),
        len(slots),
        address(groups, np.int64),
        len(groups),
        address(codes, np.int32),
        address(found, np.int64),
    )
    note("signatures", used=done == 0)
    if done:
        return None
    return Signatures(codes, *np.ascontiguousarray(groups[: int(found[0]), : len(_SUMS)].T))
