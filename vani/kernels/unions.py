"""Unions of intervals that come in about the order of their starts, by something that calls share."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.kernels.arrays import address
from vani.kernels.library import function, note

__all__ = ["KEYS", "Calls", "Open", "unions"]

KEYS = 16
"""Unions of a slot."""
_WIDTH = 3
_LONG_AGO = np.iinfo(np.int64).min
_ADDRESS, _NUMBER = ctypes.c_void_p, ctypes.c_int64

Ints = NDArray[np.int64]


class _Calls(ctypes.Structure):
    _fields_ = (
        *((name, _ADDRESS) for name in ("codes", "rows")),
        ("calls", _NUMBER),
        *((name, _ADDRESS) for name in ("start", "duration")),
        *((name, _NUMBER) for name in ("rows_count", "shift")),
        *((name, _ADDRESS) for name in ("keys", "slot")),
        ("groups", _NUMBER),
    )


class _Unions(ctypes.Structure):
    _fields_ = (
        ("intervals", _ADDRESS),
        *((name, _NUMBER) for name in ("count", "most")),
        ("last", _ADDRESS),
        ("slots", _NUMBER),
    )


@dataclass(frozen=True)
class Calls:
    """Calls of a batch, shape (n,), and their groups, shape (groups,)."""

    codes: NDArray[Any]
    """Group of each call."""
    rows: NDArray[Any] | None
    """Its place in the two columns below; None: each has one."""
    start: Ints
    """ns."""
    duration: Ints
    shift: int
    """Added to the starts."""
    keys: NDArray[Any]
    """Of each group: a bit for each of the `KEYS` unions that its calls are in."""
    slot: NDArray[Any]
    """Of each group: whose unions these are."""
    count: Ints
    """Calls of each group."""


@dataclass(frozen=True)
class Open:
    """Intervals of one slot that may still grow, which neither overlap nor touch."""

    intervals: Ints = field(default_factory=lambda: np.empty((0, _WIDTH), np.int64))
    """Start, end, and the row of the one before of its union (-1: none); union after union, in order."""
    last: Ints = field(default_factory=lambda: np.full(KEYS, -1))
    """The last one of each union, -1 where there is none."""

    def columns(self) -> tuple[Ints, Ints, Ints]:
        """Union, start and end of each."""
        used = self.last >= 0
        union = np.repeat(np.flatnonzero(used), np.diff(np.append(-1, self.last[used])))
        return union, self.intervals[:, 0], self.intervals[:, 1]


def unions(
    held: Open, slot: int, calls: Sequence[Calls], slots: int, *, going_on: int, until: int, most: int
) -> tuple[Ints, Open] | None:
    """Times of the unions that are complete, shape (slots, KEYS), and what is not; None if numpy decides.

    Parameters
    ----------
    held
        What was left of calls before, in the slot `slot`.
    going_on
        The slot that may have more calls, -1 for none; its intervals are not complete.
    until
        But for those that end before this moment (ns), if there are more than `most`.
    """
    add = function("vani_unions_add", ctypes.POINTER(_Calls), ctypes.POINTER(_Unions))
    settle = function(
        "vani_unions_settle", ctypes.POINTER(_Unions), _NUMBER, _NUMBER, _ADDRESS, ctypes.POINTER(_Unions)
    )
    if add is None or settle is None:
        return None
    old = len(held.intervals)
    room = old + sum(int((np.bitwise_count(c.keys.astype(np.uint16)) * c.count).sum()) for c in calls)
    intervals, last = np.empty((room, _WIDTH), np.int64), np.full((slots, KEYS), -1)
    intervals[:old], last[slot] = held.intervals, held.last
    now = _Unions(address(intervals, np.int64), old, room, address(last, np.int64), slots)
    done = all(not _add(add, c, now) for c in calls)
    times = np.zeros((slots, KEYS), np.int64)
    if done:
        left = np.empty((now.count, _WIDTH), np.int64)
        of_left = np.empty(KEYS, np.int64)
        kept = _Unions(address(left, np.int64), 0, len(left), address(of_left, np.int64), 1)
        done = not settle(now, going_on, _LONG_AGO, address(times, np.int64), kept)
        if done and kept.count > most:
            times[:] = 0
            done = not settle(now, going_on, until, address(times, np.int64), kept)
    note("unions", used=done)
    if not done:
        return None
    return times, Open(left[: kept.count].copy(), of_left)


def _add(kernel: Any, calls: Calls, unions: _Unions) -> int:
    n, groups = len(calls.codes), len(calls.keys)
    codes = np.ascontiguousarray(calls.codes, np.int32)
    rows = None if calls.rows is None else np.ascontiguousarray(calls.rows, np.int32)
    start, duration = (np.ascontiguousarray(c, np.int64) for c in (calls.start, calls.duration))
    keys, slot = np.ascontiguousarray(calls.keys, np.uint16), np.ascontiguousarray(calls.slot, np.int32)
    done: int = kernel(
        _Calls(
            address(codes, np.int32, n),
            None if rows is None else address(rows, np.int32, n),
            n,
            address(start, np.int64),
            address(duration, np.int64, len(start)),
            len(start),
            calls.shift,
            address(keys, np.uint16, groups),
            address(slot, np.int32, groups),
            groups,
        ),
        unions,
    )
    return done
