"""Counts of pairs of integers, such as the number of occurrences of each size in each file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.tables.factorized import Factorized
from vani.analyzers.tables.int_table import IntTable, group
from vani.analyzers.tables.keys import pack, unpack
from vani.distinct import distinct

_FEW_FIRST = 32

Ints = NDArray[np.int64]


@dataclass
class Pairs:
    """Counts under pairs of integers, such as (cell, size)."""

    first: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    second: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    count: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    @staticmethod
    def merged(parts: Sequence[Pairs], *, packed: bool = False) -> Pairs:
        """Add up counts of equal pairs; sorted by first, then second.

        Parameters
        ----------
        packed
            Leave the columns in the narrowest types that fit: for reading, not for arithmetic.
        """
        parts = [p for p in parts if len(p.first)]
        if not parts:
            return Pairs()
        firsts = distinct(*(distinct(p.first) for p in parts))
        if len(firsts) > _FEW_FIRST:
            return count_pairs(
                *(np.concatenate([getattr(p, n) for p in parts]) for n in ("first", "second", "count"))
            )
        # One at a time, because merging all at once would take several times the memory.
        pairs_of_firsts = []
        for first in firsts.tolist():
            rows = [p.first == first for p in parts]
            second, count = (
                np.concatenate([getattr(p, n)[r] for p, r in zip(parts, rows, strict=True)])
                for n in ("second", "count")
            )
            merged = group(second, {"count": count})
            pairs = Pairs(np.full(len(merged), first), merged.keys, merged["count"])
            pairs_of_firsts.append(pairs._packed() if packed else pairs)
        return Pairs(*(np.concatenate([getattr(p, n) for p in pairs_of_firsts]) for n in ("first", "second", "count")))

    def _packed(self) -> Pairs:
        columns = {"first": self.first, "second": self.second, "count": self.count}
        return Pairs(**IntTable(self.first, columns).packed().columns)


def count_pairs(first: Ints, second: Ints, weight: Ints | None = None) -> Pairs:
    """Count (or add up the weights of) equal pairs."""
    if not len(first):
        return Pairs()
    if weight is not None:
        # The concatenated parts are sorted individually, which codes would hide.
        low, lowest = int(first.min()), int(second.min())
        width = int(second.max()) - lowest + 1
        if (int(first.max()) - low + 1) * width < 1 << 62:
            first, second = (column.astype(np.int64, copy=False) for column in (first, second))
            merged = group((first - low) * width + (second - lowest), {"count": weight})
            firsts, seconds = np.divmod(merged.keys, width)
            return Pairs(firsts + low, seconds + lowest, merged["count"])
    a, b = Factorized.of(first), Factorized.of(second)
    widths = (len(a.keys), len(b.keys))
    if weight is None and len(a.keys) * len(b.keys) <= len(first):
        # There are few possible pairs, so count all of them.
        table = np.bincount(a.codes * len(b.keys) + b.codes, minlength=len(a.keys) * len(b.keys))
        codes = np.flatnonzero(table)
        count = table[codes]
    else:
        both = Factorized.of(pack((a.codes, b.codes), widths))
        codes, count = both.keys, both.count() if weight is None else both.sum(weight)
    first_code, second_code = unpack(codes, widths)
    return Pairs(a.keys[first_code], b.keys[second_code], count)


class PairsBuilder:
    """Counts pairs that come batch by batch."""

    def __init__(self, *, packed: bool = False) -> None:
        self._packed = packed
        self._parts: list[Pairs] = []

    def add(self, first: Ints, second: Ints, count: Ints) -> None:
        """Add pairs and their counts, shape (n,) each."""
        if len(first):
            self._parts.append(count_pairs(first, second, count))
        if len(self._parts) > _PARTS:
            self._parts = [Pairs.merged(self._parts)]

    def pairs(self) -> Pairs:
        """All pairs so far, `packed` as in `Pairs.merged`."""
        return Pairs.merged(self._parts, packed=self._packed)


_PARTS = 32
"""Number of parts that are merged at once."""
