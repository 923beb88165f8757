"""Offsets that the tracer replaced with patterns (format document, section 5.4)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.distinct import distinct
from vani.readers.plausible import NO_VALUE


def group_positions(kinds: NDArray[np.int64], of_rank: NDArray[Any]) -> NDArray[np.int64]:
    """Find r of `a*r+b` for every rank and function: shape (ranks, functions with such patterns).

    For each function, ranks with the same number of distinct signatures form a group, in which they are numbered
    from 0 by ascending rank.

    Parameters
    ----------
    kinds
        Number of distinct signatures of each function, by grammar: shape (grammars, functions).
    of_rank
        Grammar of each rank, -1 for none.
    """
    functions = kinds.shape[1]
    positions = np.zeros((len(of_rank), functions), dtype=np.int64)
    for function in range(functions):
        group = np.where(of_rank >= 0, kinds[of_rank, function], -1)
        order = np.argsort(group, kind="stable")
        first = np.searchsorted(group[order], group[order])
        positions[order, function] = np.arange(len(of_rank)) - first
    return positions


_FAR = 1 << 62


class RunningOffsets:
    """Undoes the intra-process differences of one rank, batch by batch."""

    def __init__(self, *, from_first: bool) -> None:
        """`from_first`: differences are from the function's first offset (2.5g), not from its previous one (3.0)."""
        self._from_first = from_first
        self.lost = 0
        """Number of calls whose offsets add up to an implausible number and are therefore unknown."""
        self._base: dict[int, int] = {}

    def resolve(self, function: NDArray[Any], stored: NDArray[np.int64]) -> None:
        """Replace differences in `stored` with offsets, in place; `function` is -1 for rows that are left unchanged."""
        for code in distinct(function[function >= 0]).tolist():
            rows = np.flatnonzero((function == code) & (stored != NO_VALUE))
            if not len(rows):
                continue
            values = stored[rows]
            if np.abs(values).sum(dtype=np.float64) + abs(self._base.get(code, 0)) >= _FAR:
                # Their sums would overflow 64 bits, so offsets are unknown from here on.
                stored[rows] = NO_VALUE
                self._base[code] = _FAR
                self.lost += len(rows)
                continue
            if self._from_first:
                known = self._base.get(code)
                if known is None:
                    self._base[code] = known = int(values[0])
                    values[1:] += known
                else:
                    values += known
            else:
                values = np.cumsum(values) + self._base.get(code, 0)
                self._base[code] = int(values[-1])
            stored[rows] = values
