"""Small requests of a file, and the gain from larger ones; see `vani/models/savings.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from vani.advisors.data_files import Access, Item, extent
from vani.advisors.rule import Gain
from vani.models.savings import LARGE, PROCESS_RATE, requests, rest_of
from vani.units import KiB, MiB, format_bytes, format_rate, parse_bytes

if TYPE_CHECKING:
    from vani.schema.profile import IOStats, Sizes
    from vani.schema.system import System

SMALL: Final = 64 * KiB
"""Smaller requests are small: the unit of Lustre's stripe sizes, and a sixteenth of an RPC."""


_WITHOUT_TIMES: Final = "supply a trace with times"


def is_tiny(item: Item) -> bool:
    """True if the file is smaller than a large request, so that no request in it can be large or far from the last."""
    size = extent(item.file)
    return size is not None and size < SMALL


def aggregated(
    metric: str,
    before_s: float,
    io: Sequence[tuple[int, int, float]],
    first: Access,
    system: System,
    size: int = LARGE,
    *,
    left: int | None = None,
) -> Gain | str:
    """The gain from aggregation; what to supply if nothing was timed.

    `io` has (bytes, requests, seconds summed over processes) of each file. The first access decides the rate of a
    process (b in `vani/models/savings.py`). `left` is the number of requests that remain, by default those of `io`.
    """
    # Typical rates promise no more than one measured process.
    disk = None if system.generic else system.file_system_for(first.item.path)
    rate = float((disk and getattr(disk.bandwidth_per_target, first.kind)) or PROCESS_RATE)
    moved, operations = sum(row[0] for row in io), sum(row[1] for row in io)
    time = sum(row[2] for row in io)
    if not before_s or not time or not operations:
        return _WITHOUT_TIMES
    rest, best = rest_of(moved, operations, time, requests(io, size) if left is None else left, rate)
    # At least one request remains, which takes as long as one does now.
    after = min(before_s, max(before_s * rest, time / operations))
    return Gain.at_best(
        metric,
        before_s,
        after=after,
        best=min(after, before_s * best),
        method=f"{operations} requests of latency + bytes / {format_rate(rate)} against requests of "
        f"{size // MiB} MiB; low: a cache joins some already, high: more of the time is latency",
    ) or _WITHOUT_TIMES


def moved_both_ways(item: Item) -> tuple[int, int, float]:
    """Bytes, requests, and seconds summed over processes of reads and writes together."""
    read, written = (Access(item, reads).row for reads in (True, False))
    return read[0] + written[0], read[1] + written[1], read[2] + written[2]


def sizes_of(io: IOStats, *, reads: bool) -> Sizes | None:
    """Sizes of requests of one direction."""
    return io.transfer_size.read if reads else io.transfer_size.write


def small_share(sizes: Sizes | None, limit: int) -> float | None:
    """Lower bound of the share of requests below `limit` bytes, from bins and percentiles; None if unknown."""
    if sizes is None or (sizes.max is None and not sizes.histogram):
        return None
    if sizes.max is not None and sizes.max < limit:
        return 1.0
    total = sum(sizes.histogram.values())
    if total:
        return sum(n for name, n in sizes.histogram.items() if _end(name) <= limit) / total
    for percentile, share in ((sizes.p90, 0.9), (sizes.p50, 0.5)):
        if percentile is not None and percentile < limit:
            return share
    return 0.0


def small_at_least(io: IOStats, limit: int, *, reads: bool) -> float:
    """Lower bound of the share of requests below `limit` bytes from their mean size (Markov's inequality)."""
    moved = io.bytes.read if reads else io.bytes.written
    operations = io.ops.read if reads else io.ops.write
    # The stream's buffer has already joined a few lines of text.
    if moved is None or moved < MiB or not operations:
        return 0.0
    return max(0.0, 1 - moved / operations / limit)


def small_share_of(io: IOStats, limit: int, *, reads: bool) -> float:
    """Lower bound of the share of requests below `limit` bytes, from their sizes and from their mean."""
    return max(small_share(sizes_of(io, reads=reads), limit) or 0.0, small_at_least(io, limit, reads=reads))


_PARTS: Final = 1000
"""Reads of parts of chunks that are not just headers (as Drishti's `small_requests_absolute`)."""
_LEAST_CHUNK: Final = 4 * KiB
"""Hardly any chunk is smaller than a page (general knowledge)."""
_ONE_GO: Final = 16
"""A chunk has at least so many of the parts in which it is read (our choice)."""


def part_of_chunk(item: Item, chunked: bool | None) -> int | None:
    """Bytes in which HDF5 reads chunks that do not fit its cache, row by row; None if the file shows no such reads.

    Of data that is not in chunks, HDF5 reads at least its sieve buffer of 64 KiB. `chunked` is None where no calls of
    HDF5 are recorded.
    """
    io, sizes = item.io, item.io.transfer_size.read
    if item.file.format != "hdf5" or chunked is False or sizes is None or not sizes.common:
        return None
    size, count = max(sizes.common, key=lambda pair: pair[1])
    if size >= SMALL or count < _PARTS or 2 * count < io.ops.read:
        return None
    written, pattern = io.transfer_size.write, io.access_pattern
    in_order = pattern is not None and pattern.consecutive >= 1 / 2
    # Pieces of the size of the writes are chunks.
    is_part = written.max >= _ONE_GO * size if written is not None and written.max else in_order and size < _LEAST_CHUNK
    return size if is_part and (in_order or chunked) else None


def usual_at_most(sizes: Sizes | None) -> float | None:
    """The median request size, or the upper end of its bin; None if unknown."""
    if sizes is None or sizes.p50 is not None:
        return None if sizes is None else sizes.p50
    total, counted = sum(sizes.histogram.values()), 0
    # Requests of unknown size may be larger than all others.
    for end, count in sorted((_end(name), count) for name, count in sizes.histogram.items()):
        counted += count
        if 2 * counted >= total:
            return end - 1 if end < math.inf else None
    return None


def usual_text(sizes: Sizes | None) -> str:
    """The usual size in words."""
    most = usual_at_most(sizes)
    if sizes is None or most is None:
        return format_bytes(None)
    return format_bytes(sizes.p50) if sizes.p50 is not None else f"at most {format_bytes(int(most))}"


def _end(bin_: str) -> float:
    """First size above a bin such as `4K-16K`; infinite if the bin has no end.

    Darshan's bins (`1K_10K`) include their upper end.
    """
    try:
        if "_" in bin_:
            return parse_bytes(bin_.partition("_")[2]) + 1
        return parse_bytes(bin_.partition("-")[2])
    except ValueError:
        return math.inf
