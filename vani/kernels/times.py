"""Start and duration of calls, of the deltas that a tracer stored."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.kernels.arrays import address
from vani.kernels.library import function, note

__all__ = ["State", "times"]


_ADDRESS = ctypes.c_void_p


class State(ctypes.Structure):
    """Ticks at which the last call began; calls repaired so far; ticks that the calls of a batch took."""

    _fields_ = (("previous", ctypes.c_int64), ("repaired", ctypes.c_int64), ("spent", ctypes.c_int64))


def times(
    deltas: NDArray[Any], *, threshold: int, ns_per_tick: int, most: int, state: State
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Start and duration in nanoseconds, shape (n,) each, of `deltas`, uint32 of shape (n, 2); None if numpy decides.

    Parameters
    ----------
    threshold
        Deltas from here on, in ticks, are negative ones that wrapped.
    most
        Ticks that no time may be away from 0.
    state
        Carried from batch to batch; unchanged where numpy decides.
    """
    kernel = function(
        "vani_times", _ADDRESS, *[ctypes.c_int64] * 4, _ADDRESS, _ADDRESS, ctypes.POINTER(State)
    )
    if kernel is None:
        return None
    n = len(deltas)
    deltas = np.require(deltas, np.uint32, ["C", "A"])
    start, duration = np.empty(n, np.int64), np.empty(n, np.int64)
    done = kernel(
        address(deltas, np.uint32, 2 * n),
        n,
        threshold,
        ns_per_tick,
        most,
        address(start, np.int64),
        address(duration, np.int64),
        ctypes.byref(state),
    )
    note("times", used=done == 0)
    return (start, duration) if done == 0 else None
