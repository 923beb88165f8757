"""Classes of data operations by where they begin, stream by stream."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.kernels.arrays import address
from vani.kernels.ends import ByTime, FileEnds
from vani.kernels.library import function, note

__all__ = [
    "APPENDED",
    "BEGIN",
    "BITS",
    "COUNTED",
    "FIRST",
    "FROM_POSITION",
    "HELD_BITS",
    "JUMPED",
    "SEEKS",
    "SIZE",
    "SOURCE",
    "START",
    "Calls",
    "Found",
    "Held",
    "pattern",
]

BITS = {
    "data": 1,
    "write": 2,
    "seek": 4,
    "open": 8,
    "append": 16,
    "follows": 32,
    "goes_on": 64,
    "listed": 128,
}
"""What calls of a group share, and files of a process: `goes_on` and `listed`."""
JUMPED, FIRST, COUNTED, APPENDED, FROM_POSITION = 1, 2, 4, 8, 16
"""What is known of an operation alone, in `Held.bits`."""
BEGIN, SIZE, START, SEEKS, SOURCE, HELD_BITS = range(6)
"""Columns of `Held.operations`."""
_CLASSES = 4
_WIDTH = 6
_ADDRESS, _NUMBER = ctypes.c_void_p, ctypes.c_int64

Ints = NDArray[np.int64]


class _Batch(ctypes.Structure):
    _fields_ = (
        *((name, _ADDRESS) for name in ("codes", "offset", "bytes", "start")),
        ("calls", _NUMBER),
        *((name, _ADDRESS) for name in ("bits", "place")),
        ("groups", _NUMBER),
        *((name, _ADDRESS) for name in ("held", "held_stream")),
        ("held_count", _NUMBER),
        *((name, _ADDRESS) for name in ("file", "of")),
        ("places", _NUMBER),
    )


class _Found(ctypes.Structure):
    _fields_ = (
        *((name, _ADDRESS) for name in ("jumps", "opens", "first", "next", "seeks", "run", "work", "counts")),
        *((name, _ADDRESS) for name in ("held_class", "strides")),
        ("stride_count", _NUMBER),
        ("kept_stream", _ADDRESS),
        ("kept", _NUMBER),
    )


@dataclass(frozen=True, eq=False)
class Calls:
    """Calls of a batch, shape (n,); their groups, shape (groups,); and places, files of processes, shape (places,)."""

    codes: NDArray[Any]
    """Group of each call."""
    offset: Ints
    """The smallest integer where it is not known, as `bytes`."""
    bytes: Ints
    start: Ints
    """ns."""
    bits: NDArray[Any]
    """`BITS` of each group."""
    place: NDArray[Any]
    """Of each group; -1 for no file."""
    file: NDArray[Any]
    """Of each place."""
    of: NDArray[Any]
    """`BITS` of each place."""
    jumps: NDArray[np.bool_]
    """By stream, which is 2 * place + direction: a seek to where nobody knows came since its last operation."""
    opens: NDArray[np.bool_]
    """The same of opens."""


@dataclass(frozen=True, eq=False)
class Held:
    """Operations of earlier batches whose successors are not known yet; shape (n,) each, stream after stream."""

    stream: NDArray[Any]
    operations: Ints
    """Shape (n, 6). `SOURCE` is given back: the call that it is, or -1 - its place among those held before."""


@dataclass(frozen=True, eq=False)
class Found:
    """What became of them."""

    counts: Ints
    """Operations by group and class, shape (groups, 4)."""
    held_class: NDArray[np.int8]
    """Class of each of the operations that were held; -1 where it is not known yet or was counted before."""
    strides: Ints
    """File, distance and how often in a row, shape (strides, 3); not put together."""
    held: Held
    """What is held now."""
    jumps: NDArray[np.bool_]
    """As in `Calls`, behind this batch."""
    opens: NDArray[np.bool_]


def pattern(calls: Calls, held: Held, ends: ByTime) -> Found | None:
    """Classify what can be classified; None if numpy decides."""
    kernel = function(
        "vani_pattern", ctypes.POINTER(_Batch), ctypes.POINTER(FileEnds), ctypes.POINTER(_Found)
    )
    if kernel is None:
        return None
    n, groups, places, old = len(calls.codes), len(calls.bits), len(calls.file), len(held.stream)

    def of(values: NDArray[Any], dtype: type, length: int) -> int:
        column: NDArray[Any] = np.ascontiguousarray(values, dtype)
        alive.append(column)
        return address(column, dtype, length)

    alive: list[NDArray[Any]] = []
    batch = _Batch(
        of(calls.codes, np.int32, n),
        *(of(column, np.int64, n) for column in (calls.offset, calls.bytes, calls.start)),
        n,
        of(calls.bits, np.uint8, groups),
        of(calls.place, np.int32, groups),
        groups,
        of(held.operations, np.int64, _WIDTH * old),
        of(held.stream, np.int32, old),
        old,
        of(calls.file, np.int32, places),
        of(calls.of, np.uint8, places),
        places,
    )
    jumps, opens = calls.jumps.astype(np.uint8), calls.opens.astype(np.uint8)
    run = np.empty((n + old, _WIDTH), np.int64)
    counts, held_class = np.zeros((groups, _CLASSES), np.int64), np.full(old, -1, np.int8)
    strides, kept_stream = np.empty((n + old, 3), np.int64), np.empty(n + old, np.int32)
    found = _Found(
        address(jumps, np.uint8, 2 * places),
        address(opens, np.uint8, 2 * places),
        of(np.zeros(2 * places + 1, np.int64), np.int64, 2 * places + 1),
        of(np.empty(2 * places, np.int64), np.int64, 2 * places),
        of(np.zeros(places, np.int64), np.int64, places),
        address(run, np.int64),
        of(np.empty(n + old, np.uint8), np.uint8, n + old),
        address(counts, np.int64),
        address(held_class, np.int8),
        address(strides, np.int64),
        0,
        address(kept_stream, np.int32),
        0,
    )
    done = kernel(batch, ends.structure, found)
    note("pattern", used=done == 0)
    if done:
        return None
    # Copies: the whole is much larger.
    now = Held(kept_stream[: found.kept].copy(), run[: found.kept].copy())
    apart = strides[: found.stride_count].copy()
    return Found(counts, held_class, apart, now, jumps.view(np.bool_), opens.view(np.bool_))
