"""The cost of many small requests, and what remains of it if few large ones move the same bytes.

A request of s bytes by one process takes

    t(s) = L + s / b

where L is the latency, which does not depend on s, and b the rate at which one process moves bytes. L follows from the
mean time of a request and a known b, and is at least 0: a request that is faster than b was served by a
cache and would gain nothing from being larger. If n' of n requests remain, the saving is (n - n') * L.

b is the rate of one target from the machine's description. Without a description it is the rate of one process in
OPRAEL's measured sweep (Tianhe prototype, IOR, one writer: 0.3 GB/s).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from vani.units import MiB

PROCESS_RATE: Final = 300e6
"""b without a description: bytes per second of one process."""

COPY_RATE: Final = 5e9
"""Bytes per second that one core copies in memory while others copy, too (general knowledge)."""

LARGE: Final = 4 * MiB
"""Bytes of a request after aggregation: `cb_buffer_size` in the ROMIO guide, and Lustre's present stripe size."""


def rest_of(moved: int, operations: int, seconds: float, left: int, rate: float) -> tuple[float, float]:
    """Share of the time, 0..1, that remains with `left` requests: expected, and at best.

    Parameters
    ----------
    moved, operations, seconds
        Bytes, requests, and their time summed over processes.
    rate
        b in bytes per second. In the best case, all of a request's time except a copy in memory is latency.
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
    """Number of requests of `size` bytes that move the bytes of each file, at most the present number.

    `io` has (bytes, operations, seconds) of each file.
    """
    return sum(min(operations, math.ceil(moved / size)) for moved, operations, _ in io)
