"""Assigns I/O nodes by name to running jobs, given what they have and what the pool has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from vani.centre.plan.curves import Estimate, divisors
from vani.centre.plan.forward import forward
from vani.centre.plan.schema import Allotment, ForwardPlan, ForwardSettings
from vani.centre.plan.schema.jobs import Jobs, PlannedJob
from vani.errors import InputError
from vani.models.forwarding import Scenario

Access = Literal["direct", "own", "shared"]


@dataclass(frozen=True)
class Has:
    """Names of the I/O nodes of a job; none for direct access."""

    access: Access
    io_nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunningJob:
    """A running job and what it has. `has` is None for a job that is starting."""

    planned: PlannedJob
    has: Has | None = None

    @property
    def number(self) -> str:
        return self.planned.name


@dataclass(frozen=True)
class Shared:
    """The I/O nodes of every job, by job number.

    `unplaced` has the reason for each job that gets none, `over` for each that gets fewer than the policy gives.
    """

    plan: ForwardPlan | None
    has: Mapping[str, Has]
    unplaced: Mapping[str, str] = field(default_factory=dict)
    over: Mapping[str, str] = field(default_factory=dict)

    def allotment(self, number: str) -> Allotment | None:
        """A job's entry in the plan of the pool; None if the plan does not include it."""
        jobs = [] if self.plan is None else self.plan.jobs
        return next((job for job in jobs if job.name == number), None)


def share(
    jobs: Sequence[RunningJob],
    pool: Sequence[str],
    settings: ForwardSettings,
    scenarios: Sequence[Scenario],
    *,
    estimate: Estimate = "near",
    version: str = "",
) -> Shared:
    """Share the I/O nodes of a pool among running jobs. Each I/O node serves one job, or all jobs that share it.

    A job that started without I/O nodes continues without them, and one that started with them keeps at least one,
    because the access to its files is decided at its start. Jobs keep their present I/O nodes, up to their new number.

    Parameters
    ----------
    pool
        Names of the working I/O nodes, in order of preference.
    """
    settled = {job.number: job.has for job in jobs if job.has is not None and job.has.access == "direct"}
    to_plan = [job for job in jobs if job.number not in settled]
    if not to_plan:
        return Shared(None, settled)
    try:
        plan = forward(
            Jobs(jobs=[job.planned for job in to_plan]),
            settings,
            scenarios=scenarios,
            estimate=estimate,
            current=_present_plan(to_plan),
            forwarded={job.number for job in to_plan if job.has is not None},
            version=version,
        )
    except InputError as error:
        # Running jobs keep what they have, so that a failed plan makes nothing worse.
        still_have = {job.number: _still_there(job.has, pool) for job in to_plan if job.has is not None}
        return Shared(
            None, {**settled, **still_have}, {job.number: str(error) for job in to_plan if job.has is None}
        )
    named, unplaced, over = _named(to_plan, plan, pool, direct=settings.direct)
    return Shared(plan, {**settled, **named}, unplaced, over)


def _still_there(has: Has, pool: Sequence[str]) -> Has:
    return Has(has.access, tuple(node for node in has.io_nodes if node in pool))


def _present_plan(jobs: Sequence[RunningJob]) -> ForwardPlan | None:
    """The jobs' present numbers as a plan, to be changed by the new one."""
    known = [
        Allotment.model_construct(
            name=job.number, io_nodes=len(job.has.io_nodes), shared=job.has.access == "shared"
        )
        for job in jobs
        if job.has is not None
    ]
    return ForwardPlan.model_construct(jobs=known) if known else None


def _named(
    jobs: Sequence[RunningJob], plan: ForwardPlan, pool: Sequence[str], *, direct: bool
) -> tuple[dict[str, Has], dict[str, str], dict[str, str]]:
    """Turn the numbers of a plan into names: first those that jobs keep, then more, in job order."""
    free = dict.fromkeys(pool)
    wanted = {job.name: job for job in plan.jobs}
    access: dict[str, Has] = {}
    unplaced = {left.name: left.reason for left in plan.unplaced}
    over: dict[str, str] = {}
    sharing = [job for job in jobs if wanted[job.number].shared]
    if sharing:
        before = (
            name for job in sharing if job.has and job.has.access == "shared" for name in job.has.io_nodes
        )
        in_use = {name for job in jobs if job.has for name in job.has.io_nodes}
        nodes = (
            *(name for name in before if name in free),
            *(name for name in free if name not in in_use),
            *free,
        )
        node = nodes[0]
        del free[node]
        access = {job.number: Has("shared", (node,)) for job in sharing}
    own = [
        (job, wanted[job.number].io_nodes or 0)
        for job in jobs
        if job.number not in access and job.number not in unplaced
    ]
    retained: dict[str, list[str]] = {}
    for job, number in own:
        had = job.has.io_nodes if job.has is not None and job.has.access == "own" else ()
        retained[job.number] = [name for name in had if name in free][:number]
        for name in retained[job.number]:
            del free[name]
    for job, number in own:
        names = retained[job.number]
        can = _largest_that_fits(job.planned.nodes, number, len(names) + len(free))
        if can < number:
            over[job.number] = f"{number:,} I/O nodes by the policy, but {can:,} are left"
        if not can and not (direct and job.has is None):
            unplaced[job.number] = "no I/O node is left, and it needs one"
            continue
        for name in names[can:]:
            free[name] = None
        more = [name for name, _ in zip(list(free), range(can - len(names)), strict=False)]
        for name in more:
            del free[name]
        access[job.number] = Has("own", (*names[:can], *more)) if can else Has("direct")
    return access, unplaced, over


def _largest_that_fits(nodes: int, wanted: int, there: int) -> int:
    if wanted <= there:
        return wanted
    return max((divisor for divisor in divisors(nodes) if divisor <= there), default=0)


def map_of(hosts: Sequence[str], io_nodes: Sequence[str], numbers: Mapping[str, int]) -> Iterator[str]:
    """Lines of a forwarding map for GekkoFWD, each with a compute node and the number of its I/O node.

    Consecutive compute nodes share an I/O node.

    Parameters
    ----------
    numbers
        Index, from 0, of each I/O node in GekkoFWD's hosts file, by name.
    """
    for place, host in enumerate(hosts):
        yield f"{host} {numbers[io_nodes[place * len(io_nodes) // len(hosts)]]}\n"
