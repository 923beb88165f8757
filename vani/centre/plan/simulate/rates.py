"""Max-min fair rates by progressive filling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CAPPED: Final = -1
"""Bound of a flow that only its own cap limits."""

_SAME: Final = 1 + 1e-12


@dataclass(frozen=True)
class Usage:
    """The flows' use of resources, in compressed rows.

    `first`, shape (flows + 1,), is the index of each flow's first entry. Entry `e` takes `load[e]` of
    `resource[e]` for each unit per second of its flow. `cap`, shape (flows,), is the highest rate of each flow,
    inf without a cap. A flow that represents n equal ones has n times the load and the rate of one of them.
    """

    first: Ints
    resource: Ints
    load: Floats
    cap: Floats

    def of(self, flows: Ints) -> Usage:
        """The rows of a subset of flows."""
        lengths = self.first[flows + 1] - self.first[flows]
        first = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.repeat(self.first[flows] - first[:-1], lengths) + np.arange(first[-1])
        return Usage(first, self.resource[entries], self.load[entries], self.cap[flows])


def max_min(usage: Usage, capacity: Floats) -> tuple[Floats, Ints]:
    """Share resources among flows.

    A resource's level is the rate of each of its flows if it is shared equally among those that are not settled yet.
    Levels only rise while others settle, so every resource whose level is the lowest along all its flows can settle
    in the same round. The number of rounds is the longest chain of dependent bottlenecks, not their number.

    Returns
    -------
    Rates, shape (flows,), and the resource that limits each flow, `CAPPED` for its own cap. A flow without resources
    and cap has an infinite rate.
    """
    flows = len(usage.first) - 1
    rate, bound = usage.cap.copy(), np.full(flows, CAPPED)
    left = capacity.astype(np.float64)
    lengths = np.diff(usage.first)
    live = np.flatnonzero(lengths)
    lengths = lengths[live]
    resource, load = usage.resource, usage.load
    while len(live):
        starts = np.cumsum(lengths) - lengths
        demand = np.bincount(resource, load, minlength=len(left))
        level = np.divide(left, demand, out=np.zeros_like(left), where=demand > 0)[resource]
        free = np.minimum.reduceat(level, starts)
        cap = usage.cap[live]
        low = np.minimum(free, cap)
        everywhere = np.repeat(low, lengths)
        # If another of its flows may settle lower, a resource's level can still rise: it waits for the next round.
        tight = level <= everywhere * _SAME
        waits = np.zeros(len(left), dtype=bool)
        waits[resource[~tight]] = True
        binding = tight & ~waits[resource]
        capped = cap <= free
        settled = np.logical_or.reduceat(binding, starts) | capped
        rate[live[settled]] = low[settled]
        bound[np.repeat(live, lengths)[binding]] = resource[binding]
        bound[live[capped]] = CAPPED
        gone = np.repeat(settled, lengths)
        left -= np.bincount(resource[gone], (load * everywhere)[gone], minlength=len(left))
        np.maximum(left, 0.0, out=left)
        live, lengths = live[~settled], lengths[~settled]
        resource, load = resource[~gone], load[~gone]
    return rate, bound
