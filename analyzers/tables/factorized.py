"""Codes 0, 1, 2, ... for the distinct values of a column (pandas calls this `factorize`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Factorized:
    """Codes 0..n-1 for the distinct values of a batch's keys."""

    keys: Ints
    """Distinct values, ascending."""
    codes: NDArray[np.int64]
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
    def _of_narrow(values: NDArray[Any]) -> Factorized:
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

    def count(self, rows: NDArray[Any] | None = None) -> Ints:
        """Number of (selected) rows of each key."""
        codes = self.codes if rows is None else self.codes[rows]
        return np.bincount(codes, minlength=len(self.keys))

    def sum(self, values: Ints, rows: NDArray[Any] | None = None) -> Ints:
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
