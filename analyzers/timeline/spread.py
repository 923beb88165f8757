"""Amounts of calls that span several time bins, divided at the borders."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_PIECES_AT_ONCE = 1 << 20
_EXACT_NS = 1 << 31
"""Products of two numbers below this fit in 64 bits."""


def spread(
    start: Ints, end: Ints, amount: Ints, *, bins: int, bin_ns: int
) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Divide amounts at the borders of bins: (row, bin, part), at most about a million parts at a time.

    The amount up to a border is rounded down, so the parts of a row add up to its amount exactly.
    """
    last_bin = bins - 1
    first = np.clip(start // bin_ns, 0, last_bin)
    last = np.clip((np.maximum(end, start + 1) - 1) // bin_ns, first, last_bin)
    inside = np.flatnonzero(first == last)
    if len(inside):
        yield inside, first[inside], amount[inside]
    wide = np.flatnonzero(first < last)
    count = (last - first + 1)[wide]
    for a, b in _runs(count):
        rows = np.repeat(wide[a:b], count[a:b])
        step = np.arange(len(rows)) - np.repeat(np.cumsum(count[a:b]) - count[a:b], count[a:b])
        bin_ = first[rows] + step

        length = end[rows] - start[rows]
        # In two parts, to avoid overflow; the first alone is exact if the amount equals the length.
        whole, rest = amount[rows] // length, amount[rows] % length

        def passed(
            border: Ints, rows: Ints = rows, length: Ints = length, whole: Ints = whole, rest: Ints = rest
        ) -> Ints:
            since = np.clip(border - start[rows], 0, length)
            exact = length < _EXACT_NS
            part = np.where(exact, rest, 0) * np.where(exact, since, 0) // length
            rounded = np.floor(rest * (since / length)).astype(np.int64)
            passed_by: Ints = whole * since + np.where(exact, part, np.minimum(rounded, rest))
            return passed_by

        # At the ends, the amounts are zero and all, regardless of float rounding.
        before = np.where(step == 0, 0, passed(bin_ * bin_ns))
        after = np.where(bin_ == last[rows], amount[rows], passed((bin_ + 1) * bin_ns))
        yield rows, bin_, after - before


def _runs(count: Ints) -> Iterator[tuple[int, int]]:
    """Ranges of rows whose counts add up to about `_PIECES_AT_ONCE`."""
    reach = np.cumsum(count)
    first = 0
    while first < len(count):
        done = int(reach[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(reach, done + _PIECES_AT_ONCE, side="right")))
        yield first, last
        first = last
