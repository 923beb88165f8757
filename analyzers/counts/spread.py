"""Lower bounds for single processes, where only sums over all of them are known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["evened_out"]

Ints = NDArray[np.int64]


def evened_out(least: Ints, total: int) -> Ints:
    """Raise the lowest of `least` until all add up to `total`: no other way keeps the largest as small.

    Parameters
    ----------
    least
        Shape (processes,): what each of them has for certain.
    total
        What all have together; what `least` adds up to where that is more.
    """
    left = total - int(least.sum())
    if left <= 0 or not len(least):
        return least.copy()
    order = np.sort(least)
    places = np.arange(1, len(order) + 1)
    # To raise the lowest n to the next one takes that many.
    needed = places * np.append(order[1:], np.iinfo(np.int64).max // len(order)) - np.cumsum(order)
    lowest = int(np.searchsorted(needed, left, side="left")) + 1
    level, rest = divmod(int(order[:lowest].sum()) + left, lowest)
    evened: Ints = np.maximum(least, level)
    evened[np.flatnonzero(least <= level)[:rest]] += 1
    return evened
