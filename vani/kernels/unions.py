"""Unions of intervals that come in about the order of their starts, by something that calls share."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.kernels.arrays import address
from vani.kernels.library import function, note

__all__ = ["KEYS", "Calls", "Unions"]

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


@dataclass(frozen=True, eq=False)
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


class Unions:
    """Unions of calls, of which those of one slot may still grow."""

    def __init__(self) -> None:
        self._add = function("vani_unions_add", ctypes.POINTER(_Calls), ctypes.POINTER(_Unions))
        self._settle = function(
            "vani_unions_settle", ctypes.POINTER(_Unions), _NUMBER, _NUMBER, _ADDRESS, ctypes.POINTER(_Unions)
        )
        self._intervals = np.empty((0, _WIDTH), np.int64)
        """Start, end, and the row of the one before of its union (-1: none); there is room for more behind `count`."""
        self.count = 0
        """Intervals that may grow, and some that others have taken in."""
        self._last = np.full((1, KEYS), -1)
        """The last one of each union, -1 where there is none."""

    def add(
        self, calls: Sequence[Calls], slot: int, slots: int, *, going_on: int, until: int, most: int
    ) -> Ints | None:
        """Take calls: times of the unions that are complete, shape (slots, KEYS); None if numpy decides.

        If numpy decides, some of the calls may have been taken: no union changes where they are taken once more.

        Parameters
        ----------
        slot
            Of `slots` that of the calls before.
        going_on
            The slot that may have more calls; its intervals are not complete.
        until
            But for those that end before this moment (ns), if there are more than `most`.
        """
        if self._add is None:
            return None
        self._make_room(sum(int((np.bitwise_count(c.keys.astype(np.uint16)) * c.count).sum()) for c in calls))
        last = np.full((slots, KEYS), -1)
        last[slot] = self._last[0]
        now = self._as_structure(last)
        done = all(not _add(self._add, c, now) for c in calls)
        self.count, self._last = now.count, last[slot : slot + 1]
        times = np.zeros((slots, KEYS), np.int64)
        # Mostly all are of one process, of which nothing is complete.
        if done and (slots > 1 or going_on != slot or now.count > most):
            done = self._take_out(now, times, going_on=going_on, until=until, most=most)
        note("unions", used=done)
        return times if done else None

    def _make_room(self, more: int) -> None:
        room = self.count + more
        if room > len(self._intervals):
            before = self._intervals[: self.count]
            self._intervals = np.empty((max(room, 2 * len(before)), _WIDTH), np.int64)
            self._intervals[: len(before)] = before

    def _as_structure(self, last: Ints) -> _Unions:
        intervals = self._intervals
        return _Unions(
            address(intervals, np.int64), self.count, len(intervals), address(last, np.int64), len(last)
        )

    def _take_out(self, now: _Unions, times: Ints, *, going_on: int, until: int, most: int) -> bool:
        """Add up what is complete and keep the rest, union after union and in order; False if numpy decides."""
        assert self._settle is not None
        left, last = np.empty((now.count, _WIDTH), np.int64), np.empty((1, KEYS), np.int64)
        kept = _Unions(address(left, np.int64), 0, len(left), address(last, np.int64), 1)
        done = not self._settle(now, going_on, _LONG_AGO, address(times, np.int64), kept)
        if done and kept.count > most:
            times[:] = 0
            done = not self._settle(now, going_on, until, address(times, np.int64), kept)
        if done:
            self._intervals, self.count, self._last = left, kept.count, last
        return done

    def columns(self) -> tuple[Ints, Ints, Ints]:
        """Union, start and end of each interval that may grow, union after union and in order."""
        if self.count:
            nothing = np.zeros((1, KEYS), np.int64)
            self._take_out(
                self._as_structure(self._last), nothing, going_on=0, until=_LONG_AGO, most=self.count
            )
        last, intervals = self._last[0], self._intervals[: self.count]
        used = last >= 0
        union = np.repeat(np.flatnonzero(used), np.diff(np.append(-1, last[used])))
        return union, intervals[:, 0], intervals[:, 1]


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
