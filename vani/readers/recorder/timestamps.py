"""Times of calls: two 32-bit numbers per call (format document, section 5.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.errors import TraceError
from vani.kernels.library import call
from vani.readers.plausible import claimed
from vani.units import format_number

_MOST_NS = 1 << 62
_REPAIR_S = 10.0
"""A delta this close to 2^32 ticks is negative, because threads are recorded when their calls end."""


@dataclass
class Clock:
    """Converts one rank's deltas to times, batch by batch.

    Both numbers of a call are ticks since the *start of the previous call*. Small negative ones wrap
    modulo 2^32 and are corrected; calls that end before their start (a clock set back) get duration 0.
    """

    resolution: float
    previous: int = 0
    repaired: int = 0
    """Calls that start before the previous call, or that end before they begin."""
    spent: float = 0.0
    """Total ticks of all calls."""

    def times(self, deltas: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Start and duration in nanoseconds, shape (n,) each, from `deltas`, uint32 of shape (n, 2).

        Raises
        ------
        TraceError
            The run would have lasted longer than 64 bits can count, so the deltas or the resolution are wrong.
        """
        threshold = (1 << 32) - int(_REPAIR_S / self.resolution) if self.resolution > 0 else 1 << 32
        threshold = max(threshold, 1 << 31)
        per_tick = self._whole_ns
        if per_tick is not None:
            state = np.array([self.previous, self.repaired, 0])
            # Just below the limit, so numpy refuses it.
            most = _MOST_NS // per_tick // 2
            out = call(
                "times",
                n=len(deltas),
                deltas=deltas,
                threshold=threshold,
                ns_per_tick=per_tick,
                most=most,
                state=state,
            )
            if out is not None:
                self.previous, self.repaired, spent = state.tolist()
                self.spent += spent
                return out["start"], out["duration"]
        begin, end = deltas[:, 0].astype(np.int64), deltas[:, 1].astype(np.int64)
        for ticks in (begin, end):
            ticks[np.flatnonzero(ticks >= threshold)] -= 1 << 32
        duration = end - begin
        self.repaired += int(np.count_nonzero(begin < 0) + np.count_nonzero(duration < 0))
        np.maximum(duration, 0, out=duration)
        start = np.cumsum(begin)
        start += self.previous
        if len(start):
            self.previous = int(start[-1])
            most = int(duration.max())
            longest = max(int(start.max()), -int(start.min())) + most
            self.spent += claimed(duration, most)
            if longest * self.resolution * 1e9 > _MOST_NS:
                raise TraceError(f"time stamps claim a run of {format_number(longest * self.resolution)} s")
        return self._ns(start), self._ns(duration)

    @property
    def _whole_ns(self) -> int | None:
        """Nanoseconds per tick, if that is a whole number."""
        per_tick = self.resolution * 1e9
        rounded = round(per_tick) if per_tick < _MOST_NS else 0
        return rounded if rounded >= 1 and abs(per_tick - rounded) < 1e-6 * per_tick else None

    def _ns(self, ticks: NDArray[np.int64]) -> NDArray[np.int64]:
        per_tick = self._whole_ns
        if per_tick is not None:
            return ticks * per_tick
        nanoseconds: NDArray[np.int64] = np.rint(ticks * (self.resolution * 1e9)).astype(np.int64)
        return nanoseconds
