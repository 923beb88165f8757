"""Processes that run calls concurrently, so that their I/O time is not just a sum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vani.distinct import distinct

Ints = NDArray[np.int64]
_NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Last:
    """The last call of a batch: process (-1 if none), start and end; and the latest end of earlier ones, in ns."""

    process: int = -1
    start: int = 0
    end: int = 0
    reach: int = _NEVER


class OverlapFinder:
    """Follows processes batch by batch.

    A call may overlap its predecessor, because clocks with coarse ticks make neighbours touch. It runs concurrently
    with others if it begins before its predecessor, or before some earlier call has ended.
    """

    def __init__(self) -> None:
        self.last = Last()

    def find(self, process: Ints, start: Ints, end: Ints) -> Ints:
        """Processes with concurrent calls in this batch; calls in recorded order, process by process."""
        n = len(process)
        if not n:
            return process[:0]
        goes_on = int(process[0]) == self.last.process
        bad = np.zeros(n, np.bool_)
        if int(process[0]) == int(process[-1]) and (end[1:] >= end[:-1]).all():
            # No call outlasts its successor, so looking back two calls is enough.
            of_first = n
            bad[1:] = start[1:] < start[:-1]
            bad[2:] |= start[2:] < end[:-2]
        else:
            first = np.append(True, process[1:] != process[:-1])
            of_first = int(np.argmax(first[1:])) + 1 if first[1:].any() else n
            bad[1:] = (start[1:] < start[:-1]) & ~first[1:]
            # One running maximum serves all processes of the batch, each lifted above the previous ones.
            low = int(min(start.min(), end.min()))
            span = int(end.max()) - low + 1
            lift = (np.cumsum(first) - 1) * span - low
            reached = np.maximum.accumulate(end + lift)
            if n > 2:
                bad[2:] |= (start[2:] + lift[2:] < reached[:-2]) & ~first[2:] & ~first[1:-1]
        if goes_on:
            before = max(self.last.end, self.last.reach)
            bad[0] |= start[0] < max(self.last.start, self.last.reach)
            # Calls that extend from the previous batch overlap all calls of the process that begin before they end.
            bad[1:of_first] |= start[1:of_first] < before
        self._keep(process, start, end, goes_on)
        return distinct(process[bad])

    def _keep(self, process: Ints, start: Ints, end: Ints, goes_on: bool) -> None:
        last = int(process[-1])
        earlier_ends = end[process == last][:-1]
        reach = int(earlier_ends.max(initial=_NEVER))
        if goes_on and last == self.last.process:
            reach = max(reach, self.last.end, self.last.reach)
        self.last = Last(last, int(start[-1]), int(end[-1]), reach)
