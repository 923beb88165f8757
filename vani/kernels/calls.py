"""Columns of calls of their signature ids, in one pass: places in files, what is around a call, what is unknown."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from vani.kernels.arrays import address
from vani.kernels.library import function, note

__all__ = [
    "COLUMNS",
    "FILE",
    "HANDLE",
    "LIBRARIES",
    "ODD",
    "OUTER",
    "REACH",
    "SIGNATURE",
    "Found",
    "Given",
    "calls",
]

SIGNATURE = np.dtype(
    [
        *((name, np.int64) for name in ("value", "bytes")),
        *((name, np.int32) for name in ("file", "handle", "thread", "thread_slot", "renamed")),
        *((name, np.int16) for name in ("func", "flags", "own")),
        *((name, np.int8) for name in ("layer", "kind", "depth", "rule", "binds")),
    ],
    align=True,
)
"""A distinct call; `file`, `renamed`, `handle` and `thread_slot` are places in arrays, `own` the bit of its layer."""
FILE = np.dtype(
    [
        *((name, np.int64) for name in ("position", "end")),
        *((name, np.int32) for name in ("rank", "code")),
        *((name, np.uint8) for name in ("alone", "known", "append", "past", "touched")),
    ],
    align=True,
)
"""What the process `rank` knows of a file; `alone`: no other one names it, `known`: its end is, `touched`: by now."""
HANDLE = np.dtype([("rank", np.int32), ("file", np.int32)], align=True)
"""The file that an id stands for in the process `rank`, -1 for none."""
OUTER = np.dtype(
    [("rank", np.int32), ("within", np.int16), *((name, np.int8) for name in ("layer", "via", "inside"))],
    align=True,
)
"""The last call of a thread and depth of the process `rank`."""
REACH = np.dtype([(name, np.int64) for name in ("begins", "closes", "highest")])
"""The call of a library that reaches furthest."""

ODD = -1
"""In place of a rule: a call that numpy decides about."""
LIBRARIES = 4

COLUMNS: dict[str, DTypeLike] = {
    **dict.fromkeys(("rank", "thread", "file"), np.int32),
    **dict.fromkeys(("func", "within", "flags"), np.int16),
    **dict.fromkeys(("layer", "kind", "depth", "via"), np.int8),
    **dict.fromkeys(("offset", "bytes"), np.int64),
}
_KNOWN = ("file", "offset", "bytes")
_POINTER = ctypes.c_void_p


class _Columns(ctypes.Structure):
    _fields_ = tuple((name, _POINTER) for name in (*COLUMNS, *(f"{name}_known" for name in _KNOWN)))


class _Batch(ctypes.Structure):
    _fields_ = (
        *(
            (name, ctypes.c_int64)
            for name in (
                *(
                    "calls",
                    "runs",
                    "signatures",
                    "files",
                    "handles",
                    "threads",
                    "depths",
                    "functions",
                    "by_time",
                ),
            )
        ),
        *(
            (name, _POINTER)
            for name in (
                *("ids", "run_rank", "run_calls", "table", "value", "start", "duration", "origin"),
                *("file", "handle", "outer", "reach"),
            )
        ),
        ("out", _Columns),
        ("count", _POINTER),
        *(
            (name, ctypes.c_int64)
            for name in (
                *("moved", "first_start", "last_end"),
                *("unknown_files", "unknown_offsets", "unknown_bytes"),
            )
        ),
    )


@dataclass(frozen=True, eq=False)
class Given:
    """The calls of a batch, and what is known from before; the last four are written to.

    Attributes
    ----------
    ids
        Shape (n,): rows of `table`.
    run_rank, run_calls
        Shape (runs,): ranks, ascending, and how many calls of the batch each made.
    table
        `SIGNATURE`, shape (signatures,).
    value
        Offset, distance or length of each call, shape (n,); None where those of the signatures hold.
    start, duration
        Nanoseconds, shape (n,).
    origin
        What made each call, shape (n,), if that is known; None where intervals tell what is around a call.
    functions
        How many there are; `func` of a signature is -1 or below.
    by_time
        Intervals, not depths, tell what is around a call.
    files, handles, outer, reach
        `FILE`, `HANDLE`, `OUTER` of shape (threads, depths), `REACH` of shape (LIBRARIES,).
    """

    ids: NDArray[np.int32]
    run_rank: NDArray[np.int32]
    run_calls: NDArray[np.int64]
    table: NDArray[Any]
    value: NDArray[np.int64] | None
    start: NDArray[np.int64]
    duration: NDArray[np.int64]
    origin: NDArray[np.int8] | None
    functions: int
    by_time: bool
    files: NDArray[Any]
    handles: NDArray[Any]
    outer: NDArray[Any]
    reach: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Found:
    """What a batch's calls are.

    Attributes
    ----------
    columns
        `COLUMNS`, shape (n,) each.
    known
        Of some columns a bit per call, 0 where it is unknown, and how many are.
    count
        Calls by function, shape (functions + 1,), those of no known function in front.
    moved, first_start, last_end
        Bytes in all, and the nanoseconds between which they took place.
    """

    columns: dict[str, NDArray[Any]]
    known: dict[str, tuple[NDArray[np.uint8], int]]
    count: NDArray[np.int64]
    moved: int
    first_start: int
    last_end: int


def calls(given: Given) -> Found | None:
    """The columns of a batch; None if numpy decides, and then what was written to `given` does not count."""
    kernel = function("vani_calls", ctypes.POINTER(_Batch))
    if kernel is None:
        return None
    n = len(given.ids)
    columns = {name: np.empty(n, dtype) for name, dtype in COLUMNS.items()}
    bits = {name: np.zeros((n + 7) // 8, np.uint8) for name in _KNOWN}
    count = np.zeros(given.functions + 1, np.int64)
    out = _Columns(
        **{name: address(column, COLUMNS[name], n) for name, column in columns.items()},
        **{f"{name}_known": address(known, np.uint8) for name, known in bits.items()},
    )
    threads, depths = given.outer.shape
    batch = _Batch(
        calls=n,
        runs=len(given.run_rank),
        signatures=len(given.table),
        files=len(given.files),
        handles=len(given.handles),
        threads=threads,
        depths=depths,
        functions=len(count),
        by_time=given.by_time,
        ids=address(given.ids, np.int32),
        run_rank=address(given.run_rank, np.int32),
        run_calls=address(given.run_calls, np.int64, len(given.run_rank)),
        table=address(given.table, SIGNATURE),
        value=None if given.value is None else address(given.value, np.int64, n),
        start=address(given.start, np.int64, n),
        duration=address(given.duration, np.int64, n),
        origin=None if given.origin is None else address(given.origin, np.int8, n),
        file=address(given.files, FILE),
        handle=address(given.handles, HANDLE),
        outer=address(given.outer, OUTER),
        reach=address(given.reach, REACH, LIBRARIES),
        out=out,
        count=address(count, np.int64),
    )
    done = kernel(ctypes.byref(batch)) == 0
    note("calls", used=done)
    if not done:
        return None
    unknown = {"file": batch.unknown_files, "offset": batch.unknown_offsets, "bytes": batch.unknown_bytes}
    known = {name: (bits[name], unknown[name]) for name in _KNOWN}
    return Found(columns, known, count, batch.moved, batch.first_start, batch.last_end)
