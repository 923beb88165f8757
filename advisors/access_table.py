"""Parts of a file's reads or writes, in bytes and seconds, from the profile's table of accesses."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from vani.units import MiB, parse_bytes

if TYPE_CHECKING:
    from vani.schema.profile import Access, Profile

REQUEST: Final = MiB
"""About a millisecond at 1 GB/s (our choice), the latency of a busy parallel file system."""

Rows = Mapping[tuple[str | None, bool], Sequence["Access"]]
"""Rows of POSIX and stdio by path, and whether they are reads."""


class Part(NamedTuple):
    """Some calls of one direction on a file."""

    share: float
    """Share of the direction's bytes."""
    time_share: float | None
    """Share of the direction's seconds; None without times."""
    time_s: float | None

    def is_notable(self, least: float, requests: float = 0.0) -> bool:
        """True if it has this share of the bytes or of the seconds.

        Without times by size, a request costs as much as moving `REQUEST` bytes; `requests`: how many the part has for
        each byte of the direction.
        """
        if self.time_share is not None:
            return max(self.share, self.time_share) >= least
        return (self.share + requests * REQUEST) / (1 + requests * REQUEST) >= least


def rows_of(profile: Profile) -> Rows:
    """The table's rows of the file system's calls."""
    rows: defaultdict[tuple[str | None, bool], list[Access]] = defaultdict(list)
    for row in profile.accesses or ():
        if row.layer in ("posix", "stdio"):
            rows[row.file, row.direction == "read"].append(row)
    return rows


def layers_of(profile: Profile) -> Mapping[str, set[str]]:
    """Layers whose calls several processes make on each file."""
    layers: defaultdict[str, set[str]] = defaultdict(set)
    for row in profile.accesses or ():
        if row.file is not None and (row.processes or 0) > 1:
            layers[row.file].add(row.layer)
    return layers


def small_part(rows: Sequence[Access], limit: int) -> Part | None:
    """Calls of less than `limit` bytes; None if the table does not show them."""
    moved = sum(row.bytes or 0 for row in rows)
    if not moved or any(row.bytes_by_size is None for row in rows):
        return None
    small = sum(_below(row.bytes_by_size, limit) for row in rows)
    if any(row.time_s is None for row in rows):
        return Part(small / moved, None, None)
    timed = all(row.time_by_size is not None for row in rows)
    time_s = sum(row.time_s or 0.0 for row in rows)
    spent = sum(_below(row.time_by_size, limit) for row in rows) if timed else time_s * small / moved
    return Part(small / moved, spent / time_s if timed and time_s else None, spent)


def random_part(rows: Sequence[Access], limit: int) -> Part | None:
    """Calls out of order, which have less than `limit` bytes; None if the table does not show them."""
    moved = sum(row.bytes or 0 for row in rows)
    if not moved or any(row.bytes_sequential is None for row in rows):
        return None
    random = moved - sum(row.bytes_sequential or 0 for row in rows)
    small = small_part(rows, limit)
    if small is None or not small.share:
        time_s = None if any(row.time_s is None for row in rows) else sum(row.time_s or 0.0 for row in rows)
        return Part(random / moved, None, None if time_s is None else time_s * random / moved)
    # Of the small calls, those out of order take their share of the bytes.
    factor = min(1.0, random / moved / small.share)
    times = (None if time is None else time * factor for time in (small.time_share, small.time_s))
    return Part(random / moved, *times)


def misaligned_share(rows: Sequence[Access], least: int) -> float | None:
    """Share of the bytes at no multiple of a block, in calls that mostly have `least` bytes; None if unknown."""
    moved = sum(row.bytes or 0 for row in rows)
    small = small_part(rows, least)
    if not moved or small is None or any(row.bytes_misaligned is None for row in rows):
        return None
    return max(0.0, sum(row.bytes_misaligned or 0 for row in rows) / moved - small.share)


def _below(by_size: Mapping[str, float] | None, limit: int) -> float:
    """Upper bound: a bin of counts that contains the limit is below it."""
    begins = ((parse_bytes(re.split("[-_+]", name)[0]), amount) for name, amount in (by_size or {}).items())
    return sum(amount for begin, amount in begins if begin < limit)
