"""A plan that shares a pool of I/O nodes among jobs (Bez et al., IPDPS 2021)."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from vani.centre.plan.curves import Estimate, Offer, Option, notes_of_estimates, offer_of
from vani.centre.plan.optimum import one_more, pools, solve, solve_or_share
from vani.centre.plan.policies import Choice, PoolRequest, by_current, by_policy, rate_of, sum_of
from vani.centre.plan.schema import Allotment, ForwardPlan, ForwardSettings, Left, Outcome, PlanInput, Policy
from vani.models.forwarding import Scenario, spread
from vani.schema.advice import Expected
from vani.units import counted

if TYPE_CHECKING:
    from vani.centre.plan.schema.jobs import Jobs

POLICIES: Final[tuple[Policy, ...]] = ("mckp", "static", "process", "zero", "one", "oracle")


def forward(
    jobs: Jobs,
    settings: ForwardSettings,
    *,
    scenarios: Sequence[Scenario],
    estimate: Estimate = "near",
    current: ForwardPlan | None = None,
    forwarded: Collection[str] = (),
    compare: bool = False,
    inputs: Sequence[PlanInput] = (),
    where: str = "jobs",
    unlike: str | None = None,
    version: str = "",
) -> ForwardPlan:
    """Share the I/O nodes of a pool among jobs.

    Parameters
    ----------
    scenarios
        Curves for jobs without one.
    current
        The current plan, with which the new one is compared.
    forwarded
        Names of jobs that already run behind I/O nodes and cannot go back to direct access.
    compare
        Also compute the outcome of every other policy.
    where
        Name of the jobs document in errors.
    unlike
        A note on estimates from these curves.

    Raises
    ------
    InputError
        Two jobs have the same name, a curve has no number that its job can have, or the pool cannot serve all jobs. In
        the last case the message names the smallest pool that can.
    """
    jobs.refuse_twins(where)
    now = {job.name: job.io_nodes for job in current.jobs if not job.shared} if current is not None else {}
    offers = [
        offer_of(job, scenarios, direct=settings.direct, estimate=estimate, any_number=settings.any_number)
        for job in jobs.jobs
    ]
    offers = [_without_direct(offer) if offer.job.name in forwarded else offer for offer in offers]
    request = PoolRequest(offers, settings)
    solved = None
    if settings.policy == "mckp":
        request, solved = solve_or_share(request)
        chosen = solved.chosen
    else:
        chosen = by_policy(settings.policy, request)
    after = _outcome(settings.policy, request, chosen)
    base = by_current(offers, now) if current is not None else by_policy("static", request)
    before = _outcome("static" if current is None else "current", request, base)
    return ForwardPlan(
        version=version,
        inputs=list(inputs),
        forward=settings,
        before=before,
        after=after,
        expected=_expected(base, chosen, before, after),
        jobs=[_allotment(request, *pair, now) for pair in zip(offers, chosen, strict=True)],
        one_more=None if solved is None else one_more(request, solved),
        pools=pools(request, solved),
        compared=_compared(request, settings.policy, after) if compare else [],
        unplaced=[
            Left(name=offer.job.name, reason=choice)
            for offer, choice in zip(offers, chosen, strict=True)
            if isinstance(choice, str)
        ],
        over_capacity=_over(after, settings),
        no_data=_no_data(offers, settings),
        notes=_notes(request, chosen, unlike),
    )


def _without_direct(offer: Offer) -> Offer:
    behind_nodes = tuple(option for option in offer.options if option.io_nodes)
    return replace(offer, options=behind_nodes) if behind_nodes else offer


def _outcome(policy: Policy | str, request: PoolRequest, chosen: Sequence[Choice]) -> Outcome:
    placed = [choice for choice in chosen if isinstance(choice, Option)]
    used = sum(option.io_nodes for option in placed) + any(option.shared for option in placed)
    shares = [
        choice.rate / best
        for offer, choice in zip(request.offers, chosen, strict=True)
        if isinstance(choice, Option) and choice.rate is not None
        if (best := offer.best_of(request.settings.io_nodes))
    ]
    return Outcome.model_validate(
        {
            "policy": policy,
            "io_nodes": used,
            "over": max(0, used - request.settings.io_nodes),
            "bandwidth": sum_of(chosen),
            "least_share": min(shares, default=None),
            "no_figure": sum(not isinstance(choice, Option) or choice.rate is None for choice in chosen),
        }
    )


def _compared(request: PoolRequest, policy: Policy, after: Outcome) -> list[Outcome]:
    compared = []
    for other in POLICIES:
        if other == policy:
            compared.append(after)
        elif other == "mckp":
            best = solve(request, request.pool)
            compared += [] if best is None else [_outcome(other, request, best.chosen)]
        else:
            compared.append(_outcome(other, request, by_policy(other, request)))
    return compared


def _allotment(
    request: PoolRequest, offer: Offer, choice: Choice, now: Mapping[str, int | None]
) -> Allotment:
    option = choice if isinstance(choice, Option) else None
    rate = None if option is None else option.rate
    best = offer.best_of(request.settings.io_nodes)
    known = option is not None and rate is not None and option.width > 0
    low, high = spread(option.width) if option is not None and known else (1.0, 1.0)
    return Allotment(
        name=offer.job.name,
        nodes=offer.job.nodes,
        io_nodes=None if option is None else option.io_nodes,
        shared=option is not None and option.shared,
        bandwidth=rate,
        own_best=best,
        share=None if option is None or option.rate is None or best is None else option.rate / best,
        before=now.get(offer.job.name),
        source=offer.source,
        low=rate * low if known and rate is not None else None,
        high=rate * high if known and rate is not None else None,
    )


def _expected(
    base: Sequence[Choice], chosen: Sequence[Choice], before: Outcome, after: Outcome
) -> Expected | None:
    """Speed-up with the plan; None if the two sums are over different jobs."""
    if [rate_of(choice) is None for choice in base] != [
        rate_of(choice) is None for choice in chosen
    ] or before.bandwidth < 1:
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
        + ("" if width else "; no range: the curves have no scatter"),
    )


def _width(chosen: Sequence[Choice]) -> float:
    """Relative scatter of a sum of independent rates."""
    total = sum_of(chosen)
    scatter = [
        rate * choice.width for choice in chosen if isinstance(choice, Option) and (rate := choice.rate)
    ]
    return math.hypot(*scatter) / total if total else 0.0


def _over(after: Outcome, settings: ForwardSettings) -> list[Left]:
    if not after.over:
        return []
    why = {
        "oracle": "oracle gives every job its best and needs no pool",
        "one": "one gives every job an I/O node, however many there are",
    }.get(after.policy, f"{after.policy} rounds every job's share by itself")
    return [
        Left(
            name="pool",
            reason=f"{after.io_nodes:,} I/O nodes are assigned of {settings.io_nodes:,}: {why}",
        )
    ]


def _no_data(offers: Sequence[Offer], settings: ForwardSettings) -> list[Left]:
    no_data = []
    for offer in offers:
        if offer.lack is not None:
            given = (
                "; it gets as many as by static" if offer.source == "none" and settings.policy == "mckp" else ""
            )
            no_data.append(Left(name=offer.job.name, reason=offer.lack + given))
        if settings.policy == "process" and offer.job.processes is None:
            no_data.append(Left(name=offer.job.name, reason="no number of processes: its number of nodes is used"))
    return no_data


def _notes(request: PoolRequest, chosen: Sequence[Choice], unlike: str | None) -> list[str]:
    notes = []
    sharing = [choice for choice in chosen if isinstance(choice, Option) and choice.shared]
    if request.shares_node:
        notes.append(
            f"{counted(len(sharing), 'job')} share one I/O node: each gets 1/{len(request.offers)} of the rate "
            "it has alone (section 3.1), a low estimate"
        )
    return [*notes, *notes_of_estimates(request.offers, unlike)]
