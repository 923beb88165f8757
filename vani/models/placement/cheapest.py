"""Algorithm 1 of Tarazu as printed: a minimum-cost maximum flow from requests to targets.

An arc from a request to a target costs the load of the target's server, one from a target to the sink the target's own
cost: neither depends on the request, nor on how many stripes come. So the cheapest target takes as many requests as it
may, then the next: the flow of least cost (it is a polymatroid, on which this is exact), and all stripes of a batch
pile up on the cheapest targets. Each target takes those requests that have most stripes left, which leaves most room
for the targets to come.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vani.models.placement.targets import Floats, Ints

__all__ = ["cheapest", "flow_cost"]


def cheapest(counts: Sequence[int], costs: Floats, capacity: Ints) -> list[list[int]]:
    """Targets of each request, in the order in which they were taken; fewer than its stripes where none is left.

    Parameters
    ----------
    counts
        Stripes of each request.
    costs
        Of a stripe on each target: load of its server + its own cost.
    capacity
        Stripes that each target takes, at most one per request.
    """
    left = np.array(counts, dtype=np.int64)
    targets_of_request: list[list[int]] = [[] for _ in counts]
    for target in np.argsort(costs, kind="stable").tolist():
        count = min(int(capacity[target]), int(np.count_nonzero(left)))
        if count <= 0:
            continue
        # The first of requests with as many left.
        chosen = np.lexsort((np.arange(len(left)), -left))[:count]
        left[chosen] -= 1
        for request in chosen.tolist():
            targets_of_request[request].append(target)
    return targets_of_request


def flow_cost(places: Sequence[Sequence[int]], costs: Floats) -> tuple[int, float]:
    """Stripes that have a target, and their total cost."""
    taken = np.bincount([target for targets in places for target in targets], minlength=len(costs))
    return int(taken.sum()), float(np.dot(taken, costs))
