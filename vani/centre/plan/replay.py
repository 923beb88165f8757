"""Replay of a job queue, with a pool of I/O nodes shared again at each change (Bez et al., section 5.3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from vani.centre.plan.curves import (
    Estimate,
    Offer,
    Option,
    notes_of_estimates,
    offer_of,
    pattern_of,
)
from vani.centre.plan.forward import POLICIES
from vani.centre.plan.optimum import solve_or_share
from vani.centre.plan.policies import Choice, PoolRequest, by_policy
from vani.centre.plan.queue import LONGEST, Life, Replayed, Share, replayed
from vani.centre.plan.schema import (
    ForwardSettings,
    JobPeriod,
    Left,
    PlanInput,
    Policy,
    QueuedJob,
    QueueOutcome,
    ReplayPlan,
)
from vani.errors import InputError
from vani.models.forwarding import Scenario
from vani.schema.advice import Expected
from vani.units import counted, format_seconds

if TYPE_CHECKING:
    from vani.centre.plan.schema.jobs import Jobs, PlannedJob


def replay(
    jobs: Jobs,
    settings: ForwardSettings,
    *,
    nodes: int,
    poll_s: float,
    scenarios: Sequence[Scenario],
    estimate: Estimate = "near",
    compare: bool = False,
    inputs: Sequence[PlanInput] = (),
    where: str = "jobs",
    unlike: str | None = None,
    version: str = "",
) -> ReplayPlan:
    """Replay the jobs as a strict FIFO queue on `nodes` compute nodes. See `forward` for the other parameters.

    Raises
    ------
    InputError
        Two jobs have the same name; a job is larger than the machine, has no bytes or no bandwidth, or would not end;
        or the policy or the pool cannot serve the jobs running at some moment.
    """
    jobs.refuse_twins(where)
    if settings.nodes_per_io_node is None and settings.io_nodes:
        settings = settings.model_copy(update={"nodes_per_io_node": nodes / settings.io_nodes})
    for job in jobs.jobs:
        _refuse_unfit(job, nodes)
    offers = [
        offer_of(job, scenarios, direct=settings.direct, estimate=estimate, any_number=settings.any_number)
        for job in jobs.jobs
    ]
    for offer in offers:
        if offer.source == "none":
            raise InputError(
                f"its run time is not known: {offer.lack}",
                where=f"job {offer.job.name}",
                todo="give it a curve, "
                + (
                    "or a pattern and the number of its processes"
                    if pattern_of(offer.job) is None or estimate == "none"
                    else "or use the nearest pattern, however far (--estimate nearest)"
                ),
            )

    def run(policy: Policy) -> Replayed:
        return replayed(
            offers,
            _share(settings.model_copy(update={"policy": policy})),
            nodes=nodes,
            io_nodes=settings.io_nodes,
            poll_s=poll_s,
        )

    replayed_jobs = run(settings.policy)
    after = _outcome(settings.policy, replayed_jobs, settings)
    before = after if settings.policy == "static" else _tried("static", run, settings)
    others = [
        _tried(policy, run, settings)
        for policy in POLICIES
        if compare and policy not in {settings.policy, "static"}
    ]
    compared = sorted({outcome.policy: outcome for outcome in (before, after, *others)}.values(), key=_place)
    return ReplayPlan(
        version=version,
        inputs=list(inputs),
        forward=settings,
        nodes=nodes,
        poll_s=poll_s,
        before=before,
        after=after,
        expected=_expected(before, after),
        jobs=[_job(life) for life in replayed_jobs.lives],
        compared=compared if compare else [],
        unplaced=[],
        over_capacity=_over(after, settings),
        no_data=[Left(name=offer.job.name, reason=offer.lack) for offer in offers if offer.lack is not None],
        notes=_notes(offers, replayed_jobs, unlike),
    )


def _refuse_unfit(job: PlannedJob, nodes: int) -> None:
    at = f"job {job.name}"
    if job.nodes > nodes:
        raise InputError(
            f"has {counted(job.nodes, 'node')}, the machine {nodes:,}: it would never start",
            where=at,
            todo="give a larger --nodes",
        )
    # Less than a byte counts as nothing and would take no time.
    if job.bytes is None or job.bytes < 1:
        raise InputError(
            "has no bytes, so its end is not known", where=at, todo="give what it reads and writes"
        )
    if job.submit_s > LONGEST:
        raise InputError(
            f"is submitted after {job.submit_s:g} s", where=at, todo=f"give at most {LONGEST:g} s"
        )


def _share(settings: ForwardSettings) -> Share:
    """A function that shares the pool among running jobs with the policy in `settings`."""

    def share(running: Sequence[Life], clock: float) -> list[Option]:
        offers = [life.offer for life in running]
        request = PoolRequest(offers, settings)
        try:
            chosen: Sequence[Choice] = (
                solve_or_share(request, larger_pools=False)[1].chosen
                if settings.policy == "mckp"
                else by_policy(settings.policy, request)
            )
        except InputError as error:
            raise InputError(
                f"{error.what}, those that run {format_seconds(clock)} after the first submission "
                f"({', '.join(offer.job.name for offer in offers[:3])}{', ...' if len(offers) > 3 else ''})",
                where=error.where,
                todo=f"for these {error.todo}",
            ) from None
        return [_served(settings.policy, *pair) for pair in zip(offers, chosen, strict=True)]

    return share


def _served(policy: Policy, offer: Offer, choice: Choice) -> Option:
    if isinstance(choice, Option):
        return choice
    raise InputError(
        f"{policy} cannot serve it: {choice}", where=f"job {offer.job.name}", todo="give another --policy"
    )


def _tried(policy: Policy, run: Callable[[Policy], Replayed], settings: ForwardSettings) -> QueueOutcome:
    """The outcome of a policy, for comparison. If it cannot serve all jobs, `reason` states why."""
    try:
        return _outcome(policy, run(policy), settings)
    except InputError as error:
        why = f"{error.where}: {error.what}"
    return QueueOutcome.model_validate(
        dict.fromkeys(QueueOutcome.model_fields) | {"policy": policy, "reason": why}
    )


def _outcome(policy: Policy, queue: Replayed, settings: ForwardSettings) -> QueueOutcome:
    first = min(life.offer.job.submit_s for life in queue.lives)
    return QueueOutcome(
        policy=policy,
        bandwidth=math.fsum((life.offer.job.bytes or 0.0) / life.runtime_s for life in queue.lives),
        makespan_s=max(life.end_s for life in queue.lives) - first,
        waited_s=math.fsum(life.start_s - life.offer.job.submit_s for life in queue.lives) / len(queue.lives),
        io_nodes=queue.most,
        over=max(0, queue.most - settings.io_nodes),
        late_s=queue.late_s,
        solved=queue.solved,
        changes=queue.changes,
        reason=None,
    )


def _place(outcome: QueueOutcome) -> int:
    return POLICIES.index(outcome.policy)


def _job(life: Life) -> QueuedJob:
    job = life.offer.job
    return QueuedJob(
        name=job.name,
        nodes=job.nodes,
        bytes=job.bytes or 0.0,
        submit_s=job.submit_s,
        start_s=life.start_s,
        end_s=life.end_s,
        bandwidth=(job.bytes or 0.0) / life.runtime_s,
        source="measured" if life.offer.source == "measured" else "estimated",
        periods=[
            JobPeriod(
                start_s=part.start_s,
                seconds=part.seconds,
                io_nodes=part.option.io_nodes,
                shared=part.option.shared,
                bytes=part.bytes,
            )
            for part in life.periods
        ],
    )


def _expected(before: QueueOutcome, after: QueueOutcome) -> Expected | None:
    if before.bandwidth is None or before.bandwidth < 1 or after.bandwidth is None:
        return None
    return Expected(
        metric="sum_of_bandwidths",
        before=before.bandwidth,
        after=after.bandwidth,
        speedup=after.bandwidth / before.bandwidth,
        low=None,
        high=None,
        method=f"sum over all jobs of bytes / runtime; before: {before.policy}; no range: the scatter of runs is not "
        "replayed",
    )


def _over(after: QueueOutcome, settings: ForwardSettings) -> list[Left]:
    if not after.over:
        return []
    reason = f"{after.io_nodes:,} I/O nodes are assigned at once, of {settings.io_nodes:,}"
    return [Left(name="pool", reason=f"{reason}: {after.policy} ignores the size of the pool")]


def _notes(offers: Sequence[Offer], queue: Replayed, unlike: str | None) -> list[str]:
    notes = []
    if queue.late_s:
        notes.append(
            f"for {format_seconds(queue.late_s)} jobs use more I/O nodes than there are, because some have not "
            "yet seen the new mapping; this sharing is not modelled"
        )
    if any(part.option.shared for life in queue.lives for part in life.periods):
        notes.append(
            "jobs that share one I/O node each get its rate divided by the number of running "
            "jobs (section 3.1), a low estimate"
        )
    return [*notes, *notes_of_estimates(offers, unlike)]
