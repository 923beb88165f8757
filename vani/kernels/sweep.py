"""Lengths of the unions of intervals in several groupings at once."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.kernels.arrays import address
from vani.kernels.library import function, note

__all__ = ["WIDTH", "sweep"]

WIDTH = 6
"""Four kinds, writes or flushes, and all."""
_KINDS = 4
_MOST_CODES = 1 << 22
_ADDRESS, _NUMBER = ctypes.c_void_p, ctypes.c_int64

Ints = NDArray[np.int64]


class _Intervals(ctypes.Structure):
    _fields_ = (*((name, _ADDRESS) for name in ("code", "start", "end")), ("count", _NUMBER))


class _Groups(ctypes.Structure):
    _fields_ = (
        *((name, _NUMBER) for name in ("width", "excluded")),
        ("app", _ADDRESS),
        *((name, _NUMBER) for name in ("apps", "workload")),
    )


class _Found(ctypes.Structure):
    _fields_ = tuple((name, _ADDRESS) for name in ("times", "reach", "finest", "room", "keys", "spare"))


def sweep(
    code: NDArray[Any],
    start: Ints,
    end: Ints,
    *,
    low: int,
    high: int,
    width: int,
    app: NDArray[Any],
    apps: int,
    workload: bool,
) -> Ints | None:
    """How long at least one interval of each group was open; None if numpy decides.

    Parameters
    ----------
    code, start, end
        Shape (n,), `code` as `intervals` gives it; all lie between `low` and `high`.
    width
        Numbers of listed files + 1 are below.
    app
        Shape (phases,): of each phase but the last one, which is that of excluded calls.
    workload
        Measure all phases but that together, too.

    Returns
    -------
    array or None
        Shape (groups, WIDTH). Groups are the phases, the workload, listed files, and apps.
    """
    kernel = function(
        "vani_sweep",
        *(ctypes.POINTER(_Intervals), _NUMBER, _NUMBER, ctypes.POINTER(_Groups), ctypes.POINTER(_Found)),
    )
    phases, n = len(app), len(code)
    codes = (phases + 1) * width * _KINDS
    if kernel is None or codes > _MOST_CODES:
        return None
    # Codes are below `codes`, which fits.
    code, app = np.ascontiguousarray(code, np.int32), np.ascontiguousarray(app, np.int32)
    start, end = np.ascontiguousarray(start), np.ascontiguousarray(end)
    times = np.zeros((phases + 1 + width + apps, WIDTH), np.int64)
    reach, finest = (np.full(many, np.iinfo(np.int64).min) for many in (times.size, codes))
    room, keys, spare = np.empty(3 * n, np.int64), np.empty(n, np.uint64), np.empty(n, np.uint64)
    done = kernel(
        _Intervals(address(code, np.int32), address(start, np.int64, n), address(end, np.int64, n), n),
        low,
        high,
        _Groups(width, phases, address(app, np.int32), apps, workload),
        _Found(
            address(times, np.int64),
            address(reach, np.int64),
            address(finest, np.int64),
            address(room, np.int64),
            address(keys, np.uint64),
            address(spare, np.uint64),
        ),
    )
    note("sweep", used=done == 0)
    return times if done == 0 else None
