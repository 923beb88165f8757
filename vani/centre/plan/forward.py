"""A plan that shares a pool of I/O nodes among jobs (Bez et al., IPDPS 2021)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import vani
from vani.centre.plan import optimum
from vani.centre.plan.curves import Offer, Option, notes_of_estimates, offer_of
from vani.centre.plan.inputs import layout_files_of, loaded, plan_input
from vani.centre.plan.schema import plans
from vani.centre.plan.schema.jobs import AccessPattern, Jobs, PlannedJob
from vani.models.forwarding import Pattern, Scenario, curves_of, measured, pattern_of, spread, traffic_of
from vani.schema.advice import Expected
from vani.schema.profile import Profile
from vani.schema.settings import PathLike
from vani.systems import system_of
from vani.units import counted

if TYPE_CHECKING:
    from vani.schema.system import System

# A plan that shares a pool of I/O nodes among jobs (Bez et al., IPDPS 2021).

POLICIES: Final[tuple[plans.Policy, ...]] = ("mckp", "static", "process", "zero", "one", "oracle")


@dataclass(frozen=True)
class ForwardInputs:
    """Inputs of plans of I/O nodes.

    Attributes
    ----------
    scenarios
        Curves for jobs without one.
    where
        Name of the jobs document in errors.
    unlike
        How the machine differs from the one with the curves.
    """

    jobs: Jobs
    settings: plans.ForwardSettings
    scenarios: Sequence[Scenario]
    inputs: list[plans.PlanInput] = field(default_factory=list)
    where: str = "jobs"
    unlike: str | None = None
    estimate: plans.Estimate = "near"

    def offers(self) -> list[Offer]:
        """The options of each job."""
        settings = self.settings
        return [
            offer_of(
                job, self.scenarios, direct=settings.direct, estimate=self.estimate, any_number=settings.any_number
            )
            for job in self.jobs.jobs
        ]


def forward(
    given: ForwardInputs, *, current: plans.ForwardPlan | None = None, forwarded: Collection[str] = (),
    compare: bool = False,
) -> plans.ForwardPlan:
    """Share the I/O nodes of a pool among jobs.

    Parameters
    ----------
    current
        The current plan, with which the new one is compared.
    forwarded
        Names of jobs that already run behind I/O nodes and cannot go back to direct access.
    compare
        Also compute the outcome of every other policy.

    Raises
    ------
    InputError
        Two jobs have the same name, a curve has no number that its job can have, or the pool cannot serve all jobs. In
        the last case the message names the smallest pool that can.
    """
    settings = given.settings
    given.jobs.refuse_twins(given.where)
    now = {job.name: job.io_nodes for job in current.jobs if not job.shared} if current is not None else {}
    offers = [_without_direct(offer) if offer.job.name in forwarded else offer for offer in given.offers()]
    request = optimum.PoolRequest(offers, settings)
    solved = None
    if settings.policy == "mckp":
        request, solved = optimum.solve_or_share(request)
        chosen = solved.chosen
    else:
        chosen = optimum.by_policy(settings.policy, request)
    after = _outcome(settings.policy, request, chosen)
    base = optimum.by_current(offers, now) if current is not None else optimum.by_policy("static", request)
    before = _outcome("static" if current is None else "current", request, base)
    return plans.ForwardPlan(
        version=vani.__version__,
        inputs=given.inputs,
        forward=settings,
        before=before,
        after=after,
        expected=_expected(base, chosen, before, after),
        jobs=[_allotment(request, *pair, now) for pair in zip(offers, chosen, strict=True)],
        one_more=None if solved is None else optimum.one_more(request, solved),
        pools=optimum.pools(request, solved),
        compared=_compared(request, settings.policy, after) if compare else [],
        unplaced=[
            plans.Left(name=offer.job.name, reason=choice)
            for offer, choice in zip(offers, chosen, strict=True)
            if isinstance(choice, str)
        ],
        over_capacity=_over(after, settings),
        no_data=_no_data(offers, settings),
        notes=_notes(request, chosen, given.unlike),
    )


def _without_direct(offer: Offer) -> Offer:
    behind_nodes = tuple(option for option in offer.options if option.io_nodes)
    return replace(offer, options=behind_nodes) if behind_nodes else offer


def _outcome(
    policy: plans.Policy | str, request: optimum.PoolRequest, chosen: Sequence[optimum.Choice]
) -> plans.Outcome:
    placed = [choice for choice in chosen if isinstance(choice, Option)]
    used = sum(option.io_nodes for option in placed) + any(option.shared for option in placed)
    shares = [
        choice.rate / best
        for offer, choice in zip(request.offers, chosen, strict=True)
        if isinstance(choice, Option) and choice.rate is not None
        if (best := offer.best_of(request.settings.io_nodes))
    ]
    return plans.Outcome.model_validate(
        {
            "policy": policy,
            "io_nodes": used,
            "over": max(0, used - request.settings.io_nodes),
            "bandwidth": optimum.sum_of(chosen),
            "least_share": min(shares, default=None),
            "no_figure": sum(optimum.rate_of(choice) is None for choice in chosen),
        }
    )


def _compared(request: optimum.PoolRequest, policy: plans.Policy, after: plans.Outcome) -> list[plans.Outcome]:
    compared = []
    for other in POLICIES:
        if other == policy:
            compared.append(after)
        elif other == "mckp":
            best = optimum.solve(request, request.pool)
            compared += [] if best is None else [_outcome(other, request, best.chosen)]
        else:
            compared.append(_outcome(other, request, optimum.by_policy(other, request)))
    return compared


def _allotment(
    request: optimum.PoolRequest, offer: Offer, choice: optimum.Choice, now: Mapping[str, int | None]
) -> plans.Allotment:
    option, rate = choice if isinstance(choice, Option) else None, optimum.rate_of(choice)
    best = offer.best_of(request.settings.io_nodes)
    low = high = None
    if option is not None and rate is not None and option.width > 0:
        low, high = (rate * end for end in spread(option.width))
    return plans.Allotment(
        name=offer.job.name,
        nodes=offer.job.nodes,
        io_nodes=None if option is None else option.io_nodes,
        shared=option is not None and option.shared,
        bandwidth=rate,
        own_best=best,
        share=None if rate is None or best is None else rate / best,
        before=now.get(offer.job.name),
        source=offer.source,
        low=low,
        high=high,
    )


def _expected(
    base: Sequence[optimum.Choice], chosen: Sequence[optimum.Choice], before: plans.Outcome, after: plans.Outcome
) -> Expected | None:
    """Speed-up with the plan; None if the two sums are over different jobs."""
    lacks, lacks_before = ([optimum.rate_of(choice) is None for choice in some] for some in (chosen, base))
    if lacks != lacks_before or before.bandwidth < 1:
        return None
    speedup = after.bandwidth / before.bandwidth
    method = f"sum over the jobs with a figure; before: {before.policy}"
    if not (width := math.hypot(_width(base), _width(chosen))):
        method += "; no range: the curves have no scatter"
        return plans.expected_effect("sum_of_bandwidths", before.bandwidth, after.bandwidth, method)
    low, high = (speedup * end for end in spread(width))
    return plans.expected_effect("sum_of_bandwidths", before.bandwidth, after.bandwidth, method, ends=(low, high))


def _width(chosen: Sequence[optimum.Choice]) -> float:
    """Relative scatter of a sum of independent rates."""
    total = optimum.sum_of(chosen)
    scatter = [rate * choice.width for choice in chosen if isinstance(choice, Option) and (rate := choice.rate)]
    return math.hypot(*scatter) / total if total else 0.0


def _over(after: plans.Outcome, settings: plans.ForwardSettings) -> list[plans.Left]:
    if not after.over:
        return []
    why = {
        "oracle": "oracle gives every job its best and needs no pool",
        "one": "one gives every job an I/O node, however many there are",
    }.get(after.policy, f"{after.policy} rounds every job's share by itself")
    reason = f"{after.io_nodes:,} I/O nodes are assigned of {settings.io_nodes:,}: {why}"
    return [plans.Left(name="pool", reason=reason)]


def _no_data(offers: Sequence[Offer], settings: plans.ForwardSettings) -> list[plans.Left]:
    no_data = []
    for offer in offers:
        if offer.lack is not None:
            by_static = offer.source == "none" and settings.policy == "mckp"
            reason = offer.lack + ("; it gets as many as by static" if by_static else "")
            no_data.append(plans.Left(name=offer.job.name, reason=reason))
        if settings.policy == "process" and offer.job.processes is None:
            reason = "no number of processes: its number of nodes is used"
            no_data.append(plans.Left(name=offer.job.name, reason=reason))
    return no_data


def _notes(request: optimum.PoolRequest, chosen: Sequence[optimum.Choice], unlike: str | None) -> list[str]:
    notes = []
    sharing = [choice for choice in chosen if isinstance(choice, Option) and choice.shared]
    if request.shares_node:
        notes.append(
            f"{counted(len(sharing), 'job')} share one I/O node: each gets 1/{len(request.offers)} of the rate "
            "it has alone (section 3.1), a low estimate"
        )
    return [*notes, *notes_of_estimates(request.offers, unlike)]


# Implements `vani plan forward`.

def plan_forward(
    jobs: PathLike | Jobs,
    settings: plans.ForwardOptions | None = None,
    *,
    current: PathLike | plans.ForwardPlan | None = None,
    system: PathLike | System | None = None,
    **fields: Any,
) -> plans.ForwardPlan:
    """Share a pool of I/O nodes among jobs.

    Parameters
    ----------
    jobs
        A jobs.yaml, or the document itself.
    settings, fields
        How they are shared, or single fields of `ForwardOptions`, such as `io_nodes`.
    current
        The current plan, which the new one changes.
    system
        The machine that provides curves for jobs without one; None: the bundled curves of MareNostrum 4.

    Raises
    ------
    InputError
        A document cannot be used, a figure is invalid, or the pool cannot serve all jobs.
    """
    settings = plans.ForwardOptions.of(settings, **fields)
    given = forward_inputs(jobs, settings, system_of(system))
    if current is not None:
        given.inputs.insert(1, plan_input("plan", current))
    known = plans.ForwardPlan.load(current) if isinstance(current, (str, Path)) else current
    return forward(given, current=known, compare=settings.compare)


def forward_inputs(jobs: PathLike | Jobs, options: plans.ForwardOptions, machine: System | None) -> ForwardInputs:
    """Read the inputs of `plan_forward`."""
    layer = None if machine is None else machine.forwarding
    direct = options.direct
    if direct is None:
        direct = layer is None or layer.direct_access is not False
    given = loaded("jobs", jobs, Jobs)
    known, folder = given.document, given.folder
    own = curves_of(machine) if machine is not None else []
    chosen = options.model_dump(include=set(plans.ForwardSettings.model_fields))
    return ForwardInputs(
        jobs=known.model_copy(update={"jobs": [with_pattern(job, folder) for job in known.jobs]}),
        settings=plans.ForwardSettings(**chosen | {"direct": direct}),
        scenarios=own or measured(),
        inputs=[given.source, *(plan_input("profile", path) for path in profiles_of(known, folder))],
        where=given.where,
        unlike=None if own else _unlike(machine),
        estimate=options.estimate,
    )


def files_of_jobs(jobs: Path, *, all_profiles: bool = False) -> Iterator[Path]:
    """A jobs.yaml and the files it names; profiles only if they provide a pattern, or with `all_profiles`."""
    yield jobs
    known = Jobs.load(jobs)
    if all_profiles:
        yield from (jobs.parent / job.profile for job in known.jobs if job.profile is not None)
    else:
        yield from profiles_of(known, jobs.parent)
    yield from layout_files_of(known, jobs.parent).values()


def profiles_of(jobs: Jobs, folder: Path) -> list[Path]:
    """Profiles that provide patterns, each once; relative paths start in the folder of the jobs."""
    wanted = (job for job in jobs.jobs if job.curve is None and job.pattern is None)
    return list(dict.fromkeys(folder / job.profile for job in wanted if job.profile is not None))


def with_pattern(job: PlannedJob, folder: Path) -> PlannedJob:
    """Take the pattern from the profile of an earlier run if the job has neither a curve nor a pattern."""
    if job.profile is None or job.curve is not None or job.pattern is not None:
        return job

    run = Profile.load(folder / job.profile)
    access = access_of(run)
    if access is None:
        return job
    pattern, whole = access
    # At another number of nodes, assume as many processes per node; if that is unknown, as many in total.
    nodes = job.nodes if run.job.nodes else whole.nodes
    processes = job.processes or max(1, round(whole.processes / whole.nodes * nodes))
    size = job.bytes if job.bytes is not None else float(run.dataset.io.bytes.total or 0) or None
    return job.model_copy(update={"pattern": pattern, "processes": processes, "bytes": size})


def access_of(run: Profile) -> tuple[AccessPattern, Pattern] | None:
    """How a run reads or writes, as jobs.yaml and the model describe it; None if it has no pattern."""
    traffic = traffic_of(run)
    pattern = "" if traffic is None or not traffic.bytes else pattern_of(traffic, run)
    if isinstance(pattern, str):
        return None
    layout: Literal["shared", "file_per_process"] = "shared" if pattern.layout == "shared" else "file_per_process"
    of_job = AccessPattern(operation=pattern.operation, layout=layout, order=pattern.order, request=pattern.request)
    return of_job, pattern


def _unlike(machine: System | None) -> str:
    """How the machine differs from the one with the bundled curves, which apply to no other."""
    text = (
        "the curves were measured on MareNostrum 4 (GPFS, writes with O_DIRECT, 8 to 32 nodes, 12 to 48 "
        "processes on each, requests of 32 KiB to 8 MiB, I/O nodes of FORGE)"
    )
    if machine is None:
        return f"{text}; this machine was not named (--system)"
    kinds = sorted({file_system.type for file_system in machine.file_systems})
    layer = machine.forwarding
    unlike = [f"file systems of type {', '.join(kinds)}"] if kinds and kinds != ["gpfs"] else []
    if layer is None:
        unlike.append("no I/O nodes in its description")
    elif layer.direct_access is False:
        unlike.append("no direct access")
    return f"{text}; {machine.name} has {' and '.join(unlike) or 'other servers and networks'}: measure its own"
