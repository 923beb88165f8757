"""Choices that plans make for jobs: I/O nodes, targets, a measured bandwidth.

`BY_KIND` has a function for each kind of plan, from the plan, the names of the running jobs and the number of I/O nodes
to `Choices`. Anything that it leaves out is chosen as without a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, cast

from vani.centre.plan.schema import ForwardPlan, PathPlan, PlacedExtent, PlacePlan, Plan
from vani.errors import InputError


@dataclass(frozen=True)
class Choices:
    """Choices by job. An empty mapping chooses nothing.

    Parameters
    ----------
    io_nodes
        I/O nodes (from 0) of each job. Its compute nodes are split over them in blocks, so with as many I/O nodes as
        compute nodes each has its own. An empty sequence is direct access.
    extents
        Components and targets of each file, by job and path (`<file_set>.<number>` for a phase of a scenario).
    rates
        Measured bytes per second of each whole job with these I/O nodes.
    lacks
        Jobs that are not in a plan, and their treatment.
    """

    io_nodes: Mapping[str, Sequence[int]] = field(default_factory=lambda: MappingProxyType({}))
    extents: Mapping[tuple[str, str], Sequence[PlacedExtent]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    rates: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    lacks: Sequence[tuple[str, str]] = ()


def choices_of(plans: Sequence[Plan], jobs: Collection[str], io_nodes: int) -> Choices:
    """Merge the choices of several plans.

    Raises
    ------
    InputError
        Two plans have the same kind, a kind is not simulated, or a plan needs more I/O nodes than there are.
    """
    kinds = [plan.kind for plan in plans]
    twin = next((kind for kind in kinds if kinds.count(kind) > 1), None)
    if twin is not None:
        raise InputError(f"two plans are of kind {twin}", where="plans", todo="name one of each kind")
    choices = [_by_kind(plan.kind)(plan, jobs, io_nodes) for plan in plans]
    return Choices(
        {job: nodes for choice in choices for job, nodes in choice.io_nodes.items()},
        {key: parts for choice in choices for key, parts in choice.extents.items()},
        {job: rate for choice in choices for job, rate in choice.rates.items()},
        [lack for choice in choices for lack in choice.lacks],
    )


def _by_kind(kind: str) -> Callable[[Plan, Collection[str], int], Choices]:
    if kind not in BY_KIND:
        raise InputError(
            f"a plan of kind {kind} decides nothing that is simulated",
            where="plans",
            todo=f"these do: {', '.join(BY_KIND)}",
        )
    return BY_KIND[kind]


def _forward(plan: Plan, jobs: Collection[str], io_nodes: int) -> Choices:
    plan = cast("ForwardPlan", plan)
    used = plan.after.io_nodes
    if used > io_nodes:
        raise InputError(
            f"the plan assigns {used:,} I/O nodes, the machine has {io_nodes:,}",
            where="plans",
            todo="give `machine.io_nodes`, or a plan for that machine",
        )
    nodes: dict[str, Sequence[int]] = {}
    rates: dict[str, float] = {}
    shared = any(job.shared for job in plan.jobs)
    first = int(shared)  # The shared node is the first one.
    for job in plan.jobs:
        if job.name not in jobs or (job.io_nodes is None and not job.shared):
            continue
        count = job.io_nodes or 0
        nodes[job.name] = [0] if job.shared else range(first, first + count)
        first += 0 if job.shared else count
        # The plan's rate on the shared node is already a share of it; the simulation shares that node itself.
        if job.bandwidth is not None and not job.shared:
            rates[job.name] = job.bandwidth
    lacks = [
        (job, "the forward plan does not mention it: its nodes are spread over all I/O nodes")
        for job in jobs
        if job not in nodes
    ]
    return Choices(io_nodes=nodes, rates=rates, lacks=lacks)


def _place(plan: Plan, jobs: Collection[str], io_nodes: int) -> Choices:
    del io_nodes
    plan = cast("PlacePlan", plan)
    # A file with an extent that is left to Lustre is placed as without a plan.
    extents = {
        (file.job, file.path): file.extents
        for file in plan.files
        if file.job in jobs and file.extents and not any(extent.is_left for extent in file.extents)
    }
    placed = {job for job, _ in extents}
    lacks = [
        (job, "the plan of OSTs places none of its files: they are placed as without the plan")
        for job in jobs
        if job not in placed
    ]
    return Choices(extents=extents, lacks=lacks)


def _path(plan: Plan, jobs: Collection[str], io_nodes: int) -> Choices:
    plan = cast("PathPlan", plan)
    most = max((part.number for job in plan.jobs for part in job.map), default=-1) + 1
    if most > io_nodes:
        raise InputError(
            f"the plan uses I/O node {most:,} of the snapshot, the machine has {io_nodes:,}",
            where="plans",
            todo="give `machine.io_nodes`, or a plan for that machine",
        )
    nodes = {
        job.name: [part.number for part in job.map for _ in range(part.nodes)]
        for job in plan.jobs
        if job.name in jobs and job.map
    }
    lacks = [
        (job, "the plan of paths does not mention it: its nodes are spread over all I/O nodes")
        for job in jobs
        if job not in nodes
    ]
    return Choices(io_nodes=nodes, lacks=lacks)


BY_KIND: Final[dict[str, Callable[[Plan, Collection[str], int], Choices]]] = {
    "forward": _forward,
    "place": _place,
    "path": _path,
}
