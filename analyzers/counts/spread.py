"""Lower bounds for single processes, from sums over all of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def evened_out(least: Ints, total: int) -> Ints:
    """Raise the smallest values of `least` until all add up to `total`, which keeps the largest as small as possible.

    Parameters
    ----------
    least
        Shape (processes,): certain minimum of each process.
    total
        Total of all processes; if the sum of `least` is larger, that sum applies.
    """
    left = total - int(least.sum())
    if left <= 0 or not len(least):
        return least.copy()
    order = np.sort(least)
    places = np.arange(1, len(order) + 1)
    # Amount needed to raise the lowest n values to the next one.
    needed = places * np.append(order[1:], np.iinfo(np.int64).max // len(order)) - np.cumsum(order)
    lowest = int(np.searchsorted(needed, left, side="left")) + 1
    level, rest = divmod(int(order[:lowest].sum()) + left, lowest)
    evened: Ints = np.maximum(least, level)
    evened[np.flatnonzero(least <= level)[:rest]] += 1
    return evened
