"""Division of a trace's ranks into parts, each of which is one task."""

from __future__ import annotations

from typing import Any

import numpy as np

SMALL_PART, LARGE_PART = 1 << 17, 1 << 20
_MOST_PARTS = 1 << 14
"""Maximum number of parts: a Dask scheduler manages about a thousand tasks per second."""


def plan_parts(calls: np.ndarray[Any, np.dtype[np.int64]], *, short_last: bool = False) -> list[range]:
    """Divide the ranks into ranges of about a million calls, or an eighth of a small trace, or more of a huge one;
    ranks are never divided.

    Parameters
    ----------
    calls
        Calls per rank, shape (ranks,).
    short_last
        Ranges become shorter towards the end, so that the first worker to finish waits less for the others: each is an
        eighth of the rest, as in guided self-scheduling (Polychronopoulos and Kuck 1987).
    """
    left = int(calls.sum())
    wanted = max(int(np.clip(left // 8, SMALL_PART, LARGE_PART)), left // _MOST_PARTS)
    parts, begin, pending = [], 0, 0
    for rank, count in enumerate(calls.tolist()):
        if short_last:
            wanted = min(wanted, max(left // 8, SMALL_PART))
        if pending and pending + count > wanted:
            left -= pending
            parts.append(range(begin, rank))
            begin, pending = rank, 0
        pending += count
    parts.append(range(begin, len(calls)))
    return parts
