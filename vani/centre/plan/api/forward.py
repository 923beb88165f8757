"""Implements `vani plan forward`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

import vani
from vani.api.arguments import PathLike, system_of
from vani.centre.plan.api.inputs import loaded, plan_input
from vani.centre.plan.forward import forward
from vani.centre.plan.schema import ForwardPlan, ForwardSettings, PlanInput
from vani.centre.plan.schema.jobs import AccessPattern, Jobs, PlannedJob
from vani.errors import InputError
from vani.models.forwarding import Pattern, Scenario, curves_of, measured, pattern_of, traffic_of
from vani.schema.profile import Profile

if TYPE_CHECKING:
    from vani.schema.system import System

Policy = Literal["mckp", "static", "process", "zero", "one", "oracle"]
Objective = Literal["sum", "max-min", "proportional"]
Rounding = Literal["half-up", "ceil"]
Estimate = Literal["near", "nearest", "none"]


class SharingOptions(TypedDict, total=False):
    """Options of `plan_forward` and `plan_replay` for sharing a pool's I/O nodes."""

    policy: Policy
    """How to share; `mckp`, the optimum, by default."""
    objective: Objective
    """Quantity that the optimum maximises; `sum` by default."""
    floor: float
    """Minimum share of its best bandwidth, 0..1, that each job gets; 0 by default."""
    direct: bool | None
    """Whether jobs may bypass I/O nodes; None: as on the machine, or allowed if that is unknown."""
    any_number: bool
    """Whether a job's number of I/O nodes may be one that does not divide its compute nodes; False by default."""
    rounding: Rounding
    """Rounding of shares by size; `half-up` by default."""
    nodes_per_io_node: float | None
    """The machine's compute nodes per I/O node, for `static`; None: computed from the jobs."""


def plan_forward(
    jobs: PathLike | Jobs,
    io_nodes: int,
    *,
    estimate: Estimate = "near",
    current: PathLike | ForwardPlan | None = None,
    compare: bool = False,
    system: PathLike | System | None = None,
    **sharing: Unpack[SharingOptions],
) -> ForwardPlan:
    """Share a pool of I/O nodes among jobs.

    Parameters
    ----------
    jobs
        A jobs.yaml, or the document itself.
    estimate
        Replacement for a job's missing curve: an estimate from similar patterns, the nearest one, or none.
    current
        The current plan, which the new one changes.
    system
        The machine that provides curves for jobs without one; None: the bundled curves of MareNostrum 4.
    sharing
        `policy`, `objective`, `floor`, `direct`, `any_number`, `rounding`, `nodes_per_io_node`; see `SharingOptions`.

    Raises
    ------
    InputError
        A document cannot be used, a figure is invalid, or the pool cannot serve all jobs.
    """
    given = forward_inputs(jobs, io_nodes, system_of(system), **sharing)
    return forward(
        given.jobs,
        given.settings,
        scenarios=given.scenarios,
        estimate=estimate,
        current=ForwardPlan.load(current) if isinstance(current, (str, Path)) else current,
        compare=compare,
        inputs=[
            given.inputs[0],
            *([plan_input("plan", current)] if current is not None else []),
            *given.inputs[1:],
        ],
        where=given.where,
        unlike=given.unlike,
        version=vani.__version__,
    )


@dataclass(frozen=True)
class ForwardInputs:
    """Inputs of plans of I/O nodes; `unlike` states how the machine differs from the one with the curves."""

    jobs: Jobs
    settings: ForwardSettings
    scenarios: Sequence[Scenario]
    inputs: list[PlanInput]
    where: str
    unlike: str | None


def forward_inputs(
    jobs: PathLike | Jobs,
    io_nodes: int,
    machine: System | None,
    *,
    policy: Policy = "mckp",
    objective: Objective = "sum",
    floor: float = 0.0,
    direct: bool | None = None,
    any_number: bool = False,
    rounding: Rounding = "half-up",
    nodes_per_io_node: float | None = None,
) -> ForwardInputs:
    """Read and check the inputs of `plan_forward`."""
    _refuse_wrong_figures(io_nodes, floor, nodes_per_io_node)
    layer = None if machine is None else machine.forwarding
    if direct is None:
        direct = layer is None or layer.direct_access is not False
    given = loaded("jobs", jobs, Jobs)
    known, folder = given.document, given.folder
    own = curves_of(machine) if machine is not None else []
    return ForwardInputs(
        jobs=known.model_copy(update={"jobs": [with_pattern(job, folder) for job in known.jobs]}),
        settings=ForwardSettings(
            io_nodes=io_nodes,
            policy=policy,
            objective=objective,
            floor=floor,
            direct=direct,
            any_number=any_number,
            rounding=rounding,
            nodes_per_io_node=nodes_per_io_node,
        ),
        scenarios=own or measured(),
        inputs=[given.source, *(plan_input("profile", path) for path in profiles_of(known, folder))],
        where=given.where,
        unlike=None if own else _unlike(machine),
    )


def _refuse_wrong_figures(
    io_nodes: int, floor: float, nodes_per_io_node: float | None
) -> None:
    # Written this way round because comparisons with NaN are false.
    if not 0 <= io_nodes <= 10_000_000:
        raise InputError(f"is {io_nodes:,}", where="--io-nodes", todo="give 0 to 10,000,000")
    if not 0 <= floor <= 1:
        raise InputError(f"is {floor:g}", where="--floor", todo="give a share, 0 to 1")
    if nodes_per_io_node is not None and not 0 < nodes_per_io_node <= 1e9:
        raise InputError(
            f"is {nodes_per_io_node:g}", where="--nodes-per-io-node", todo="give a number above 0"
        )


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
    return (
        AccessPattern(
            operation=pattern.operation, layout=layout, order=pattern.order, request=pattern.request
        ),
        pattern,
    )


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
    return (
        f"{text}; {machine.name} has {' and '.join(unlike) or 'other servers and networks'}: measure its own"
    )
