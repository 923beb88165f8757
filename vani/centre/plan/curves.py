"""A job's options: numbers of I/O nodes with bandwidths, from its own curve or from curves near its pattern."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Final, Literal

from vani.centre.plan.schema.jobs import CurveItem, PlannedJob
from vani.centre.plan.schema.plans import Estimate
from vani.errors import InputError
from vani.models import forwarding
from vani.units import counted, format_share

Legal = Callable[[Iterable[int]], list[int]]
"""Filters numbers of I/O nodes to those that a job can have."""

_MAX_TIMES: Final = 4
_SCALED: Final = 0.14
"""Standard deviation of ln(bandwidth / scaled bandwidth) over the pairs in `curve_for`."""
_MAX_OFFERED: Final = 1024

_ALL: Final = 1.0
"""A regret that no number exceeds: a plan needs figures for all numbers, not one that is certain to be good."""

_MAX_DEVIATION: Final = 10
"""Largest deviation over the mean: n positive figures have at most sqrt(n - 1)."""


@dataclass(frozen=True)
class Option:
    """A number of I/O nodes and its `rate` in bytes per second, None if unknown.

    `width` is the standard deviation of ln(rate), 0 if unknown.
    """

    io_nodes: int
    rate: float | None
    width: float = 0.0
    shared: bool = False

@dataclass(frozen=True)
class Offer:
    """All options of a job and their source.

    `lack` names the missing figure; None if the curve was measured.
    """

    job: PlannedJob
    options: tuple[Option, ...]
    source: Literal["measured", "estimated", "none"]
    lack: str | None = None

    def best_of(self, pool: int) -> float | None:
        """Best bandwidth of the job if it had the whole pool to itself; None without figures."""
        own = [option for option in self.options if not option.shared]
        fits = [option for option in own if option.io_nodes <= pool] or own[:1]
        rates = [fit.rate for fit in fits if fit.rate is not None]
        return max(rates, default=None)

    def numbers(self, pool: int) -> list[int]:
        """Numbers of I/O nodes of its own that the job can get from a pool."""
        return [option.io_nodes for option in self.options if option.io_nodes <= pool and not option.shared]

    def option(self, io_nodes: int) -> Option | None:
        """The option with `io_nodes` I/O nodes of the job's own; None if there is none."""
        own = {option.io_nodes: option for option in self.options if not option.shared}
        return own.get(io_nodes)


def curve_for(job: PlannedJob) -> tuple[list[CurveItem], str | None]:
    """A job's curve, scaled to its number of nodes, and the assumption behind it; empty if it cannot be scaled.

    With a file per process, k times the nodes and I/O nodes reached 0.96 k times the bandwidth on MareNostrum 4
    (median of 168 pairs, k = 2 and 4; 80 % are from 0.80 to 1.14). Shared files do not scale like that (medians 0.52
    and 0.24), and neither does direct access (0.70 and 0.43).
    """
    if job.curve is None or job.curve_nodes in {None, job.nodes}:
        return list(job.curve or ()), None
    measured = job.curve_nodes or job.nodes
    times, rest = divmod(job.nodes, measured)
    lack = f"its curve was measured on {measured:,} nodes, not {job.nodes:,}"
    own_files = job.pattern is not None and job.pattern.layout == "file_per_process"
    if rest or times > _MAX_TIMES or not own_files:
        return [], f"{lack}: only file-per-process patterns, on up to {_MAX_TIMES} times the nodes, are known to scale"
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
    scenarios: Sequence[forwarding.Scenario],
    *,
    direct: bool,
    estimate: Estimate,
    any_number: bool = False,
) -> Offer:
    """Options of a job. Without any figures, every legal number is an option without a rate.

    Parameters
    ----------
    any_number
        Also offer numbers that do not divide the job's nodes.

    Raises
    ------
    InputError
        The job's curve has no number that the job can have, or has a number twice.
    """
    numbers = partial(forwarding.legal, job.nodes, direct=direct, any_number=any_number)
    curve, lack = curve_for(job)
    if curve:
        return replace(_measured(job, curve, numbers), lack=lack, source="measured" if lack is None else "estimated")
    pattern = pattern_of(job)
    if pattern is None or estimate == "none":
        offer = _unknown(job, _missing(job, estimate), numbers)
    else:
        offer = _estimated(job, pattern, scenarios, numbers, estimate=estimate)
    return offer if lack is None else replace(offer, lack=f"{lack}; {offer.lack}")


def with_shared_node(offer: Offer, jobs: int) -> Offer:
    """Add the option of a shared I/O node, with the job's rate on one I/O node divided by the number of jobs."""
    option = offer.option(1)
    if option is None or option.rate is None:
        return offer
    shared = Option(0, option.rate / jobs, option.width, shared=True)
    return replace(offer, options=(shared, *offer.options))


def divisors(nodes: int) -> list[int]:
    """All divisors of `nodes`, ascending."""
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
        if item.deviation > _MAX_DEVIATION * item.bandwidth:
            what = f"its curve has a deviation of {item.deviation:g} B/s for {item.io_nodes:,} I/O nodes, where the "
            what += f"bandwidth is {item.bandwidth:g} B/s"
            todo = "give the standard deviation of the repetitions, or none"
            raise InputError(what, where=f"job {job.name}", todo=todo)
    allowed = set(legal(numbers))
    options = tuple(
        Option(item.io_nodes, item.bandwidth, item.deviation / item.bandwidth)
        for item in items
        if item.io_nodes in allowed
    )
    if not options:
        or_none = "0 or " if legal([0]) else ""
        what = f"its curve has none of the numbers of I/O nodes that it can have ({', '.join(map(str, numbers))})"
        todo = f"measure it with {or_none}a number that divides its {job.nodes:,} nodes, or allow any number "
        todo += "(--any-number)"
        raise InputError(what, where=f"job {job.name}", todo=todo)
    return Offer(job, options, "measured")


def _estimated(
    job: PlannedJob, pattern: forwarding.Pattern, scenarios: Sequence[forwarding.Scenario], legal: Legal, *,
    estimate: Estimate,
) -> Offer:
    allowed = legal(sorted({n for scenario in scenarios for n in scenario.curve}))
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
    options = [
        Option(number, rate.mean, math.hypot(rate.deviation / rate.mean, forwarding.HELD_OUT))
        for number, rate in sorted(rates.items(), key=lambda item: item[0])
    ]
    return Offer(job, tuple(options), "estimated", lack)


def pattern_of(job: PlannedJob) -> forwarding.Pattern | None:
    """A job's pattern as a `Pattern` of the model; None if unknown."""
    pattern = job.pattern
    if pattern is None or job.processes is None:
        return None
    layout: Literal["fpp", "shared"] = "shared" if pattern.layout == "shared" else "fpp"
    return forwarding.Pattern(job.nodes, job.processes, layout, pattern.order, pattern.request, pattern.operation)


def _unknown(job: PlannedJob, why: str, legal: Legal) -> Offer:
    candidates = {*range(min(job.nodes, _MAX_OFFERED) + 1), *divisors(job.nodes)}
    return Offer(job, tuple(Option(number, None) for number in legal(candidates)), "none", why)


def _missing(job: PlannedJob, estimate: Estimate) -> str:
    if estimate == "none":
        return "no measured curve, and estimates were not requested"
    if job.pattern is not None:
        return "no measured curve, and its pattern has no number of processes"
    if job.profile is not None:
        return "no measured curve, and its profile has no pattern"
    return "no measured curve and no pattern"


def _described(pattern: forwarding.Pattern) -> str:
    layout = "files of their own" if pattern.layout == "fpp" else f"a shared file, {pattern.order}"
    return f"{pattern.processes:,} processes on {pattern.nodes} nodes, {pattern.request:,} bytes at a time to {layout}"


def notes_of_estimates(offers: Sequence[Offer], unlike: str | None) -> list[str]:
    """Notes on estimated rates. `unlike` states how the machine differs from the one that the curves are from."""
    estimated = [offer for offer in offers if offer.source == "estimated"]
    if not estimated:
        return []
    note = (
        f"bandwidths of {counted(len(estimated), 'job')} are estimated; held-out patterns scatter by "
        f"{format_share(forwarding.HELD_OUT)} beyond their repetitions"
    )
    return [note, unlike] if unlike else [note]
