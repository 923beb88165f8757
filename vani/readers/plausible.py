"""Plausible numbers of a trace: larger ones are taken as unknown, and reported, before they are added up.

Plausible sizes and offsets leave room to add two of them in 64 bits; `claimed` adds up those of a trace.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.calls import MOST_SUM

__all__ = ["MOST_BYTES", "MOST_OFFSET", "NO_VALUE", "believed", "claimed"]

NO_VALUE = np.iinfo(np.int64).min
"""Means a missing integer."""

MOST_BYTES = 1 << 56
"""No process can address more (64-bit processors with page tables of five levels), so no call can move it. `-1`, also
as 2^64 - 1, comes from programs that pass on the result of a call that failed."""
MOST_OFFSET = 1 << 60
"""No file system stores a file of 1 EiB; sums with twice as much still fit 64 bits."""
Ints = NDArray[np.int64]


def believed(sizes: Ints) -> NDArray[np.bool_]:
    """Sizes that a call can have, shape (n,), bool; `NO_VALUE` is one of them."""
    plausible: NDArray[np.bool_] = ((sizes >= 0) & (sizes < MOST_BYTES)) | (sizes == NO_VALUE)
    return plausible


def claimed(values: NDArray[Any], most: int) -> float:
    """Sum of values from 0 to `most` or `NO_VALUE`, which counts as 0; exact where it fits 64 bits."""
    if float(most) * len(values) < MOST_SUM:
        # Two times `NO_VALUE` are 2^64, which is 0: an odd one is removed with the sign.
        return float(int(values.sum()) & (1 << 63) - 1)
    return float(np.where(values == NO_VALUE, 0, values).sum(dtype=np.float64))
