"""Max-min fair rates from a sequence of linear programs, solved by HiGHS, to test `max_min`."""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy import optimize

from vani.centre.columns import Floats
from vani.centre.plan.simulate.events import Usage, max_min

__all__ = ["by_linear_programs", "largest_difference", "random_usage"]

_NEAR: Final = 1e-10
"""The smallest tolerance that HiGHS accepts."""


def by_linear_programs(usage: Usage, capacity: Floats) -> Floats:
    """Rates, shape (flows,): the smallest is maximised, then the smallest of the rest, and so on.

    A flow with the smallest rate in a solution (its bound has a price above 0) has reached its maximum, and is
    fixed in the next one.
    """
    flows = len(usage.first) - 1
    lengths = np.diff(usage.first)
    if (usage.cap[lengths == 0] == np.inf).any():
        raise ValueError("a flow through nothing has no rate")
    owner = np.repeat(np.arange(flows), lengths)
    passed, row = np.unique(usage.resource, return_inverse=True)
    # In units in which the largest rate of a flow on its own is 1.
    alone = np.minimum(usage.cap, np.inf)
    np.minimum.at(alone, owner, capacity[usage.resource] / usage.load)
    unit = float(alone.max())
    if unit <= 0:
        return np.zeros(flows)
    matrix = np.zeros((len(passed), flows))
    np.add.at(matrix, (row, owner), usage.load * unit)
    room = capacity[passed]
    most = np.minimum(usage.cap / unit, 2.0)
    rates = np.full(flows, np.nan)
    while np.isnan(rates).any():
        free = np.flatnonzero(np.isnan(rates))
        left = np.maximum(room - matrix @ np.nan_to_num(rates), 0.0)
        # Variables: rates of the flows that are not fixed yet, then their minimum, which is maximised.
        count = len(free)
        above = np.hstack([-np.eye(count), np.ones((count, 1))])
        limits = np.hstack([matrix[:, free], np.zeros((len(passed), 1))])
        found = optimize.linprog(
            np.append(np.zeros(count), -1.0),
            A_ub=np.vstack([limits, above]),
            b_ub=np.concatenate([left, np.zeros(count)]),
            bounds=[*((0.0, float(one)) for one in most[free]), (0.0, 2.0)],
            method="highs",
            options={"primal_feasibility_tolerance": _NEAR, "dual_feasibility_tolerance": _NEAR},
        )
        if found.status != 0:
            raise RuntimeError(f"HiGHS: {found.message}")
        least = float(found.x[-1])
        price = -found.ineqlin.marginals[len(passed) :]
        held = price > 1e-9
        # The minimum may be bound only by a cap, or by nothing that has a price.
        held |= most[free] <= least * (1 + 1e-9)
        if not held.any():
            held[:] = True
        rates[free[held]] = least
    return rates * unit


def largest_difference(usage: Usage, capacity: Floats) -> float:
    """Largest difference between rates by progressive filling and by linear programs, over the largest rate."""
    ours, _ = max_min(usage, capacity)
    theirs = by_linear_programs(usage, capacity)
    return float(np.max(np.abs(ours - theirs)) / max(float(np.max(theirs)), 1e-300))


def random_usage(seed: int, flows: int = 40, resources: int = 12) -> tuple[Usage, Floats]:
    """Flows through random resources with random shares, some with a cap, and capacities, some of them 0."""
    random = np.random.default_rng(seed)
    counts = random.integers(1, min(6, resources) + 1, flows)
    first = np.concatenate([[0], np.cumsum(counts)])
    passed = np.concatenate([random.choice(resources, n, replace=False) for n in counts])
    capacity = random.uniform(0.5, 2.0, resources) * (random.random(resources) > 0.05)
    cap = np.where(random.random(flows) < 0.3, random.uniform(0.01, 0.5, flows), np.inf)
    return Usage(first, passed, random.uniform(0.05, 1.0, len(passed)), cap), capacity
