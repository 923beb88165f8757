"""Plausibility limits: larger numbers in a trace count as unknown, and are reported, before they are added up.

Two plausible sizes or offsets can be added in 64 bits; `claimed` adds up all those of a trace.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.calls import MOST_SUM

NO_VALUE = np.iinfo(np.int64).min
"""Marks a missing integer."""

MOST_BYTES = 1 << 56
"""No process can address more bytes (64-bit processors with five-level page tables), so no call can move more. `-1`,
also written as 2^64 - 1, comes from programs that pass on the result of a failed call."""
MOST_OFFSET = 1 << 60
"""1 EiB: no file system stores such a large file, and sums of twice as much still fit 64 bits."""
Ints = NDArray[np.int64]


def believed(sizes: Ints) -> NDArray[np.bool_]:
    """Whether a call can have these sizes, shape (n,), bool; `NO_VALUE` is allowed."""
    plausible: NDArray[np.bool_] = ((sizes >= 0) & (sizes < MOST_BYTES)) | (sizes == NO_VALUE)
    return plausible


def claimed(values: NDArray[Any], most: int) -> float:
    """Sum of values from 0 to `most` or `NO_VALUE`, which counts as 0; exact if it fits 64 bits."""
    if float(most) * len(values) < MOST_SUM:
        # Two times `NO_VALUE` is 2^64, which wraps to 0; masking the sign bit removes an odd one.
        return float(int(values.sum()) & (1 << 63) - 1)
    return float(np.where(values == NO_VALUE, 0, values).sum(dtype=np.float64))
