"""Allotments of a pool's I/O nodes: by the policies of Bez et al. (IPDPS 2021), and the optimum."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from vani.centre.plan import io_node_shares
from vani.centre.plan.curves import Offer, Option, with_shared_node
from vani.centre.plan.schema.plans import ForwardSettings, Policy, PoolWorth
from vani.errors import InputError
from vani.units import counted

# Allotments of I/O nodes by every policy except the optimum.

_MAX_IO_NODES: Final = 10_000_000

Choice = Option | str
"""The option that a job gets, or why it gets none."""


@dataclass(frozen=True)
class PoolRequest:
    """The offers of all jobs, and the settings of the pool."""

    offers: Sequence[Offer]
    settings: ForwardSettings
    shares_node: bool = False

    @property
    def pool(self) -> int:
        """Number of I/O nodes that can be assigned to single jobs."""
        return self.settings.io_nodes - self.shares_node

    @property
    def has_weights(self) -> bool:
        """True if the bandwidth of some jobs counts more than that of others."""
        return len({offer.job.weight for offer in self.offers}) > 1


def by_policy(policy: Policy, request: PoolRequest) -> list[Choice]:
    """Allotments by any policy except mckp. Their sum may exceed the pool."""
    if policy == "oracle":
        return [_best(offer) for offer in request.offers]
    if policy in ("zero", "one"):
        return [_exactly(offer, int(policy == "one"), direct=request.settings.direct) for offer in request.offers]
    return [_nearest(offer, number, request) for offer, number in shares_by_size(policy, request)]


def shares_by_size(policy: str, request: PoolRequest) -> list[tuple[Offer, int]]:
    """I/O nodes of each job in proportion to compute nodes or processes, even if the job cannot have that number."""
    settings = request.settings
    sizes = [
        Fraction((offer.job.processes or offer.job.nodes) if policy == "process" else offer.job.nodes)
        for offer in request.offers
    ]
    if policy == "static" and settings.nodes_per_io_node is not None:
        # 100 / 12 is not a binary fraction, and an inexact half would not be rounded up.
        each = 1 / Fraction(settings.nodes_per_io_node).limit_denominator(_MAX_IO_NODES)
    else:
        each = Fraction(settings.io_nodes) / sum(sizes)
    return [
        (offer, io_node_shares.rounded(size * each, settings.rounding))
        for offer, size in zip(request.offers, sizes, strict=True)
    ]


def _nearest(offer: Offer, wanted: int, request: PoolRequest) -> Choice:
    numbers = offer.numbers(request.settings.io_nodes)
    if not numbers:
        return f"all numbers of I/O nodes that it can have exceed the pool of {request.settings.io_nodes:,}"
    return offer.option(io_node_shares.nearest_legal(wanted, numbers)) or "no such number"


def _exactly(offer: Offer, number: int, *, direct: bool) -> Choice:
    exactly = offer.option(number)
    if exactly is not None:
        return exactly
    if number == 0:
        return "no figure for direct access" if direct else "direct access is not allowed"
    return "no figure for 1 I/O node"


def _best(offer: Offer) -> Choice:
    known = [option for option in offer.options if option.rate is not None and not option.shared]
    # Without figures the best is unknown: take the fewest.
    return max(known, key=lambda option: (option.rate or 0.0, -option.io_nodes), default=offer.options[0])


def by_current(offers: Sequence[Offer], now: Mapping[str, int | None]) -> list[Choice]:
    numbers = [(offer, now.get(offer.job.name)) for offer in offers]
    return [
        "the current plan does not have it" if number is None else offer.option(number) or Option(number, None)
        for offer, number in numbers
    ]


def rate_of(choice: Choice) -> float | None:
    """The rate of a choice; None for a job without a figure."""
    return choice.rate if isinstance(choice, Option) else None


def sum_of(chosen: Sequence[Choice]) -> float:
    """Sum of rates over all jobs with a figure, in bytes per second."""
    return math.fsum(rate for choice in chosen if (rate := rate_of(choice)) is not None)


# The optimal use of a pool of I/O nodes: what mckp gives each job, and the worth of other pools.

_MAX_CELLS: Final = 100_000_000
"""Largest problem to solve, as jobs times I/O nodes or ten times a job's options times I/O nodes: about 2 GB."""
_FEW_CELLS: Final = 400_000
"""Largest problem, jobs times I/O nodes, up to which larger pools are solved, too: about 20 ms."""
_LOGARITHM: Final = 1e11
"""Logarithms are integers in units of 1e-11."""


@dataclass(frozen=True)
class Solved:
    """The optimum for the pool, and the tables for every pool up to the largest solved."""

    chosen: list[Choice]
    options: Sequence[Sequence[Option]]
    optima: io_node_shares.Optima


def solve_or_share(request: PoolRequest, *, larger_pools: bool = True) -> tuple[PoolRequest, Solved]:
    """The optimum. If not every job can have an I/O node of its own, one I/O node is shared by several.

    Without `larger_pools`, pools larger than the requested one, which take most of the time, are not solved.

    Raises
    ------
    InputError
        The pool cannot serve all jobs. The message names the smallest pool that can.
    """
    solved = solve(request, request.pool, larger_pools=larger_pools)
    if solved is not None:
        return request, solved
    settings = request.settings
    if not settings.direct and settings.io_nodes:
        offers = [with_shared_node(offer, len(request.offers)) for offer in request.offers]
        sharing = PoolRequest(offers, settings, shares_node=True)
        solved = solve(sharing, sharing.pool, larger_pools=larger_pools)
        if solved is not None:
            return sharing, solved
    jobs = counted(len(request.offers), "job")
    raise InputError(
        f"{counted(settings.io_nodes, 'I/O node')} cannot "
        + (f"give {jobs} {settings.floor:g} of their own best each" if settings.floor else f"serve {jobs}"),
        where="--io-nodes",
        todo=f"the smallest pool that works has {_smallest_pool(request):,}",
    )


def solve(request: PoolRequest, pool: int, *, larger_pools: bool = True) -> Solved | None:
    """The best choice for a pool; None if there is none.

    Jobs without figures get what STATIC gives, or, if that leaves too few for the others, as few as they can have.
    """
    for as_few in (False, True):
        options = _within_floor(request, pool, as_few=as_few)
        solved = _solve_with(request, pool, options, larger_pools=larger_pools)
        if solved is not None:
            return solved
    return None


def _solve_with(request: PoolRequest, pool: int, options: list[list[Option]], *, larger_pools: bool) -> Solved | None:
    settings = request.settings
    if not all(options):
        return None
    if settings.objective == "max-min":
        weights = [np.array([option.io_nodes for option in choices]) for choices in options]
        shares = [
            _shares(offer, choices, request.settings.io_nodes)
            for offer, choices in zip(request.offers, options, strict=True)
        ]
        least = io_node_shares.largest_floor(weights, shares, pool)
        options = [
            [option for option, share in zip(choices, job_shares, strict=True) if share >= least]
            for choices, job_shares in zip(options, shares, strict=True)
        ]
        if not all(options):
            return None
    # Normalised weights keep the sums of values below 2^61.
    largest = max((offer.job.weight for offer in request.offers), default=1.0)
    classes = [
        _items(choices, settings.objective, offer.job.weight / largest)
        for offer, choices in zip(request.offers, options, strict=True)
    ]
    capacity = _farthest(request, pool, options) if larger_pools else pool
    cells = max(len(options), 10 * max(map(len, options))) * (capacity + 1)
    if cells > _MAX_CELLS:
        what = f"{counted(len(options), 'job')} that can use {capacity:,} I/O nodes are more than can be solved"
        raise InputError(what, where="--io-nodes", todo="give a smaller pool, or fewer jobs")
    tables = io_node_shares.optima(classes, capacity)
    numbers = tables.at(pool)
    if numbers is None:
        return None
    return Solved([choices[n] for choices, n in zip(options, numbers, strict=True)], options, tables)


def _within_floor(request: PoolRequest, pool: int, *, as_few: bool) -> list[list[Option]]:
    """Options of each job that the floor allows. Without figures, the job's share by size or the fewest."""
    settings = request.settings
    is_known = all(offer.source != "none" for offer in request.offers)
    # Exact fractions take time, and only jobs without figures need a share by size.
    by_size = [(offer, 0) for offer in request.offers] if is_known else shares_by_size("static", request)
    within_floor = []
    for offer, wanted in by_size:
        if offer.source == "none":
            numbers = offer.numbers(pool)
            number = io_node_shares.nearest_legal(0 if as_few else wanted, numbers) if numbers else 0
            within_floor.append([Option(number, None)] if numbers else [])
            continue
        # Numbers beyond the pool stay, because larger pools are solved, too.
        best = offer.best_of(settings.io_nodes) or 0.0
        within_floor.append([option for option in offer.options if (option.rate or 0.0) >= settings.floor * best])
    return within_floor


def _shares(offer: Offer, options: Sequence[Option], pool: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    best = offer.best_of(pool)
    if best is None:
        return np.ones(len(options))
    return np.array([(option.rate or 0.0) / best for option in options])


def _items(options: Sequence[Option], objective: str, weight: float) -> io_node_shares.Items:
    def value(option: Option) -> int:
        if option.rate is None:
            return 0
        if objective == "proportional":
            return round(weight * math.log(option.rate) * _LOGARITHM)
        return round(weight * option.rate)

    return io_node_shares.Items(
        np.array([option.io_nodes for option in options], dtype=np.int64),
        np.array([value(option) for option in options], dtype=np.int64),
    )


def _farthest(request: PoolRequest, pool: int, options: Sequence[Sequence[Option]]) -> int:
    """The largest pool to solve: one more than requested, or as many as jobs can use if that takes little time."""
    most = sum(max(option.io_nodes for option in choices) for choices in options)
    return min(most, max(pool + 1, _FEW_CELLS // len(request.offers)))


def _smallest_pool(request: PoolRequest) -> int:
    """The smallest pool with which every job reaches the floor, with at least one I/O node each unless direct.

    A job's own best grows with the pool, and the floor with it, so the search starts from below.
    """
    pool = request.settings.io_nodes
    while True:
        grown = replace(request, settings=request.settings.model_copy(update={"io_nodes": pool}))
        need = 0
        for offer, choices in zip(request.offers, _within_floor(grown, pool, as_few=True), strict=True):
            need += min((option.io_nodes for option in choices), default=min(offer.numbers(1 << 62)))
        if need <= pool:
            return pool
        pool = need


def one_more(request: PoolRequest, now: Solved) -> float | None:
    """Bandwidth that one more I/O node adds to the sum; `now` is the optimum for the pool."""

    settings = request.settings
    if settings.objective == "sum" and not settings.floor and not request.shares_node and not request.has_weights:
        values, last = now.optima.values, len(now.optima.values) - 1
        return float(values[min(request.pool + 1, last)] - values[min(request.pool, last)])
    larger = replace(request, settings=settings.model_copy(update={"io_nodes": settings.io_nodes + 1}))
    solved = solve(larger, larger.pool)
    return None if solved is None else max(0.0, sum_of(solved.chosen) - sum_of(now.chosen))


def pools(request: PoolRequest, solved: Solved | None) -> list[PoolWorth]:
    if solved is None or request.settings.objective != "sum" or request.shares_node or request.has_weights:
        return []
    values = solved.optima.values
    more = np.diff(values, prepend=io_node_shares.IMPOSSIBLE) > 0
    possible = np.flatnonzero((values > io_node_shares.IMPOSSIBLE) & more)
    return [PoolWorth(io_nodes=int(n), bandwidth=float(values[n])) for n in possible]
