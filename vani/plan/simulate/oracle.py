"""Max-min fair rates by another way: a sequence of linear programs, solved by HiGHS."""

from __future__ import annotations

from types import ModuleType
from typing import Final

import numpy as np

from vani.errors import InputError
from vani.plan.simulate.rates import Floats, Usage

__all__ = ["by_linear_programs", "solver"]

_NEAR: Final = 1e-10
"""The least that HiGHS takes."""


def solver() -> ModuleType:
    """`scipy.optimize`.

    Raises
    ------
    InputError
        It is not installed.
    """
    try:
        from scipy import optimize  # noqa: PLC0415 - an extra, and slow to load
    except ImportError:
        raise InputError(
            "linear programs need scipy, which is not installed", todo="pip install 'vani-io[plan]'"
        ) from None
    return optimize  # type: ignore[no-any-return]


def by_linear_programs(usage: Usage, capacity: Floats) -> Floats:
    """Rates, shape (flows,): the least of all is made as large as possible, then the least of the rest, and so on.

    Whoever has the least in each solution (its bound has a price above 0) has reached what it can have, and is
    held there in the next one.
    """
    optimize = solver()
    flows = len(usage.first) - 1
    lengths = np.diff(usage.first)
    if (usage.cap[lengths == 0] == np.inf).any():
        raise ValueError("a flow through nothing has no rate")
    owner = np.repeat(np.arange(flows), lengths)
    passed, row = np.unique(usage.resource, return_inverse=True)
    # In units in which the largest rate that a flow could have alone is 1.
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
        # Variables: rates of those not held yet, then the least of them, which is maximised.
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
        # The least may be bound by a cap alone, or by nothing that has a price.
        held |= most[free] <= least * (1 + 1e-9)
        if not held.any():
            held[:] = True
        rates[free[held]] = least
    return rates * unit
