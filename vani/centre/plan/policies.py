"""Allotments of I/O nodes by every policy except the optimum."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from vani.centre.plan.curves import Offer, Option
from vani.models.io_node_shares import nearest_legal, rounded

if TYPE_CHECKING:
    from vani.centre.plan.schema import ForwardSettings, Policy

_MOST_IO_NODES: Final = 10_000_000

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
    ways: Mapping[str, Callable[[Offer], Choice]] = {
        "zero": lambda offer: _exactly(offer, 0, direct=request.settings.direct),
        "one": lambda offer: _exactly(offer, 1, direct=request.settings.direct),
        "oracle": _best,
    }
    if policy in ways:
        return [ways[policy](offer) for offer in request.offers]
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
        each = 1 / Fraction(settings.nodes_per_io_node).limit_denominator(_MOST_IO_NODES)
    else:
        each = Fraction(settings.io_nodes) / sum(sizes)
    return [
        (offer, rounded(size * each, settings.rounding))
        for offer, size in zip(request.offers, sizes, strict=True)
    ]


def _nearest(offer: Offer, wanted: int, request: PoolRequest) -> Choice:
    numbers = offer.numbers(request.settings.io_nodes)
    if not numbers:
        return f"all numbers of I/O nodes that it can have exceed the pool of {request.settings.io_nodes:,}"
    return offer.option(nearest_legal(wanted, numbers)) or "no such number"


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
    return (
        max(known, key=lambda option: (option.rate or 0.0, -option.io_nodes)) if known else offer.options[0]
    )


def by_current(offers: Sequence[Offer], now: Mapping[str, int | None]) -> list[Choice]:
    choices: list[Choice] = []
    for offer in offers:
        number = now.get(offer.job.name)
        if number is None:
            choices.append("the current plan does not have it")
        else:
            choices.append(offer.option(number) or Option(number, None))
    return choices


def rate_of(choice: Choice) -> float | None:
    """The rate of a choice; None for a job without a figure."""
    return choice.rate if isinstance(choice, Option) else None


def sum_of(chosen: Sequence[Choice]) -> float:
    """Sum of rates over all jobs with a figure, in bytes per second."""
    return math.fsum(rate for choice in chosen if (rate := rate_of(choice)) is not None)
