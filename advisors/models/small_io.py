"""What many small requests cost, and what is left of it where few large ones move the same bytes.

A request of s bytes by one process takes

    t(s) = L + s / b

with the latency L, which does not depend on s, and the rate b at which one process moves bytes. From the mean
time of a request and a known b follows L, never below 0: a request that is faster than b was served by a
cache, and larger ones would gain nothing. Of n requests, n' remain, and (n - n') * L is won.

b is the machine's rate of one target where it is described; else that of one process in OPRAEL's measured
sweep (Tianhe prototype, IOR, one writer: 0.3 GB/s).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from vani.advisors.base import Gain
from vani.units import KiB, MiB, format_rate, parse_bytes

if TYPE_CHECKING:
    from vani.schema.profile import IOStats, Sizes
    from vani.schema.system import System

__all__ = [
    "COPY_RATE",
    "LARGE",
    "PROCESS_RATE",
    "SMALL",
    "aggregated",
    "process_rate",
    "requests",
    "rest_of",
    "sizes_of",
    "small_share",
]

PROCESS_RATE: Final = 300e6
"""Bytes per second of one process, see the module."""

COPY_RATE: Final = 5e9
"""Bytes per second of one core that copies in memory (general knowledge: typical while others copy, too)."""

LARGE: Final = 4 * MiB
"""Bytes of a request after aggregation: `cb_buffer_size` of the ROMIO guide, and Lustre's stripe size today."""

SMALL: Final = 64 * KiB
"""Requests below this are small: the unit of Lustre's stripes, and a sixteenth of one RPC."""


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


def aggregated(
    metric: str, before_s: float, io: Sequence[tuple[int, int, float]], rate: float, size: int = LARGE
) -> Gain | None:
    """What aggregation wins; `io` holds (bytes, requests, seconds summed over processes) per file.

    None where nothing was timed.
    """
    moved, operations = sum(one[0] for one in io), sum(one[1] for one in io)
    seconds = sum(one[2] for one in io)
    if not before_s or not seconds:
        return None
    expected, best = rest_of(moved, operations, seconds, requests(io, size), rate)
    return Gain(
        metric=metric,
        before_s=before_s,
        after_s=before_s * expected,
        best_s=before_s * best,
        worst_s=before_s,
        method=f"{operations} requests of latency + bytes / {format_rate(rate)} against requests of "
        f"{size // MiB} MiB; low: a cache joins them already, high: all that a copy in memory does not take is "
        "latency",
    )


def process_rate(path: str, system: System, *, reads: bool) -> float:
    """b for a file, bytes per second."""
    disk = system.file_system_for(path)
    rates = disk.bandwidth_per_target if disk is not None else None
    return float((rates and (rates.read if reads else rates.write)) or PROCESS_RATE)


def sizes_of(io: IOStats, *, reads: bool) -> Sizes | None:
    """Sizes of requests of one direction."""
    return io.transfer_size.read if reads else io.transfer_size.write


def small_share(sizes: Sizes | None, limit: int) -> float | None:
    """Share of requests below `limit` bytes, as far as bins and percentiles show, a lower bound; None: unknown."""
    if sizes is None or (sizes.max is None and not sizes.histogram):
        return None
    if sizes.max is not None and sizes.max < limit:
        return 1.0
    whole = sum(sizes.histogram.values())
    if whole:
        return sum(n for name, n in sizes.histogram.items() if _end(name) <= limit) / whole
    for percentile, share in ((sizes.p90, 0.9), (sizes.p50, 0.5)):
        if percentile is not None and percentile < limit:
            return share
    return 0.0


def _end(bin_: str) -> float:
    """First size above a bin such as `4K-16K`; infinite where it has none."""
    try:
        return parse_bytes(bin_.partition("-")[2])
    except ValueError:
        return math.inf
