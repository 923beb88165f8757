"""Small tables of integers under integer keys: what measures pass on and the engine adds up.

Sums, minima and maxima of integers do not depend on the order in which parts arrive, so a profile does not depend
on how the store was split or which worker read it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.tables.keys import pack, unpack
from vani.columns import narrow
from vani.distinct import distinct

__all__ = [
    "NO_VALUE",
    "Factorized",
    "How",
    "IntTable",
    "Pairs",
    "count_pairs",
    "exact_sum",
    "group",
    "stable_order",
]

NO_VALUE = np.iinfo(np.int64).min
"""Stands for null in columns of integers."""

_FEW_FIRST = 32

Ints = NDArray[np.int64]
How = Literal["sum", "min", "max"]
"""How values under equal keys become one."""


@dataclass(frozen=True, eq=False)
class IntTable:
    """Columns of integers under sorted, distinct keys; shape (n,) each.

    Attributes
    ----------
    columns
        Of any integer type; what is taken out of them has 64 bits.
    """

    keys: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, column: str) -> Ints:
        return self.stored(column).astype(np.int64, copy=False)

    def stored(self, column: str) -> NDArray[Any]:
        """A column in the type that it is kept in: to be added up, not to calculate with; of an empty table any."""
        return self.columns[column] if self.columns else np.empty(0, np.int64)

    def rekeyed(self, keys: Ints, how: Mapping[str, How] | None = None) -> IntTable:
        """The same rows under other keys, added up (or as `how` says by column) where keys meet."""
        return group(keys, self.columns, how)

    def where(self, rows: NDArray[Any]) -> IntTable:
        """Some of the rows, given as a mask or as ascending positions."""
        return IntTable(self.keys[rows], {n: c[rows] for n, c in self.columns.items()})

    def at(self, keys: Ints, column: str, missing: int = 0) -> Ints:
        """Values of a column at `keys`, `missing` where there is no such key."""
        found = np.full(len(keys), missing, dtype=np.int64)
        if len(self.keys):
            place = np.searchsorted(self.keys, keys)
            place[place == len(self.keys)] = 0
            known = self.keys[place] == keys
            found[known] = self.columns[column][place[known]]
        return found

    def packed(self) -> IntTable:
        """The same table with each column in the smallest type that holds it: a million files have many columns."""
        return IntTable(self.keys, {n: narrow(c) for n, c in self.columns.items()})

    @staticmethod
    def merged(parts: Sequence[IntTable], how: Mapping[str, How] | None = None) -> IntTable:
        """Add up tables with the same columns; small ones are returned as they are."""
        parts = [p for p in parts if len(p)]
        if not parts:
            return IntTable()
        if len(parts) == 1:
            return parts[0]
        fold = _Fold(np.concatenate([p.keys for p in parts]))
        large = len(fold.keys) > _LARGE
        columns = {}
        for name in parts[0].columns:
            column = fold(np.concatenate([p.columns[name] for p in parts]), (how or {}).get(name, "sum"))
            columns[name] = narrow(column) if large else column
        return IntTable(fold.keys, columns)


_LARGE = 1 << 18
"""Rows of a table whose columns are kept in small types."""


class _Fold:
    """Makes one row of rows with equal keys, one column after the other."""

    def __init__(self, keys: Ints) -> None:
        self.keys = keys
        """Sorted and distinct."""
        self._runs: Ints | None = None
        self._order: Ints | None = None
        self._starts: Ints | None = None
        if len(keys) < 2 or (keys[1:] > keys[:-1]).all():
            return
        # Calls of a process on a file come in rows: what is equal side by side need not be sorted.
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        if 2 * len(starts) < len(keys):
            self._runs, keys = starts, keys[starts]
        if not (keys[1:] >= keys[:-1]).all():
            self._order = np.argsort(keys, kind="stable")
            keys = keys[self._order]
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        if len(starts) < len(keys):
            self._starts, keys = starts, keys[starts]
        self.keys = keys

    def __call__(self, column: NDArray[Any], how: How) -> Ints:
        fold = {"sum": np.add, "min": np.minimum, "max": np.maximum}[how]
        found: Ints = column.astype(np.int64, copy=False)
        if self._runs is not None:
            found = fold.reduceat(found, self._runs)
        if self._order is not None:
            found = found[self._order]
        return found if self._starts is None else fold.reduceat(found, self._starts)


def group(keys: Ints, columns: Mapping[str, NDArray[Any]], how: Mapping[str, How] | None = None) -> IntTable:
    """Add up rows of equal key, in any order; `how` names columns to take the minimum or maximum of."""
    fold = _Fold(keys.astype(np.int64, copy=False))
    return IntTable(fold.keys, {n: fold(c, (how or {}).get(n, "sum")) for n, c in columns.items()})


def exact_sum(values: Ints) -> int:
    """Sum of less than 2^31 integers, also where it is beyond 64 bits."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


@dataclass(frozen=True, eq=False)
class Factorized:
    """Codes 0..n-1 for the distinct values of a batch's keys."""

    keys: Ints
    """Distinct values, ascending."""
    codes: NDArray[np.int64]
    """Position of each row's value in `keys`."""

    @staticmethod
    def of(values: Ints) -> Factorized:
        """Number the values of a batch."""
        if not len(values):
            return Factorized(values, values)
        if values.dtype.itemsize <= 2:
            return Factorized._of_narrow(values)
        low, high = int(values.min()), int(values.max())
        if low == high:
            return Factorized(values[:1].copy(), np.zeros(len(values), np.int64))
        width = high - low + 1
        if width <= min(8 * len(values) + 65536, 1 << 31):
            seen = np.zeros(width, np.bool_)
            shifted = (values - low).astype(np.int64, copy=False)
            seen[shifted] = True
            if seen.all():
                # Mostly: values often are codes already.
                return Factorized(np.arange(low, high + 1), shifted)
            # 32 bits are enough for codes: of sums over millions of keys the width would be felt.
            codes = np.cumsum(seen, dtype=np.int32)[shifted].astype(np.int64)
            codes -= 1
            return Factorized(np.flatnonzero(seen) + low, codes)
        keys, codes = np.unique(values, return_inverse=True)
        return Factorized(keys, codes)

    @staticmethod
    def _of_narrow(values: NDArray[Any]) -> Factorized:
        """The same for integers of at most 16 bits, which need no look at their range."""
        unsigned = values.view(f"u{values.dtype.itemsize}")
        # By indices of 64 bits numpy takes twice as fast.
        bits = unsigned.astype(np.int64)
        seen = np.zeros(1 << 8 * values.dtype.itemsize, np.bool_)
        seen[bits] = True
        keys = np.sort(np.flatnonzero(seen).astype(unsigned.dtype).view(values.dtype))
        code = np.zeros(len(seen), np.int64)
        code[keys.view(unsigned.dtype)] = np.arange(len(keys))
        return Factorized(keys.astype(np.int64), code[bits])

    def count(self, rows: NDArray[Any] | None = None) -> Ints:
        """Number of rows (of those selected) of each key."""
        codes = self.codes if rows is None else self.codes[rows]
        return np.bincount(codes, minlength=len(self.keys))

    def sum(self, values: Ints, rows: NDArray[Any] | None = None) -> Ints:
        """Exact sum of each key's values (of the rows selected)."""
        codes = self.codes if rows is None else self.codes[rows]
        values = values if rows is None else values[rows]
        total = np.zeros(len(self.keys), np.int64)
        if not len(values):
            return total
        # Floats add integers exactly below 2^53, and bincount is several times faster than add.at.
        if max(float(values.max()), -float(values.min())) * len(values) < 2**53:
            return np.bincount(codes, values, len(self.keys)).astype(np.int64)
        np.add.at(total, codes, values)
        return total


def stable_order(keys: Ints) -> Ints:
    """Indices that sort integers, equal ones in their order."""
    if not len(keys):
        return keys
    low, high = int(keys.min()), int(keys.max())
    if low == high:
        return np.arange(len(keys))
    # numpy sorts 16-bit integers by radix, several times faster than wider ones.
    if high - low < 1 << 16:
        return np.argsort((keys - low).astype(np.uint16), kind="stable")
    if high - low <= 8 * len(keys) + 65536:
        dense = Factorized.of(keys)
        if len(dense.keys) < 1 << 16:
            return np.argsort(dense.codes.astype(np.uint16), kind="stable")
    return np.argsort(keys, kind="stable")


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
            Leave the columns in the smallest types that hold them: to be looked at, not to calculate with.
        """
        parts = [p for p in parts if len(p.first)]
        if not parts:
            return Pairs()
        firsts = distinct(*(distinct(p.first) for p in parts))
        if len(firsts) > _FEW_FIRST:
            return count_pairs(
                *(np.concatenate([getattr(p, n) for p in parts]) for n in ("first", "second", "count"))
            )
        # One after the other: all at once would take several times the memory.
        found = []
        for one in firsts.tolist():
            rows = [p.first == one for p in parts]
            second, count = (
                np.concatenate([getattr(p, n)[r] for p, r in zip(parts, rows, strict=True)])
                for n in ("second", "count")
            )
            merged = group(second, {"count": count})
            pairs = Pairs(np.full(len(merged), one), merged.keys, merged["count"])
            found.append(pairs._packed() if packed else pairs)
        return Pairs(*(np.concatenate([getattr(p, n) for p in found]) for n in ("first", "second", "count")))

    def _packed(self) -> Pairs:
        columns = {"first": self.first, "second": self.second, "count": self.count}
        return Pairs(**IntTable(self.first, columns).packed().columns)


def count_pairs(first: Ints, second: Ints, weight: Ints | None = None) -> Pairs:
    """Count (or add up the weights of) equal pairs."""
    if not len(first):
        return Pairs()
    if weight is not None:
        # Parts that are put together are sorted, each for itself, which codes would hide.
        low, lowest = int(first.min()), int(second.min())
        width = int(second.max()) - lowest + 1
        if (int(first.max()) - low + 1) * width < 1 << 62:
            first, second = (column.astype(np.int64, copy=False) for column in (first, second))
            merged = group((first - low) * width + (second - lowest), {"count": weight})
            above, beside = np.divmod(merged.keys, width)
            return Pairs(above + low, beside + lowest, merged["count"])
    a, b = Factorized.of(first), Factorized.of(second)
    widths = (len(a.keys), len(b.keys))
    if weight is None and len(a.keys) * len(b.keys) <= len(first):
        # Few: all that there could be are counted.
        table = np.bincount(a.codes * len(b.keys) + b.codes, minlength=len(a.keys) * len(b.keys))
        found = np.flatnonzero(table)
        count = table[found]
    else:
        both = Factorized.of(pack((a.codes, b.codes), widths))
        found, count = both.keys, both.count() if weight is None else both.sum(weight)
    first_code, second_code = unpack(found, widths)
    return Pairs(a.keys[first_code], b.keys[second_code], count)
