"""Small tables of integers under integer keys: what measures hand on and the engine adds up.

Sums, minima and maxima of integers do not depend on the order in which parts arrive, so a profile does not depend
on how the store was split or who worked on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Dense", "How", "Keyed", "group"]

Ints = NDArray[np.int64]
How = Literal["sum", "min", "max"]
"""How values under equal keys become one."""


@dataclass(frozen=True)
class Keyed:
    """Columns of integers under sorted, distinct keys; shape (n,) each."""

    keys: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    columns: Mapping[str, Ints] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, column: str) -> Ints:
        return self.columns[column]

    def rekeyed(self, keys: Ints, how: Mapping[str, How] | None = None) -> Keyed:
        """The same rows under other keys, added up (or as `how` says by column) where keys meet."""
        return group(keys, self.columns, how)

    def where(self, rows: NDArray[Any]) -> Keyed:
        """Some of the rows, given as a mask or as ascending positions."""
        return Keyed(self.keys[rows], {n: c[rows] for n, c in self.columns.items()})

    def at(self, keys: Ints, column: str, missing: int = 0) -> Ints:
        """Values of a column at `keys`, `missing` where there is no such key."""
        found = np.full(len(keys), missing, dtype=np.int64)
        if len(self.keys):
            place = np.searchsorted(self.keys, keys)
            place[place == len(self.keys)] = 0
            known = self.keys[place] == keys
            found[known] = self.columns[column][place[known]]
        return found

    @staticmethod
    def merged(parts: Sequence[Keyed], how: Mapping[str, How] | None = None) -> Keyed:
        """Add up tables with the same columns."""
        parts = [p for p in parts if len(p)]
        if not parts:
            return Keyed()
        if len(parts) == 1:
            return parts[0]
        names = list(parts[0].columns)
        return group(
            np.concatenate([p.keys for p in parts]),
            {n: np.concatenate([p.columns[n] for p in parts]) for n in names},
            how,
        )


def group(keys: Ints, columns: Mapping[str, Ints], how: Mapping[str, How] | None = None) -> Keyed:
    """Add up rows of equal key, in any order; `how` names columns to take the minimum or maximum of."""
    if not len(keys):
        return Keyed(keys.astype(np.int64), {n: c.astype(np.int64) for n, c in columns.items()})
    if len(keys) > 1 and not (keys[1:] > keys[:-1]).all():
        fold = {"sum": np.add, "min": np.minimum, "max": np.maximum}
        folds = {n: fold[(how or {}).get(n, "sum")] for n in columns}
        # Calls of a process on a file come in rows: what is equal side by side need not be sorted.
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        if 2 * len(starts) < len(keys):
            keys, columns = keys[starts], {n: folds[n].reduceat(c, starts) for n, c in columns.items()}
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        columns = {n: c[order] for n, c in columns.items()}
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        keys = keys[starts]
        columns = {n: folds[n].reduceat(c, starts) for n, c in columns.items()}
    return Keyed(keys, dict(columns))


@dataclass(frozen=True)
class Dense:
    """Codes 0..n-1 for the distinct values of a batch's keys."""

    keys: Ints
    """Distinct values, ascending."""
    codes: NDArray[np.int64]
    """Position of each row's value in `keys`."""

    @staticmethod
    def of(values: Ints) -> Dense:
        """Number the values of a batch."""
        if not len(values):
            return Dense(values, values)
        if values.dtype.itemsize <= 2:
            return Dense._of_narrow(values)
        low, high = int(values.min()), int(values.max())
        if low == high:
            return Dense(values[:1].copy(), np.zeros(len(values), np.int64))
        width = high - low + 1
        if width <= 8 * len(values) + 65536:
            seen = np.zeros(width, np.bool_)
            shifted = values - low
            seen[shifted] = True
            return Dense(np.flatnonzero(seen) + low, (np.cumsum(seen) - 1)[shifted])
        keys, codes = np.unique(values, return_inverse=True)
        return Dense(keys, codes)

    @staticmethod
    def _of_narrow(values: NDArray[Any]) -> Dense:
        """The same for integers of at most 16 bits, which need no look at their range."""
        bits = values.view(f"u{values.dtype.itemsize}")
        seen = np.zeros(1 << 8 * values.dtype.itemsize, np.bool_)
        seen[bits] = True
        keys = np.sort(np.flatnonzero(seen).astype(bits.dtype).view(values.dtype))
        code = np.zeros(len(seen), np.int64)
        code[keys.view(bits.dtype)] = np.arange(len(keys))
        return Dense(keys.astype(np.int64), code[bits])

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
        if float(np.abs(values).max()) * len(values) < 2**53:
            return np.bincount(codes, values, len(self.keys)).astype(np.int64)
        np.add.at(total, codes, values)
        return total
