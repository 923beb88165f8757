"""Small tables of integers under integer keys, which measures produce and the engine adds up.

Sums, minima and maxima of integers do not depend on the order in which parts arrive, so a profile does not depend
on how the store was split or which worker read it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vani.columns import narrow

NO_VALUE = np.iinfo(np.int64).min
"""Null in integer columns."""

Ints = NDArray[np.int64]
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
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, column: str) -> Ints:
        return self.stored(column).astype(np.int64, copy=False)

    def stored(self, column: str) -> NDArray[Any]:
        """A column in its storage type, for adding up but not for arithmetic; any type for an empty table."""
        return self.columns[column] if self.columns else np.empty(0, np.int64)

    def rekeyed(self, keys: Ints, how: Mapping[str, How] | None = None) -> IntTable:
        """The same rows under other keys; rows with equal keys are added up, or merged by the column's `how`."""
        return group(keys, self.columns, how)

    def where(self, rows: NDArray[Any]) -> IntTable:
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

    def __call__(self, column: NDArray[Any], how: How) -> Ints:
        fold = {"sum": np.add, "min": np.minimum, "max": np.maximum}[how]
        values: Ints = column.astype(np.int64, copy=False)
        if self._runs is not None:
            values = fold.reduceat(values, self._runs)
        if self._order is not None:
            values = values[self._order]
        return values if self._starts is None else fold.reduceat(values, self._starts)


def group(keys: Ints, columns: Mapping[str, NDArray[Any]], how: Mapping[str, How] | None = None) -> IntTable:
    """Add up rows with equal keys, in any order; `how` names columns for which to take the minimum or maximum."""
    fold = _Fold(keys.astype(np.int64, copy=False))
    return IntTable(fold.keys, {n: fold(c, (how or {}).get(n, "sum")) for n, c in columns.items()})


def exact_sum(values: Ints) -> int:
    """Sum of fewer than 2^31 integers, exact even beyond 64 bits."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


class IntTableBuilder:
    """Adds up rows under integer keys that come batch by batch."""

    def __init__(self, how: Mapping[str, How] | None = None, table: IntTable | None = None) -> None:
        self._how = how
        self._tables = [] if table is None else [table]

    def add(self, keys: Ints, columns: Mapping[str, NDArray[Any]]) -> None:
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
