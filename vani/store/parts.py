"""Division of a trace's ranks into parts, each of which is one task."""

from __future__ import annotations

from typing import Any

import numpy as np

LARGE_PART = 1 << 20
"""Calls of a part: fewer are decoded and measured in less time than Dask takes to load."""
_MAX_PARTS = 1 << 14
"""Maximum number of parts: a Dask scheduler manages about a thousand tasks per second."""


def plan_parts(calls: np.ndarray[Any, np.dtype[np.int64]], *, short_last: bool = False) -> list[range]:
    """Divide ranks into ranges of an eighth of all calls, but at most a million, or more of a huge trace.

    Ranks are never divided, and a trace of up to a million calls is one part.

    Parameters
    ----------
    calls
        Calls per rank, shape (ranks,).
    short_last
        Ranges become shorter towards the end, so that the first worker to finish waits less for the others: each is an
        eighth of the rest, as in guided self-scheduling (Polychronopoulos and Kuck 1987).
    """
    left = int(calls.sum())
    wanted = left if left <= LARGE_PART else max(min(left // 8, LARGE_PART), left // _MAX_PARTS)
    parts, begin, pending = [], 0, 0
    for rank, count in enumerate(calls.tolist()):
        if short_last:
            wanted = min(wanted, max(left // 8, LARGE_PART // 8))
        if pending and pending + count > wanted:
            left -= pending
            parts.append(range(begin, rank))
            begin, pending = rank, 0
        pending += count
    parts.append(range(begin, len(calls)))
    return parts
