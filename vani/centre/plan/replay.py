"""Replay of a job queue, with a pool of I/O nodes shared again at each change (Bez et al., section 5.3)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import vani
from vani.centre.plan.curves import Offer, Option, notes_of_estimates, pattern_of
from vani.centre.plan.forward import POLICIES, ForwardInputs, forward_inputs
from vani.centre.plan.optimum import Choice, PoolRequest, by_policy, solve_or_share
from vani.centre.plan.schema import plans
from vani.errors import InputError
from vani.schema.advice import Expected
from vani.schema.settings import PathLike
from vani.systems import system_of
from vani.units import counted, format_rate, format_seconds

if TYPE_CHECKING:
    from vani.centre.plan.schema.jobs import Jobs, PlannedJob
    from vani.schema.system import System

# A strict FIFO queue of jobs. I/O nodes are shared again among the running jobs whenever a job starts or ends.
#
# A job moves its bytes at the rate of its number of I/O nodes, and ends when all are moved (Bez et al., IPDPS 2021,
# section 5.3). Clients poll for a new mapping at fixed intervals, so the number of a running job changes at the next
# poll. A starting job reads the mapping that was made for it.

LONGEST: Final = 1e12
"""Longest replay in seconds. Beyond it, a clock with 53 bits does not resolve milliseconds."""


@dataclass
class Life:
    """A job of the queue, from submission to end. `left` is the number of bytes still to move."""

    offer: Offer
    left: float
    start_s: float = math.nan
    end_s: float = math.inf
    option: Option = field(default_factory=lambda: Option(0, None))
    """The option that the job's clients use."""
    wanted: Option = field(default_factory=lambda: Option(0, None))
    """The option that the mapping gives the job."""
    periods: list[plans.JobPeriod] = field(default_factory=list)
    _period_s: float = math.nan
    """Start time of using the present option."""

    @property
    def runtime_s(self) -> float:
        """Run time as a sum of periods, which is more precise than a difference of two large times."""
        return math.fsum(period.seconds for period in self.periods)

    @property
    def rate(self) -> float:
        """Bytes per second while the clients move data."""
        return self.option.rate or 0.0

    @property
    def waits(self) -> bool:
        """Whether the mapping gives the job another number than its clients use."""
        return (self.wanted.io_nodes, self.wanted.shared) != (self.option.io_nodes, self.option.shared)

    def begin(self, clock: float) -> None:
        self.start_s = clock
        self._use(self.wanted, clock)

    def change(self, clock: float) -> None:
        """Switch to the option of the mapping."""
        moved = self.left - self.left_at(clock)
        if clock > self._period_s:
            self._close(clock - self._period_s, moved)
        self.left -= moved
        self._use(self.wanted, clock)

    def end(self) -> None:
        self._close(self.left / self.rate, self.left)
        self.left = 0.0

    def _close(self, seconds: float, moved: float) -> None:
        option = self.option
        self.periods.append(
            plans.JobPeriod(
                start_s=self._period_s, seconds=seconds, io_nodes=option.io_nodes, shared=option.shared, bytes=moved
            )
        )

    def left_at(self, clock: float) -> float:
        """Bytes still to move at a time."""
        return max(0.0, self.left - max(0.0, clock - self._period_s) * self.rate)

    def _use(self, option: Option, clock: float) -> None:
        self.option, self._period_s = option, clock
        self.end_s = clock + (self.left / self.rate if self.rate else math.inf)
        if self.end_s > LONGEST:
            what = f"would not end within {LONGEST:g} s at {format_rate(self.rate)}"
            raise InputError(what, where=f"job {self.offer.job.name}", todo="check its bytes and its curve")


Share = Callable[[Sequence[Life], float], Sequence[Option]]
"""Function from the running jobs and the time to one option per job, in the same order."""


@dataclass(frozen=True)
class Replayed:
    """Result of a replay, with jobs in submission order.

    Attributes
    ----------
    most
        Most I/O nodes that a mapping assigned at once, including the shared one.
    late_s
        Seconds in which clients used more I/O nodes than the pool has, because some had not yet seen the new mapping.
    solved
        Number of times that I/O nodes were shared again because the set of running jobs changed.
    changes
        Number of times that a running job's number changed.
    """

    lives: list[Life]
    most: int
    late_s: float
    solved: int
    changes: int


def replayed(offers: Sequence[Offer], share: Share, *, nodes: int, io_nodes: int, poll_s: float = 0.0) -> Replayed:
    """Replay the queue: its first job starts as soon as enough nodes are free, and no job overtakes it.

    Parameters
    ----------
    offers
        Offers of jobs with bytes and at most `nodes` nodes. Jobs submitted at the same time keep this order.
    share
        Gives every running job an option with a rate.
    poll_s
        Running clients look for a new mapping at every multiple of this; 0: immediately.

    Raises
    ------
    InputError
        A job would not end, or `share` raises it.
    """
    lives = [Life(offer, offer.job.bytes or 0.0) for offer in offers]
    lives.sort(key=lambda life: life.offer.job.submit_s)
    waiting, running = deque(lives), list[Life]()
    clock, look_s, free = 0.0, math.inf, nodes
    most, late_s, solved, changes = 0, 0.0, 0, 0
    while waiting or running:
        last, clock = clock, _next(clock, waiting, running, look_s)
        if _used(running, seen=True) > io_nodes >= _used(running, seen=False):
            late_s += clock - last
        ended = [life for life in running if life.end_s <= clock]
        running = [life for life in running if life.end_s > clock]
        for life in ended:
            life.end()
            free += life.offer.job.nodes
        begun = []
        while waiting and waiting[0].offer.job.submit_s <= clock and waiting[0].offer.job.nodes <= free:
            begun.append(waiting.popleft())
            free -= begun[-1].offer.job.nodes
        if (ended or begun) and (together := [*running, *begun]):
            solved += 1
            for life, option in zip(together, share(together, clock), strict=True):
                life.wanted = option
            most = max(most, _used(together, seen=False))
            look_s = math.ceil(clock / poll_s) * poll_s if poll_s else clock
            for life in running:
                # The number is the same, but the rate on the shared I/O node depends on the number of jobs.
                if not life.waits and life.wanted.rate != life.option.rate:
                    life.change(clock)
            for life in begun:
                life.begin(clock)
            running = together
        if look_s <= clock:
            for life in [life for life in running if life.waits]:
                life.change(clock)
                changes += 1
            look_s = math.inf
    return Replayed(lives, most, late_s, solved, changes)


def _next(clock: float, waiting: Sequence[Life], running: Sequence[Life], look_s: float) -> float:
    """Time of the next event: a poll of the mapping, the end of a job, or a submission to an empty queue."""
    coming = min((life.end_s for life in running), default=math.inf)
    if waiting and (submit_s := waiting[0].offer.job.submit_s) > clock:
        coming = min(coming, submit_s)
    elif waiting and not running:
        coming = clock
    return max(clock, min(coming, look_s))


def _used(running: Sequence[Life], *, seen: bool) -> int:
    """Number of I/O nodes that clients use (`seen`), or that the mapping gives them."""
    options = [life.option if seen else life.wanted for life in running]
    return sum(option.io_nodes for option in options) + any(option.shared for option in options)


# Replay of a job queue, with a pool of I/O nodes shared again at each change (Bez et al., section 5.3).

def replay(given: ForwardInputs, *, nodes: int, poll_s: float, compare: bool = False) -> plans.ReplayPlan:
    """Replay the jobs as a strict FIFO queue on `nodes` compute nodes. See `forward` for the other parameters.

    Raises
    ------
    InputError
        Two jobs have the same name; a job is larger than the machine, has no bytes or no bandwidth, or would not end;
        or the policy or the pool cannot serve the jobs running at some moment.
    """
    jobs, settings = given.jobs, given.settings
    jobs.refuse_twins(given.where)
    if settings.nodes_per_io_node is None and settings.io_nodes:
        settings = settings.model_copy(update={"nodes_per_io_node": nodes / settings.io_nodes})
    for job in jobs.jobs:
        _refuse_unfit(job, nodes)
    offers = given.offers()
    for offer in offers:
        if offer.source == "none":
            other = "or use the nearest pattern, however far (--estimate nearest)"
            if pattern_of(offer.job) is None or given.estimate == "none":
                other = "or a pattern and the number of its processes"
            what = f"its run time is not known: {offer.lack}"
            raise InputError(what, where=f"job {offer.job.name}", todo=f"give it a curve, {other}")

    def run(policy: plans.Policy) -> Replayed:
        share = _share(settings.model_copy(update={"policy": policy}))
        return replayed(offers, share, nodes=nodes, io_nodes=settings.io_nodes, poll_s=poll_s)

    replayed_jobs = run(settings.policy)
    after = _outcome(settings.policy, replayed_jobs, settings)
    by_name = {settings.policy: after}
    for policy in POLICIES if compare else ("static",):
        if policy not in by_name:
            by_name[policy] = _tried(policy, run, settings)
    before = by_name["static"]
    return plans.ReplayPlan(
        version=vani.__version__,
        inputs=given.inputs,
        forward=settings,
        nodes=nodes,
        poll_s=poll_s,
        before=before,
        after=after,
        expected=_expected(before, after),
        jobs=[_job(life) for life in replayed_jobs.lives],
        compared=[by_name[policy] for policy in POLICIES] if compare else [],
        unplaced=[],
        over_capacity=_over(after, settings),
        no_data=[plans.Left(name=offer.job.name, reason=offer.lack) for offer in offers if offer.lack is not None],
        notes=_notes(offers, replayed_jobs, given.unlike),
    )


def _refuse_unfit(job: PlannedJob, nodes: int) -> None:
    at = f"job {job.name}"
    if job.nodes > nodes:
        what = f"has {counted(job.nodes, 'node')}, the machine {nodes:,}: it would never start"
        raise InputError(what, where=at, todo="give a larger --nodes")
    # Less than a byte counts as nothing and would take no time.
    if job.bytes is None or job.bytes < 1:
        raise InputError("has no bytes, so its end is not known", where=at, todo="give what it reads and writes")
    if job.submit_s > LONGEST:
        raise InputError(f"is submitted after {job.submit_s:g} s", where=at, todo=f"give at most {LONGEST:g} s")


def _share(settings: plans.ForwardSettings) -> Share:
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
            what = f"{error.what}, those that run {format_seconds(clock)} after the first submission "
            what += f"({', '.join(offer.job.name for offer in offers[:3])}{', ...' if len(offers) > 3 else ''})"
            raise InputError(what, where=error.where, todo=f"for these {error.todo}") from None
        for offer, choice in zip(offers, chosen, strict=True):
            if isinstance(choice, str):
                what = f"{settings.policy} cannot serve it: {choice}"
                raise InputError(what, where=f"job {offer.job.name}", todo="give another --policy")
        return [choice for choice in chosen if isinstance(choice, Option)]

    return share


def _tried(
    policy: plans.Policy, run: Callable[[plans.Policy], Replayed], settings: plans.ForwardSettings
) -> plans.QueueOutcome:
    """The outcome of a policy, for comparison. If it cannot serve all jobs, `reason` states why."""
    try:
        return _outcome(policy, run(policy), settings)
    except InputError as error:
        why = f"{error.where}: {error.what}"
    return plans.QueueOutcome.model_validate(
        dict.fromkeys(plans.QueueOutcome.model_fields) | {"policy": policy, "reason": why}
    )


def _outcome(policy: plans.Policy, queue: Replayed, settings: plans.ForwardSettings) -> plans.QueueOutcome:
    first = min(life.offer.job.submit_s for life in queue.lives)
    return plans.QueueOutcome(
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


def _job(life: Life) -> plans.QueuedJob:
    job = life.offer.job
    return plans.QueuedJob(
        name=job.name,
        nodes=job.nodes,
        bytes=job.bytes or 0.0,
        submit_s=job.submit_s,
        start_s=life.start_s,
        end_s=life.end_s,
        bandwidth=(job.bytes or 0.0) / life.runtime_s,
        source="measured" if life.offer.source == "measured" else "estimated",
        periods=life.periods,
    )


def _expected(before: plans.QueueOutcome, after: plans.QueueOutcome) -> Expected | None:
    if before.bandwidth is None or before.bandwidth < 1 or after.bandwidth is None:
        return None
    return plans.expected_effect(
        "sum_of_bandwidths", before.bandwidth, after.bandwidth,
        f"sum over all jobs of bytes / runtime; before: {before.policy}; no range: the scatter of runs is not replayed",
    )  # fmt: skip


def _over(after: plans.QueueOutcome, settings: plans.ForwardSettings) -> list[plans.Left]:
    if not after.over:
        return []
    reason = f"{after.io_nodes:,} I/O nodes are assigned at once, of {settings.io_nodes:,}"
    return [plans.Left(name="pool", reason=f"{reason}: {after.policy} ignores the size of the pool")]


def _notes(offers: Sequence[Offer], queue: Replayed, unlike: str | None) -> list[str]:
    notes = []
    if queue.late_s:
        notes.append(
            f"for {format_seconds(queue.late_s)} jobs use more I/O nodes than there are, because some have not "
            "yet seen the new mapping; this sharing is not modelled"
        )
    if any(part.shared for life in queue.lives for part in life.periods):
        notes.append(
            "jobs that share one I/O node each get its rate divided by the number of running "
            "jobs (section 3.1), a low estimate"
        )
    return [*notes, *notes_of_estimates(offers, unlike)]


# Implements `vani plan forward --replay`.

def plan_replay(
    jobs: PathLike | Jobs,
    settings: plans.QueueOptions | None = None,
    *,
    system: PathLike | System | None = None,
    **fields: Any,
) -> plans.ReplayPlan:
    """Simulate a first-come, first-served queue of jobs that shares the I/O nodes again at each change.

    Parameters
    ----------
    jobs, system
        As for `plan_forward`.
    settings, fields
        How I/O nodes are shared, and the queue, or single fields of `QueueOptions`.

    Raises
    ------
    InputError
        A document cannot be used, a figure is invalid, a job would never start or end, or the pool cannot serve the
        jobs that run together.
    """
    settings = plans.QueueOptions.of(settings, **fields)
    machine = system_of(system)
    nodes = settings.nodes or (None if machine is None else machine.compute.nodes)
    if nodes is None:
        what = "is needed to replay a queue" if machine is None else f"is not known of {machine.name}"
        raise InputError(what, where="--nodes", todo="give the number of compute nodes of the machine")
    if 0 < settings.poll < 0.001:
        raise InputError(f"is {settings.poll:g}", where="--poll", todo="give seconds, 0 or 0.001 to 1e9")
    given = forward_inputs(jobs, settings, machine)
    return replay(given, nodes=nodes, poll_s=settings.poll, compare=settings.compare)
