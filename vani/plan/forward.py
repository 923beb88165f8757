"""Which job gets how many I/O nodes: from jobs and a pool to a plan (Bez et al., IPDPS 2021)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from vani.errors import InputError
from vani.models.forwarding import HELD_OUT, Scenario, spread
from vani.models.knapsack import IMPOSSIBLE, Items, Optima, largest_floor, optima
from vani.models.proportional import nearest_legal, rounded
from vani.plan.curves import Estimate, Offer, Option, offer_of, with_change_cost, with_shared_node
from vani.schema.advice import Expected
from vani.schema.plan import Allotment, ForwardSettings, Left, Outcome, Plan, PlanInput, Policy, PoolWorth
from vani.units import counted, format_share

if TYPE_CHECKING:
    from vani.schema.jobs import Jobs

__all__ = ["MOST_CELLS", "POLICIES", "forward"]

POLICIES: Final[tuple[Policy, ...]] = ("mckp", "static", "size", "process", "zero", "one", "oracle")

MOST_CELLS: Final = 100_000_000
"""Jobs times I/O nodes of what is solved at most: 200 MB."""
_FEW_CELLS: Final = 4_000_000
"""As far as pools beyond the one that is asked for are solved, too: some 20 ms."""
_LOGARITHM: Final = 1e11
"""Logarithms are counted in steps of 1e-11."""

Choice = Option | str
"""What a job gets, or why it gets nothing."""


@dataclass(frozen=True)
class _Asked:
    """The offers of all jobs, and what is asked of the pool."""

    offers: Sequence[Offer]
    settings: ForwardSettings
    shares_node: bool = False

    @property
    def pool(self) -> int:
        """I/O nodes that can be handed out to single jobs."""
        return self.settings.io_nodes - self.shares_node


def forward(
    jobs: Jobs,
    settings: ForwardSettings,
    *,
    scenarios: Sequence[Scenario],
    estimate: Estimate = "near",
    current: Plan | None = None,
    compare: bool = False,
    inputs: Sequence[PlanInput] = (),
    where: str = "jobs",
    unlike: str | None = None,
    version: str = "",
) -> Plan:
    """Share the I/O nodes of a pool among jobs.

    Parameters
    ----------
    scenarios
        Curves that stand for those of jobs that have none.
    current
        The plan in force; a change of a job's number costs `settings.change_cost_s` seconds of its I/O.
    compare
        Also what every other policy gives.
    where
        What errors call the document of jobs.
    unlike
        What has to be said of estimates from these curves.

    Raises
    ------
    InputError
        Two jobs of one name, a curve without a number that its job can have, or no way to serve all jobs: names the
        smallest pool that works.
    """
    _refuse_twins(jobs, where)
    now = {one.name: one.io_nodes for one in current.jobs if not one.shared} if current is not None else {}
    offers = [
        with_change_cost(
            offer_of(job, scenarios, direct=settings.direct, estimate=estimate),
            now.get(job.name),
            settings.change_cost_s,
        )
        for job in jobs.jobs
    ]
    if len(offers) * (settings.io_nodes + 2) > MOST_CELLS:
        raise InputError(
            f"{len(offers):,} jobs times {settings.io_nodes:,} I/O nodes are more than can be solved "
            f"({MOST_CELLS:,})",
            todo="give a smaller pool, or fewer jobs",
        )
    asked = _Asked(offers, settings)
    solved: _Solved | None = None
    if settings.policy == "mckp":
        asked, solved = _solve_or_share(asked)
        chosen = solved.chosen
    else:
        chosen = _by_policy(settings.policy, asked)
    after = _outcome(settings.policy, asked, chosen)
    base = _by_current(offers, now) if current is not None else _by_policy("static", asked)
    before = _outcome("static" if current is None else "current", asked, base)
    return Plan(
        version=version,
        kind="forward",
        inputs=list(inputs),
        forward=settings,
        before=before,
        after=after,
        expected=_expected(base, chosen, before, after),
        jobs=[_allotment(asked, *pair, now) for pair in zip(offers, chosen, strict=True)],
        one_more=None if solved is None else _one_more(asked),
        pools=_pools(asked, solved),
        compared=_compared(asked, settings.policy, after) if compare else [],
        unplaced=[
            Left(name=offer.job.name, reason=found)
            for offer, found in zip(offers, chosen, strict=True)
            if isinstance(found, str)
        ],
        over_capacity=_over(after, settings),
        no_data=_no_data(offers, settings, current is not None),
        notes=_notes(asked, chosen, unlike),
    )


# --- policies -------------------------------------------------------------------------------------


def _by_policy(policy: Policy, asked: _Asked) -> list[Choice]:
    """What every policy but mckp gives; nothing keeps their sums within the pool."""
    ways: Mapping[str, Callable[[Offer], Choice]] = {
        "zero": lambda offer: _exactly(offer, 0),
        "one": lambda offer: _exactly(offer, 1),
        "oracle": _best,
    }
    if policy in ways:
        return [ways[policy](offer) for offer in asked.offers]
    return [_nearest(offer, number, asked) for offer, number in _wanted(policy, asked)]


def _wanted(policy: str, asked: _Asked) -> list[tuple[Offer, int]]:
    """I/O nodes in proportion to compute nodes or processes, before what a job can have is looked at."""
    settings = asked.settings
    sizes = [
        Fraction((offer.job.processes or offer.job.nodes) if policy == "process" else offer.job.nodes)
        for offer in asked.offers
    ]
    each = Fraction(settings.io_nodes) / sum(sizes)
    if policy == "static" and settings.nodes_per_io_node is not None:
        each = 1 / Fraction(settings.nodes_per_io_node)
    return [
        (offer, rounded(size * each, settings.rounding))
        for offer, size in zip(asked.offers, sizes, strict=True)
    ]


def _nearest(offer: Offer, wanted: int, asked: _Asked) -> Choice:
    numbers = offer.numbers(asked.settings.io_nodes)
    if not numbers:
        return f"every number of I/O nodes that it can have exceeds the pool of {asked.settings.io_nodes:,}"
    return offer.option(nearest_legal(wanted, numbers)) or "no such number"


def _exactly(offer: Offer, number: int) -> Choice:
    found = offer.option(number)
    if found is not None:
        return found
    return "no figure for direct access, or it is not allowed" if number == 0 else "no figure for 1 I/O node"


def _best(offer: Offer) -> Choice:
    known = [one for one in offer.options if one.rate is not None and not one.shared]
    # Without a figure nobody knows its best: the fewest.
    return max(known, key=lambda one: (one.rate or 0.0, -one.io_nodes)) if known else offer.options[0]


def _by_current(offers: Sequence[Offer], now: Mapping[str, int | None]) -> list[Choice]:
    found: list[Choice] = []
    for offer in offers:
        number = now.get(offer.job.name)
        if number is None:
            found.append("the plan in force does not have it")
        else:
            found.append(offer.option(number) or Option(number, None))
    return found


# --- the optimum ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Solved:
    """The optimum of the pool, and of every pool up to the largest that was solved."""

    chosen: list[Choice]
    options: Sequence[Sequence[Option]]
    optima: Optima


def _solve_or_share(asked: _Asked) -> tuple[_Asked, _Solved]:
    """The optimum; where not every job can have an I/O node of its own, with one that several share."""
    solved = _solve(asked, asked.pool)
    if solved is not None:
        return asked, solved
    settings = asked.settings
    if not settings.direct and settings.io_nodes:
        offers = [with_shared_node(offer, len(asked.offers)) for offer in asked.offers]
        sharing = _Asked(offers, settings, shares_node=True)
        solved = _solve(sharing, sharing.pool)
        if solved is not None:
            return sharing, solved
    jobs = counted(len(asked.offers), "job")
    raise InputError(
        f"{counted(settings.io_nodes, 'I/O node')} cannot "
        + (f"give {jobs} {settings.floor:g} of their own best each" if settings.floor else f"serve {jobs}"),
        where="--io-nodes",
        todo=f"the smallest pool that works has {_smallest_pool(asked):,}",
    )


def _solve(asked: _Asked, pool: int) -> _Solved | None:
    """The best choice for a pool; None where there is none.

    Jobs without figures get what static gives, and where that leaves others without any, as few as they can have.
    """
    for as_few in (False, True):
        found = _solve_with(asked, pool, _within_floor(asked, pool, as_few=as_few))
        if found is not None:
            return found
    return None


def _solve_with(asked: _Asked, pool: int, options: list[list[Option]]) -> _Solved | None:
    settings = asked.settings
    if not all(options):
        return None
    if settings.objective == "max-min":
        weights = [np.array([one.io_nodes for one in some]) for some in options]
        shares = [
            _shares(offer, some, asked.settings.io_nodes)
            for offer, some in zip(asked.offers, options, strict=True)
        ]
        least = largest_floor(weights, shares, pool)
        options = [
            [one for one, share in zip(some, of, strict=True) if share >= least]
            for some, of in zip(options, shares, strict=True)
        ]
        if not all(options):
            return None
    classes = [_items(some, settings.objective) for some in options]
    found = optima(classes, _farthest(asked, pool, options))
    numbers = found.at(pool)
    if numbers is None:
        return None
    return _Solved([some[n] for some, n in zip(options, numbers, strict=True)], options, found)


def _within_floor(asked: _Asked, pool: int, *, as_few: bool) -> list[list[Option]]:
    """What each job may choose from: what the floor lets; without figures its share by size, or the fewest."""
    settings = asked.settings
    by_size = _wanted("static", asked)
    found = []
    for offer, wanted in by_size:
        numbers = offer.numbers(pool)
        if offer.source == "none":
            number = nearest_legal(0 if as_few else wanted, numbers) if numbers else 0
            found.append([Option(number, None)] if numbers else [])
            continue
        # For larger pools, too, larger numbers are of interest.
        best = offer.best_of(settings.io_nodes) or 0.0
        found.append([one for one in offer.options if (one.rate or 0.0) >= settings.floor * best])
    return found


def _shares(
    offer: Offer, options: Sequence[Option], pool: int
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    best = offer.best_of(pool)
    if best is None:
        return np.ones(len(options))
    return np.array([(one.rate or 0.0) / best for one in options])


def _items(options: Sequence[Option], objective: str) -> Items:
    def value(one: Option) -> int:
        if one.net_rate is None:
            return 0
        if objective == "proportional":
            return round(math.log(one.net_rate) * _LOGARITHM)
        return round(one.net_rate)

    return Items(
        np.array([one.io_nodes for one in options], dtype=np.int64),
        np.array([value(one) for one in options], dtype=np.int64),
    )


def _farthest(asked: _Asked, pool: int, options: Sequence[Sequence[Option]]) -> int:
    """The largest pool to solve: one more than asked for, or all that can be used where that costs little."""
    most = sum(max(one.io_nodes for one in some) for some in options)
    return max(pool + 1, min(most, _FEW_CELLS // len(asked.offers)))


def _smallest_pool(asked: _Asked) -> int:
    """The smallest pool with which every job reaches the floor, one I/O node each at least where none is direct.

    What a job has alone grows with the pool, and with it what the floor asks for: the least pool that needs no more
    than itself is found from below.
    """
    pool = asked.settings.io_nodes
    while True:
        grown = replace(asked, settings=asked.settings.model_copy(update={"io_nodes": pool}))
        need = 0
        for offer, some in zip(asked.offers, _within_floor(grown, pool, as_few=True), strict=True):
            need += min((one.io_nodes for one in some), default=min(offer.numbers(1 << 62)))
        if need <= pool:
            return pool
        pool = need


def _one_more(asked: _Asked) -> float | None:
    """What one more I/O node adds to the sum of bandwidths."""
    settings = asked.settings
    larger = replace(asked, settings=settings.model_copy(update={"io_nodes": settings.io_nodes + 1}))
    found = _solve(larger, larger.pool)
    now = _solve(asked, asked.pool)
    if found is None or now is None:
        return None
    return max(0.0, _sum(found.chosen) - _sum(now.chosen))


def _pools(asked: _Asked, solved: _Solved | None) -> list[PoolWorth]:
    if solved is None or asked.settings.objective != "sum" or asked.shares_node:
        return []
    values = solved.optima.values
    possible = np.flatnonzero((values > IMPOSSIBLE) & (np.diff(values, prepend=IMPOSSIBLE) > 0))
    return [PoolWorth(io_nodes=int(n), bandwidth=float(values[n])) for n in possible]


# --- what is written ------------------------------------------------------------------------------


def _outcome(policy: Policy | str, asked: _Asked, chosen: Sequence[Choice]) -> Outcome:
    placed = [one for one in chosen if isinstance(one, Option)]
    used = sum(one.io_nodes for one in placed) + any(one.shared for one in placed)
    shares = [
        one.rate / best
        for offer, one in zip(asked.offers, chosen, strict=True)
        if isinstance(one, Option) and one.rate is not None
        if (best := offer.best_of(asked.settings.io_nodes))
    ]
    return Outcome.model_validate(
        {
            "policy": policy,
            "io_nodes": used,
            "over": max(0, used - asked.settings.io_nodes),
            "bandwidth": _sum(chosen),
            "least_share": min(shares, default=None),
            "no_figure": sum(not isinstance(one, Option) or one.rate is None for one in chosen),
        }
    )


def _compared(asked: _Asked, policy: Policy, after: Outcome) -> list[Outcome]:
    found = []
    for other in POLICIES:
        if other == policy:
            found.append(after)
        elif other == "mckp":
            best = _solve(asked, asked.pool)
            found += [] if best is None else [_outcome(other, asked, best.chosen)]
        else:
            found.append(_outcome(other, asked, _by_policy(other, asked)))
    return found


def _allotment(asked: _Asked, offer: Offer, found: Choice, now: Mapping[str, int | None]) -> Allotment:
    one = found if isinstance(found, Option) else None
    rate = None if one is None else one.net_rate
    best = offer.best_of(asked.settings.io_nodes)
    known = one is not None and rate is not None and one.width > 0
    low, high = spread(one.width) if one is not None and known else (1.0, 1.0)
    return Allotment(
        name=offer.job.name,
        nodes=offer.job.nodes,
        io_nodes=None if one is None else one.io_nodes,
        shared=one is not None and one.shared,
        bandwidth=rate,
        own_best=best,
        share=None if one is None or one.rate is None or best is None else one.rate / best,
        before=now.get(offer.job.name),
        source=offer.source,
        low=rate * low if known and rate is not None else None,
        high=rate * high if known and rate is not None else None,
    )


def _expected(
    base: Sequence[Choice], chosen: Sequence[Choice], before: Outcome, after: Outcome
) -> Expected | None:
    """What the plan changes, where both sums are of the same jobs."""
    if [_rate(one) is None for one in base] != [_rate(one) is None for one in chosen] or not before.bandwidth:
        return None
    speedup = after.bandwidth / before.bandwidth
    width = math.hypot(_width(base), _width(chosen))
    low, high = spread(width)
    return Expected(
        metric="sum_of_bandwidths",
        before=before.bandwidth,
        after=after.bandwidth,
        speedup=speedup,
        low=speedup * low if width else None,
        high=speedup * high if width else None,
        method=f"sum over the jobs with a figure; before: {before.policy}"
        + ("" if width else "; no range: the curves tell no scatter"),
    )


def _rate(one: Choice) -> float | None:
    return one.net_rate if isinstance(one, Option) else None


def _sum(chosen: Sequence[Choice]) -> float:
    return math.fsum(rate for one in chosen if (rate := _rate(one)) is not None)


def _width(chosen: Sequence[Choice]) -> float:
    """Relative scatter of a sum of independent rates."""
    total = _sum(chosen)
    scatter = [rate * one.width for one in chosen if isinstance(one, Option) and (rate := one.net_rate)]
    return math.hypot(*scatter) / total if total else 0.0


def _over(after: Outcome, settings: ForwardSettings) -> list[Left]:
    if not after.over:
        return []
    why = {
        "oracle": "oracle gives every job its best and asks for no pool",
        "one": "one gives every job an I/O node, however many there are",
    }.get(after.policy, f"{after.policy} rounds every job's share by itself")
    return [
        Left(
            name="pool",
            reason=f"{after.io_nodes:,} I/O nodes are handed out of {settings.io_nodes:,}: {why}",
        )
    ]


def _no_data(offers: Sequence[Offer], settings: ForwardSettings, is_current: bool) -> list[Left]:
    found = []
    for offer in offers:
        if offer.lack is not None:
            given = (
                "; it gets what static gives" if offer.source == "none" and settings.policy == "mckp" else ""
            )
            found.append(Left(name=offer.job.name, reason=offer.lack + given))
        if settings.policy == "process" and offer.job.processes is None:
            found.append(Left(name=offer.job.name, reason="no number of processes: its nodes are counted"))
        if settings.change_cost_s and is_current and not offer.job.bytes:
            found.append(
                Left(name=offer.job.name, reason="no bytes: a change of its number costs it nothing")
            )
    return found


def _notes(asked: _Asked, chosen: Sequence[Choice], unlike: str | None) -> list[str]:
    notes = []
    sharing = [one for one in chosen if isinstance(one, Option) and one.shared]
    if asked.shares_node:
        notes.append(
            f"{counted(len(sharing), 'job')} share one I/O node: each is reckoned with 1/{len(asked.offers)} of what "
            "the node gives it alone (section 3.1), which is little"
        )
    estimated = [one for one in asked.offers if one.source == "estimated"]
    if estimated:
        notes.append(
            f"bandwidths of {counted(len(estimated), 'job')} are estimated; patterns that were held out scatter by "
            f"{format_share(HELD_OUT)} beyond their repetitions"
        )
        if unlike:
            notes.append(unlike)
    return notes


def _refuse_twins(jobs: Jobs, where: str) -> None:
    seen = set()
    for job in jobs.jobs:
        if job.name in seen:
            raise InputError(f"two jobs are named {job.name!r}", where=where, todo="give each its own name")
        seen.add(job.name)
