"""Options of a job: numbers of I/O nodes with their bandwidths, from its own curve or those near its pattern."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

from vani.errors import InputError
from vani.models import forwarding
from vani.models.forwarding import HELD_OUT, Pattern, Rate, Scenario
from vani.schema.jobs import CurveItem
from vani.units import counted, format_share

if TYPE_CHECKING:
    from vani.schema.jobs import PlannedJob

__all__ = [
    "Estimate",
    "Offer",
    "Option",
    "curve_for",
    "divisors",
    "notes_of_estimates",
    "offer_of",
    "with_change_cost",
    "with_shared_node",
]

Estimate = Literal["near", "nearest", "none"]
Legal = Callable[[Iterable[int]], list[int]]
"""Those of some numbers of I/O nodes that a job can have."""

_MOST_TIMES: Final = 4
_SCALED: Final = 0.14
"""Standard deviation of ln(bandwidth / scaled bandwidth) of those pairs."""
_MOST_OFFERED: Final = 1024

_ALL: Final = 1.0
"""A regret that no number exceeds: a plan needs figures of all numbers, not one that is sure to be good."""

_MOST_DEVIATION: Final = 10
"""Times the mean: n figures above 0 have a standard deviation of at most sqrt(n - 1) times theirs."""


@dataclass(frozen=True)
class Option:
    """One number of I/O nodes; `rate` in bytes per second, None without a figure.

    `width` is the standard deviation of ln(rate), 0 where it is not known; `cost` the share of the rate that a change
    to this number takes.
    """

    io_nodes: int
    rate: float | None
    width: float = 0.0
    shared: bool = False
    cost: float = 0.0

    @property
    def net_rate(self) -> float | None:
        """The rate after what a change takes."""
        return None if self.rate is None else self.rate * (1 - self.cost)


@dataclass(frozen=True)
class Offer:
    """All that one job can have, by number of I/O nodes, and what that rests on.

    `lack` names the missing figure, None where the curve was measured.
    """

    job: PlannedJob
    options: tuple[Option, ...]
    source: Literal["measured", "estimated", "none"]
    lack: str | None = None

    def best_of(self, pool: int) -> float | None:
        """Bandwidth of the job alone with the pool: what it would choose."""
        own = [option for option in self.options if not option.shared]
        fits = [option for option in own if option.io_nodes <= pool] or own[:1]
        rates = [fit.rate for fit in fits if fit.rate is not None]
        return max(rates, default=None)

    def numbers(self, pool: int) -> list[int]:
        """I/O nodes of its own that it can have of a pool."""
        return [option.io_nodes for option in self.options if option.io_nodes <= pool and not option.shared]

    def option(self, io_nodes: int) -> Option | None:
        """The option with so many I/O nodes of its own; None where it has none."""
        return next(
            (option for option in self.options if option.io_nodes == io_nodes and not option.shared), None
        )


def curve_for(job: PlannedJob) -> tuple[list[CurveItem], str | None]:
    """The curve of a job for the nodes that it has, and what that rests on; none where it is valid for other nodes
    only.

    With files of their own, k times the nodes with k times the I/O nodes reached 0.96 k times the bandwidth on
    MareNostrum 4 (median of 168 pairs, k = 2 and 4; 80 % are from 0.80 to 1.14). A shared file did not (medians 0.52
    and 0.24), and direct access neither (0.70 and 0.43).
    """
    if job.curve is None or job.curve_nodes in {None, job.nodes}:
        return list(job.curve or ()), None
    measured = job.curve_nodes or job.nodes
    times, rest = divmod(job.nodes, measured)
    lack = f"its curve was measured on {measured:,} nodes, not {job.nodes:,}"
    own_files = job.pattern is not None and job.pattern.layout == "file_per_process"
    if rest or times > _MOST_TIMES or not own_files:
        return [], f"{lack}: only file-per-process patterns, on up to {_MOST_TIMES} times the nodes, are known to scale"
    items = [
        CurveItem(
            io_nodes=item.io_nodes * times,
            bandwidth=item.bandwidth * times,
            deviation=times * math.hypot(item.deviation, _SCALED * item.bandwidth),
        )
        for item in job.curve
        if item.io_nodes
    ]
    return items, f"{lack}: {times:,} times the I/O nodes and the bandwidth are assumed"


def offer_of(
    job: PlannedJob,
    scenarios: Sequence[Scenario],
    *,
    direct: bool,
    estimate: Estimate,
    any_number: bool = False,
) -> Offer:
    """Options of a job; without a figure, every legal number is offered, each without a rate.

    Parameters
    ----------
    any_number
        Also offer numbers that do not divide the job's nodes.

    Raises
    ------
    InputError
        Its curve has no number that it can have, or one number twice.
    """
    numbers = partial(forwarding.legal, job.nodes, direct=direct, any_number=any_number)
    curve, lack = curve_for(job)
    if curve:
        return replace(_measured(job, curve, numbers), lack=lack, source="measured" if lack is None else "estimated")
    if job.pattern is None or job.processes is None or estimate == "none":
        offer = _unknown(job, _missing(job, estimate), numbers)
    else:
        offer = _estimated(job, scenarios, numbers, estimate=estimate)
    return offer if lack is None else replace(offer, lack=f"{lack}; {offer.lack}")


def with_shared_node(offer: Offer, jobs: int) -> Offer:
    """Add the I/O node that jobs share: its bandwidth for this job alone, divided by all jobs that run."""
    option = offer.option(1)
    if option is None or option.rate is None:
        return offer
    shared = Option(0, option.rate / jobs, option.width, shared=True)
    return replace(offer, options=(shared, *offer.options))


def with_change_cost(offer: Offer, now: int | None, seconds: float) -> Offer:
    """Count the seconds that a change of its number takes from a job that still has bytes to move.

    Its net rate is then bytes / (bytes / rate + seconds).
    """
    size = offer.job.bytes
    if now is None or not size or not seconds:
        return offer

    def costing(option: Option) -> Option:
        if option.rate is None or (option.io_nodes == now and not option.shared):
            return option
        return replace(option, cost=seconds / (size / option.rate + seconds))

    return replace(offer, options=tuple(map(costing, offer.options)))


def divisors(nodes: int) -> list[int]:
    """All numbers that divide `nodes`, ascending."""
    small = [n for n in range(1, math.isqrt(nodes) + 1) if nodes % n == 0]
    return sorted({*small, *(nodes // n for n in small)})


def _measured(job: PlannedJob, curve: Sequence[CurveItem], legal: Legal) -> Offer:
    items = sorted(curve, key=lambda item: item.io_nodes)
    numbers = [item.io_nodes for item in items]
    again = next((a for a, b in pairwise(numbers) if a == b), None)
    if again is not None:
        raise InputError(
            f"its curve has two bandwidths for {again:,} I/O nodes", where=f"job {job.name}", todo="keep one"
        )
    for item in items:
        if item.deviation > _MOST_DEVIATION * item.bandwidth:
            raise InputError(
                f"its curve has a deviation of {item.deviation:g} B/s for {item.io_nodes:,} I/O nodes, where the "
                f"bandwidth is {item.bandwidth:g} B/s",
                where=f"job {job.name}",
                todo="give the standard deviation of the repetitions, or none",
            )
    allowed = set(legal(numbers))
    options = tuple(
        Option(item.io_nodes, item.bandwidth, item.deviation / item.bandwidth)
        for item in items
        if item.io_nodes in allowed
    )
    if not options:
        or_none = "0 or " if legal([0]) else ""
        raise InputError(
            f"its curve has none of the numbers of I/O nodes that it can have ({', '.join(map(str, numbers))})",
            where=f"job {job.name}",
            todo=f"measure it with {or_none}a number that divides its {job.nodes:,} nodes, or allow any number "
            "(--any-number)",
        )
    return Offer(job, options, "measured")


def _estimated(job: PlannedJob, scenarios: Sequence[Scenario], legal: Legal, *, estimate: Estimate) -> Offer:
    pattern = pattern_of(job)
    if pattern is None:
        return _unknown(job, "its pattern is not known", legal)
    offered = sorted({n for scenario in scenarios for n in scenario.curve})
    allowed = legal(offered)
    alike = [scenario for scenario in scenarios if scenario.pattern.kind == pattern.kind]
    if not alike:
        return _unknown(job, "no curve was measured for its direction, layout and order", legal)
    if estimate == "nearest":
        near, far = forwarding.nearest(pattern, alike)
        rates = {n: near.curve[n] for n in allowed if n in near.curve}
        lack = f"no measured curve: the curve of {_described(near.pattern)} is used, {far:.1f} doublings away"
    else:
        choice = forwarding.choose(pattern, alike, allowed, _ALL)
        if isinstance(choice, str):
            return _unknown(job, choice, legal)
        rates = dict(choice.rates)
        lack = (
            f"no measured curve: estimated from {len(choice.near)} near patterns, the nearest "
            f"{_described(choice.near[0].pattern)}, {choice.distance:.1f} doublings away"
        )
    return Offer(job, tuple(_options(rates)), "estimated", lack)


def _options(rates: dict[int, Rate]) -> Iterable[Option]:
    for number in sorted(rates):
        rate = rates[number]
        yield Option(number, rate.mean, math.hypot(rate.deviation / rate.mean, HELD_OUT))


def pattern_of(job: PlannedJob) -> Pattern | None:
    """The pattern of a job in the words of the model."""
    pattern = job.pattern
    if pattern is None or job.processes is None:
        return None
    layout: Literal["fpp", "shared"] = "shared" if pattern.layout == "shared" else "fpp"
    return Pattern(job.nodes, job.processes, layout, pattern.order, pattern.request, pattern.operation)


def _unknown(job: PlannedJob, why: str, legal: Legal) -> Offer:
    candidates = {*range(min(job.nodes, _MOST_OFFERED) + 1), *divisors(job.nodes)}
    return Offer(job, tuple(Option(number, None) for number in legal(candidates)), "none", why)


def _missing(job: PlannedJob, estimate: Estimate) -> str:
    if estimate == "none":
        return "no measured curve, and estimates were not requested"
    if job.pattern is not None:
        return "no measured curve, and its pattern has no number of processes"
    if job.profile is not None:
        return "no measured curve, and its profile has no pattern"
    return "no measured curve and no pattern"


def _described(pattern: Pattern) -> str:
    layout = "files of their own" if pattern.layout == "fpp" else f"a shared file, {pattern.order}"
    return f"{pattern.processes:,} processes on {pattern.nodes} nodes, {pattern.request:,} bytes at a time to {layout}"


def notes_of_estimates(offers: Sequence[Offer], unlike: str | None) -> list[str]:
    """Notes on the offers whose rates are estimated; `unlike`: how the machine differs from the curves' machine."""
    estimated = [offer for offer in offers if offer.source == "estimated"]
    if not estimated:
        return []
    note = (
        f"bandwidths of {counted(len(estimated), 'job')} are estimated; held-out patterns scatter by "
        f"{format_share(HELD_OUT)} beyond their repetitions"
    )
    return [note, unlike] if unlike else [note]
