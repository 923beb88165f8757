"""Algorithm 1 of Tarazu as printed: a minimum-cost maximum flow from requests to targets.

An arc from a request to a target costs the load of the target's server, and an arc from a target to the sink costs the
target's own cost. Neither depends on the request or on the number of stripes. The flow of least cost is therefore
greedy: the cheapest target takes as many requests as it may, then the next. (The feasible flows form a polymatroid, for
which greedy is exact.) All stripes of a batch pile up on the cheapest targets. Each target takes the requests with
most stripes left, which leaves most choice for the remaining targets.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vani.centre.plan.placement.targets import Floats, Ints


def cheapest(counts: Sequence[int], costs: Floats, capacity: Ints) -> list[list[int]]:
    """Targets of each request in the order of assignment; fewer than its stripes if the targets run out.

    Parameters
    ----------
    counts
        Number of stripes of each request.
    costs
        Cost of a stripe on each target, shape (targets,): load of its server + its own cost.
    capacity
        Most stripes on each target, shape (targets,). A target takes at most one per request.
    """
    left = np.array(counts, dtype=np.int64)
    targets_of_request: list[list[int]] = [[] for _ in counts]
    for target in np.argsort(costs, kind="stable").tolist():
        count = min(int(capacity[target]), int(np.count_nonzero(left)))
        if count <= 0:
            continue
        # The request's index breaks ties.
        chosen = np.lexsort((np.arange(len(left)), -left))[:count]
        left[chosen] -= 1
        for request in chosen.tolist():
            targets_of_request[request].append(target)
    return targets_of_request


def flow_cost(places: Sequence[Sequence[int]], costs: Floats) -> tuple[int, float]:
    """Number of placed stripes and their total cost."""
    taken = np.bincount([target for targets in places for target in targets], minlength=len(costs))
    return int(taken.sum()), float(np.dot(taken, costs))
