"""When calls took place and in which group, of those that lie in a stretch of time."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.kernels.arrays import address
from vani.kernels.library import function, note

__all__ = ["COLUMNS", "Places", "intervals"]

COLUMNS = (
    ("layer", np.int8),
    ("kind", np.int8),
    ("flags", np.int16),
    ("file", np.int32),
    ("start_ns", np.int64),
    ("duration_ns", np.int64),
)
"""What it reads of calls; -1 for no file."""
_ADDRESS, _NUMBER = ctypes.c_void_p, ctypes.c_int64

Ints = NDArray[np.int64]


class _Columns(ctypes.Structure):
    _fields_ = (*((name, _ADDRESS) for name, _ in COLUMNS), ("calls", _NUMBER))


class _Places(ctypes.Structure):
    _fields_ = (
        *((name, _ADDRESS) for name in ("number", "included")),
        *((name, _NUMBER) for name in ("files", "width")),
        ("phase_starts", _ADDRESS),
        *((name, _NUMBER) for name in ("phases", "first_phase", "excluded", "most_layer", "nested")),
    )


class _Found(ctypes.Structure):
    _fields_ = (
        *((name, _ADDRESS) for name in ("code", "start", "end")),
        *((name, _NUMBER) for name in ("count", "falls")),
    )


@dataclass(frozen=True, eq=False)
class Places:
    """What is known of files and phases beforehand."""

    number: NDArray[np.int32]
    """Shape (files + 1,), the last one that of no file: number of a listed file + 1, 0 for others."""
    included: NDArray[np.bool_]
    """As long."""
    width: int
    """Numbers are below."""
    phase_starts: Ints
    """Of the phases of the calls' app, ascending, ns; the phase before the first one is that, too."""
    first_phase: int
    """Number of the first of them."""
    excluded: int
    """Number that stands for the phase of calls that are not included: the largest one."""
    most_layer: int
    """Calls of layers up to this one count, but for those that have the flag `nested`."""
    nested: int


def intervals(
    calls: Sequence[NDArray[Any]], places: Places, *, shift: int, low: int, high: int
) -> tuple[NDArray[np.int32], Ints, Ints, bool] | None:
    """Calls that count, cut to a stretch of time; None if numpy decides.

    Parameters
    ----------
    calls
        `COLUMNS`, shape (n,) each.
    shift
        Added to the starts, ns.

    Returns
    -------
    tuple or None
        Of each call that is not empty: `((phase * width) + number) * 4 + kind`, start and end; and whether they are in
        order of their starts.
    """
    kernel = function(
        "vani_intervals",
        *(ctypes.POINTER(_Columns), ctypes.POINTER(_Places), *[_NUMBER] * 3, ctypes.POINTER(_Found)),
    )
    if kernel is None:
        return None
    n = len(calls[0])
    columns = [np.ascontiguousarray(c, t) for c, (_, t) in zip(calls, COLUMNS, strict=True)]
    number, included = np.ascontiguousarray(places.number, np.int32), places.included.view(np.uint8)
    starts = np.ascontiguousarray(places.phase_starts, np.int64)
    code, start, end = np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n, np.int64)
    found = _Found(address(code, np.int32), address(start, np.int64), address(end, np.int64))
    done = kernel(
        _Columns(*(address(c, t, n) for c, (_, t) in zip(columns, COLUMNS, strict=True)), n),
        _Places(
            address(number, np.int32),
            address(included, np.uint8, len(number)),
            len(number) - 1,
            places.width,
            address(starts, np.int64),
            len(starts),
            places.first_phase,
            places.excluded,
            places.most_layer,
            places.nested,
        ),
        shift,
        low,
        high,
        found,
    )
    note("intervals", used=done == 0)
    if done:
        return None
    return code[: found.count], start[: found.count], end[: found.count], found.falls == 0
