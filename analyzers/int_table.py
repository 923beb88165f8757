"""Integer columns under integer keys: packing, numbering, grouping, adding up.

- `pack` makes a 63-bit key of several small integers. Only measures know the parts of their keys; their results have a
  separate column for each part.
- `Factorized` has codes 0, 1, 2, ... for the distinct values of a column, as in pandas.
- `IntTable` is a small table under such keys, which measures produce and a pass adds up. Sums, minima and maxima of
  integers do not depend on the order in which parts arrive, so a profile does not depend on how the store was split or
  which worker read it.
- `Pairs` counts pairs of integers, such as the occurrences of each size in each file. `Sums` has both by name.
- `ByGroup` has numbers per phase and file, added up by groups of these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal

import numpy as np

from vani.columns import Ints, Numbers, distinct, narrow

KINDS = 4
"""Kinds of file-system calls: read, write, metadata, sync."""
ALL_KINDS = KINDS
"""All kinds together, in keys that end with a kind, whose width is therefore `KINDS + 1`."""

LAYERS = 16
"""Number of layers in keys; `vani.calls.Layer` has fewer."""


_MOST = 1 << 63


def key_widths(second: int) -> tuple[int, int]:
    """Widths of keys of two columns: the first is as wide as fits."""
    return _MOST // second, second


SIDES = key_widths(2)
"""Widths of keys of a group and a kind, read or write."""


def pack(columns: Sequence[Numbers | np.integer[Any] | int], widths: Sequence[int]) -> Ints:
    """One key per row; keys sort like their columns, the first one being most significant.

    Parameters
    ----------
    columns
        Integers, shape (n,) each or one number for all rows; those in a column are in 0 .. width - 1.
    widths
        Width of each column.

    Raises
    ------
    OverflowError
        Keys of these widths do not fit 63 bits.
    ValueError
        A number is outside the width of its column.
    """
    _check(widths)
    keys: Ints | None = None
    for column, width in zip(columns, widths, strict=True):
        numbers = np.asarray(column, np.int64)
        # As unsigned numbers, negative ones are the largest.
        if numbers.size and int(np.maximum.reduce(numbers.view(np.uint64), axis=None)) >= width:
            raise ValueError(f"a key has {numbers.min()} to {numbers.max()} in a column of width {width}")
        keys = numbers if keys is None else keys * width + numbers
    assert keys is not None
    return keys


def unpack(keys: Ints, widths: Sequence[int]) -> tuple[Ints, ...]:
    """The columns from which `pack` made the keys, shape (n,) each.

    Raises
    ------
    OverflowError
        Keys of these widths do not fit 63 bits.
    """
    _check(widths)
    columns = []
    for width in reversed(widths[1:]):
        keys, column = np.divmod(keys, width)
        columns.append(column)
    return (keys, *reversed(columns))


def _check(widths: Sequence[int]) -> None:
    # If a width is 0, there are no keys.
    if prod(widths) > _MOST:
        raise OverflowError(f"keys of widths {', '.join(map(str, widths))} do not fit 63 bits")


@dataclass(frozen=True, eq=False)
class Factorized:
    """Codes 0..n-1 for the distinct values of a batch's keys."""

    keys: Ints
    """Distinct values, ascending."""
    codes: Ints
    """Index of each row's value in `keys`."""

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
                # The usual case, because values are often codes already.
                return Factorized(np.arange(low, high + 1), shifted)
            # 32 bits are enough for codes, and the width matters in sums over millions of keys.
            codes = np.cumsum(seen, dtype=np.int32)[shifted].astype(np.int64)
            codes -= 1
            return Factorized(np.flatnonzero(seen) + low, codes)
        keys, codes = np.unique(values, return_inverse=True)
        return Factorized(keys, codes)

    @staticmethod
    def _of_narrow(values: Numbers) -> Factorized:
        """Do the same for integers of at most 16 bits, without checking their range."""
        unsigned = values.view(f"u{values.dtype.itemsize}")
        # With 64-bit indices, numpy's take is twice as fast.
        bits = unsigned.astype(np.int64)
        seen = np.zeros(1 << 8 * values.dtype.itemsize, np.bool_)
        seen[bits] = True
        keys = np.sort(np.flatnonzero(seen).astype(unsigned.dtype).view(values.dtype))
        code = np.zeros(len(seen), np.int64)
        code[keys.view(unsigned.dtype)] = np.arange(len(keys))
        return Factorized(keys.astype(np.int64), code[bits])

    def count(self, rows: Numbers | None = None) -> Ints:
        """Number of (selected) rows of each key."""
        codes = self.codes if rows is None else self.codes[rows]
        return np.bincount(codes, minlength=len(self.keys))

    def sum(self, values: Ints, rows: Numbers | None = None) -> Ints:
        """Exact sum of each key's values (of the selected rows)."""
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
    """Indices that sort integers; equal ones keep their order."""
    if not len(keys):
        return keys
    low, high = int(keys.min()), int(keys.max())
    if low == high:
        return np.arange(len(keys))
    # numpy uses radix sort for 16-bit integers, which is several times faster than its sort of wider ones.
    if high - low < 1 << 16:
        return np.argsort((keys - low).astype(np.uint16), kind="stable")
    if high - low <= 8 * len(keys) + 65536:
        dense = Factorized.of(keys)
        if len(dense.keys) < 1 << 16:
            return np.argsort(dense.codes.astype(np.uint16), kind="stable")
    return np.argsort(keys, kind="stable")


NO_VALUE = np.iinfo(np.int64).min
"""Null in integer columns."""

How = Literal["sum", "min", "max"]
"""Functions that merge the values under equal keys."""


@dataclass(frozen=True, eq=False)
class IntTable:
    """Columns of integers under sorted, distinct keys; shape (n,) each.

    Attributes
    ----------
    columns
        Columns of any integer type; values read from them have 64 bits.
    """

    keys: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    columns: Mapping[str, Numbers] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, column: str) -> Ints:
        return self.stored(column).astype(np.int64, copy=False)

    def stored(self, column: str) -> Numbers:
        """A column in its storage type, for adding up but not for arithmetic; any type for an empty table."""
        return self.columns[column] if self.columns else np.empty(0, np.int64)

    def rekeyed(self, keys: Ints, how: Mapping[str, How] | None = None) -> IntTable:
        """The same rows under other keys; rows with equal keys are added up, or merged by the column's `how`."""
        return group(keys, self.columns, how)

    def where(self, rows: Numbers) -> IntTable:
        """Select rows, by a mask or by ascending indices."""
        return IntTable(self.keys[rows], {n: c[rows] for n, c in self.columns.items()})

    def at(self, keys: Ints, column: str, missing: int = 0) -> Ints:
        """Values of a column at `keys`; `missing` for absent keys."""
        values = np.full(len(keys), missing, dtype=np.int64)
        if len(self.keys):
            place = np.searchsorted(self.keys, keys)
            place[place == len(self.keys)] = 0
            known = self.keys[place] == keys
            values[known] = self.columns[column][place[known]]
        return values

    def packed(self) -> IntTable:
        """The same table with each column in the narrowest type that fits: a million files have many columns."""
        return IntTable(self.keys, {n: narrow(c) for n, c in self.columns.items()})

    @staticmethod
    def merged(parts: Sequence[IntTable], how: Mapping[str, How] | None = None) -> IntTable:
        """Add up tables with the same columns; small ones are returned unchanged."""
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
"""Minimum number of rows of a table whose columns are stored in narrow types."""


class _Fold:
    """Merges rows with equal keys into one, column by column."""

    def __init__(self, keys: Ints) -> None:
        self.keys = keys
        """Sorted and distinct."""
        self._runs: Ints | None = None
        self._order: Ints | None = None
        self._starts: Ints | None = None
        if len(keys) < 2 or (keys[1:] > keys[:-1]).all():
            return
        # A process's calls on a file are consecutive, and equal neighbours need not be sorted.
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

    def __call__(self, column: Numbers, how: How) -> Ints:
        fold = {"sum": np.add, "min": np.minimum, "max": np.maximum}[how]
        values: Ints = column.astype(np.int64, copy=False)
        if self._runs is not None:
            values = fold.reduceat(values, self._runs)
        if self._order is not None:
            values = values[self._order]
        return values if self._starts is None else fold.reduceat(values, self._starts)


def group(keys: Ints, columns: Mapping[str, Numbers], how: Mapping[str, How] | None = None) -> IntTable:
    """Add up rows with equal keys, in any order; `how` names columns for which to take the minimum or maximum."""
    fold = _Fold(keys.astype(np.int64, copy=False))
    return IntTable(fold.keys, {n: fold(c, (how or {}).get(n, "sum")) for n, c in columns.items()})


def totals(shape: int | tuple[int, ...], place: Any, values: Numbers) -> Ints:
    """Sums of values by place (an index, or a tuple of indices) in an array of this shape."""
    sums = np.zeros(shape, np.int64)
    np.add.at(sums, place, values)
    return sums


def exact_sum(values: Ints) -> int:
    """Sum of fewer than 2^31 integers, exact even beyond 64 bits."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


class IntTableBuilder:
    """Adds up rows under integer keys that come batch by batch."""

    def __init__(self, how: Mapping[str, How] | None = None, table: IntTable | None = None) -> None:
        self._how = how
        self._tables = [] if table is None else [table]

    def add(self, keys: Ints, columns: Mapping[str, Numbers]) -> None:
        """Add rows, shape (n,) each, as in `group`."""
        if len(keys):
            self._tables.append(group(keys, columns, self._how))
        if len(self._tables) > _TABLES:
            self.table()

    def table(self) -> IntTable:
        """All rows so far."""
        self._tables = [IntTable.merged(self._tables, self._how)]
        return self._tables[0]


_TABLES = 64
"""Number of tables that are merged at once."""


_FEW_FIRST = 32



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


@dataclass(frozen=True, eq=False)
class Sums:
    """Tables, and counts of pairs, by name: the partial result of a measure that adds up. None of them is empty."""

    tables: Mapping[str, IntTable] = field(default_factory=dict)
    pairs: Mapping[str, Pairs] = field(default_factory=dict)

    def __getitem__(self, name: str) -> IntTable:
        return self.tables.get(name, IntTable())

    def counts(self, name: str) -> Pairs:
        """Counts of pairs."""
        return self.pairs.get(name, Pairs())

    @staticmethod
    def merged(parts: Sequence[Sums], how: Mapping[str, How] | None = None, packed: Collection[str] = ()) -> Sums:
        """Add up tables and pairs of the same name, in any order.

        Parameters
        ----------
        how
            Columns, of any table, for which to take the minimum or maximum.
        packed
            Names of pairs that are only read later; see `Pairs.merged`.
        """
        tables, pairs = defaultdict[str, list[IntTable]](list), defaultdict[str, list[Pairs]](list)
        for part in parts:
            for name, table in part.tables.items():
                tables[name].append(table)
            for name, some in part.pairs.items():
                pairs[name].append(some)
        return Sums(
            {name: IntTable.merged(some, how) for name, some in tables.items()},
            {name: Pairs.merged(some, packed=name in packed) for name, some in pairs.items()},
        )


class SumsBuilder:
    """Adds up `Sums` that come batch by batch; for the parameters see `Sums.merged`."""

    def __init__(self, how: Mapping[str, How] | None = None, packed: Collection[str] = ()) -> None:
        self._packed = packed
        self._tables = defaultdict[str, IntTableBuilder](lambda: IntTableBuilder(how))
        self._pairs = defaultdict[str, list[Pairs]](list)

    def add(self, name: str, keys: Ints, columns: Mapping[str, Numbers]) -> None:
        """Add rows to a table, shape (n,) each, as in `group`."""
        if len(keys):
            self._tables[name].add(keys, columns)

    def count(self, name: str, first: Ints, second: Ints, count: Ints) -> None:
        """Add pairs and their counts, shape (n,) each."""
        if len(first):
            parts = self._pairs[name]
            parts.append(count_pairs(first, second, count))
            if len(parts) > _PARTS:
                parts[:] = [Pairs.merged(parts)]

    def result(self) -> Sums:
        """Everything so far."""
        tables = {name: table.table() for name, table in self._tables.items()}
        pairs = {name: Pairs.merged(parts, packed=name in self._packed) for name, parts in self._pairs.items()}
        return Sums(tables, pairs)


_PARTS = 32
"""Number of parts that are merged at once."""


Groups = Callable[[Numbers, Numbers], Ints]
"""Maps phases and files, shape (n,) each, to groups; -1 omits a row."""


def grouped(number: Ints, columns: Mapping[str, Numbers], how: Mapping[str, How] | None = None) -> IntTable:
    """Columns added up by group number; -1 omits a row."""
    keep = number >= 0
    return group(number[keep], {name: column[keep] for name, column in columns.items()}, how)


def summed(groups: Groups, table: Any, columns: Sequence[str]) -> IntTable:
    """Columns of a table added up by its phases and files; of first and last times, the minimum and maximum are kept.
    """
    by_name = {name: getattr(table, name) for name in columns}
    return grouped(groups(table.phase, table.file), by_name, {"first": "min", "last": "max"})


@dataclass(frozen=True, eq=False)
class ByGroup:
    """A row of numbers for each group."""

    groups: Ints
    """Shape (n,), ascending and distinct."""
    values: Ints
    """Shape (n, width)."""

    @staticmethod
    def summed(group: Ints, values: Ints) -> ByGroup:
        """Add up rows with the same group; -1 omits a row."""
        keep = group >= 0
        dense = Factorized.of(group[keep])
        return ByGroup(dense.keys, totals((len(dense.keys), values.shape[1]), dense.codes, values[keep]))

    @staticmethod
    def of_cells(group: Ints, kind: Ints, values: Ints) -> ByGroup:
        """Add up single times by group and by kind, or `ALL_KINDS`; -1 omits a time."""
        keep = group >= 0
        dense = Factorized.of(group[keep])
        return ByGroup(dense.keys, totals((len(dense.keys), KINDS + 1), (dense.codes, kind[keep]), values[keep]))

    def at(self, groups: Ints) -> Ints:
        """The rows of some groups, 0 for missing ones; shape (groups, width)."""
        rows = np.zeros((len(groups), self.values.shape[1]), np.int64)
        if len(self.groups):
            place = np.minimum(np.searchsorted(self.groups, groups), len(self.groups) - 1)
            known = self.groups[place] == groups
            rows[known] = self.values[place[known]]
        return rows
