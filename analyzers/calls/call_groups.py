"""Calls of a batch put together that share every attribute but place, size and time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.tables.int_table import NO_VALUE, Factorized

__all__ = ["CallGroups"]

_MOST = np.iinfo(np.int64).max
_WIDE = 1 << 20
"""Of more codes than this, those that occur are numbered anew."""
_NARROW = 1 << 7
"""A column of fewer different values is packed as it is."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CallGroups:
    """Calls of a batch in groups that share every attribute but place, size and time: few, where calls are many."""

    codes: NDArray[Any]
    """Group of each call."""
    row: Ints
    """One call of each group, shape (groups,)."""
    count: Ints
    """Calls of each group."""

    @staticmethod
    def of(*columns: NDArray[Any]) -> CallGroups:
        """Groups of calls that agree in each of the columns, integers of shape (n,)."""
        codes, width = np.zeros(len(columns[0]), np.int64), 1
        for column in columns:
            low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
            if low == high:
                continue
            if high - low < _NARROW:
                numbers, count = column - column.dtype.type(low), high - low + 1
            else:
                dense = Factorized.of(column)
                numbers, count = dense.codes, len(dense.keys)
            codes *= count
            codes += numbers
            width *= count
            if width > _WIDE:
                few = Factorized.of(codes)
                codes, width = few.codes, len(few.keys)
        codes = Factorized.of(codes).codes
        row = np.zeros(int(codes.max(initial=-1)) + 1, np.int64)
        row[codes] = np.arange(len(codes))
        return CallGroups(codes, row, np.bincount(codes, minlength=len(row)))

    def range(self, values: Ints) -> tuple[Ints, Ints]:
        """Smallest and largest value of each group."""
        low, high = np.full(len(self.row), _MOST), np.full(len(self.row), -_MOST)
        np.minimum.at(low, self.codes, values)
        np.maximum.at(high, self.codes, values)
        return low, high

    def sum(self, values: Ints) -> Ints:
        """Exact sum over the calls of each group; `NO_VALUE` counts as 0."""
        unknown = values == NO_VALUE
        return Factorized(self.row, self.codes).sum(np.where(unknown, 0, values) if unknown.any() else values)
