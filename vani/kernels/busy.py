"""When calls were going on but for short pauses, and which processes run calls at the same time."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.distinct import distinct
from vani.kernels.arrays import address
from vani.kernels.library import function, note

__all__ = ["Last", "busy"]

_ADDRESS, _NUMBER = ctypes.c_void_p, ctypes.c_int64

Ints = NDArray[np.int64]


class _Calls(ctypes.Structure):
    _fields_ = (
        *((name, _ADDRESS) for name in ("codes", "start", "duration")),
        ("calls", _NUMBER),
        *((name, _ADDRESS) for name in ("process", "included")),
        *((name, _NUMBER) for name in ("groups", "processes")),
    )


class _Last(ctypes.Structure):
    _fields_ = tuple((name, _NUMBER) for name in ("process", "start", "end", "reach"))


@dataclass(frozen=True)
class Last:
    """The last call of a batch: process (-1: there was none), start and end; and largest end of those before, ns."""

    process: int = -1
    start: int = 0
    end: int = 0
    reach: int = np.iinfo(np.int64).min


def busy(
    calls: tuple[NDArray[Any], Ints, Ints], process: Ints, included: NDArray[np.bool_], last: Last, floor: int
) -> tuple[Ints, tuple[Ints, Ints], Last] | None:
    """Processes that run calls at the same time, intervals, and the last call; None if numpy decides.

    Parameters
    ----------
    calls
        Group, start and duration (ns) of each call, shape (n,) each, process after process.
    process, included
        Shape (groups,); only included calls are in the intervals.
    floor
        Pauses up to this length (ns) are none, where calls come in order.

    Returns
    -------
    tuple or None
        Processes; starts and ends, in no order, which may overlap: each call lasts 1 ns at least; and the last call.
    """
    kernel = function("vani_busy", ctypes.POINTER(_Calls), _NUMBER, ctypes.POINTER(_Last), *[_ADDRESS] * 3)
    if kernel is None:
        return None
    n, groups = len(calls[0]), len(process)
    processes = distinct(np.append(process, last.process))
    codes, place = (
        np.ascontiguousarray(calls[0], np.int32),
        np.searchsorted(processes, process).astype(np.int32),
    )
    start, duration = (np.ascontiguousarray(column, np.int64) for column in calls[1:])
    chosen = np.ascontiguousarray(included, np.bool_).view(np.uint8)
    overlaps, found = np.zeros(len(processes), np.uint8), np.empty((n, 2), np.int64)
    count, state = (
        np.zeros(1, np.int64),
        _Last(int(np.searchsorted(processes, last.process)), last.start, last.end),
    )
    state.reach = last.reach
    done = kernel(
        _Calls(
            address(codes, np.int32, n),
            address(start, np.int64, n),
            address(duration, np.int64, n),
            n,
            address(place, np.int32, groups),
            address(chosen, np.uint8, groups),
            groups,
            len(processes),
        ),
        floor,
        state,
        address(overlaps, np.uint8),
        address(found, np.int64),
        address(count, np.int64),
    )
    note("busy", used=done == 0)
    if done:
        return None
    begin, end = np.ascontiguousarray(found[: int(count[0])].T)
    now = Last(int(processes[state.process]), state.start, state.end, state.reach)
    return processes[overlaps != 0], (begin, end), now
