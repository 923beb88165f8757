"""The cost of many small requests, and the rest of it where few large ones move the same bytes.

A request of s bytes by one process takes

    t(s) = L + s / b

with the latency L, which does not depend on s, and the rate b at which one process moves bytes. From the mean
time of a request and a known b follows L, never below 0: a request that is faster than b was served by a
cache, and larger ones would gain nothing. n' of n requests remain, which saves (n - n') * L.

b is the machine's rate of one target where it is described; else that of one process in OPRAEL's measured
sweep (Tianhe prototype, IOR, one writer: 0.3 GB/s).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from vani.units import MiB

__all__ = [
    "COPY_RATE",
    "LARGE",
    "PROCESS_RATE",
    "requests",
    "rest_of",
]

PROCESS_RATE: Final = 300e6
"""Bytes per second of one process, see the module."""

COPY_RATE: Final = 5e9
"""Bytes per second of one core that copies in memory (general knowledge: typical while others copy, too)."""

LARGE: Final = 4 * MiB
"""Bytes of a request after aggregation: `cb_buffer_size` of the ROMIO guide, and Lustre's stripe size today."""


def rest_of(moved: int, operations: int, seconds: float, left: int, rate: float) -> tuple[float, float]:
    """Share of the time that remains with `left` requests: expected, and at best.

    Parameters
    ----------
    moved, operations, seconds
        Bytes, requests, and their time summed over processes.
    rate
        b, bytes per second. At best all of a request's time but that of a copy in memory is latency.
    """
    if not operations or not seconds:
        return 1.0, 1.0
    fewer = min(1.0, left / operations)

    def rest(faster: float) -> float:
        latency = max(0.0, 1.0 - moved / faster / seconds)
        return 1.0 - latency * (1.0 - fewer)

    expected = rest(rate)
    return expected, min(expected, rest(COPY_RATE))


def requests(io: Iterable[tuple[int, int, float]], size: int = LARGE) -> int:
    """Requests of `size` that move the bytes of each file, never more than there are; see `aggregated`."""
    return sum(min(operations, math.ceil(moved / size)) for moved, operations, _ in io)
