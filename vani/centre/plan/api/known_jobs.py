"""Facts about a job before it starts, from a folder of earlier measurements by user and job name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vani.centre.plan.api.forward import with_pattern
from vani.centre.plan.api.inputs import plan_input
from vani.centre.plan.curves import offer_of
from vani.centre.plan.schema.jobs import Jobs, PlannedJob
from vani.centre.prolog.job_facts import JobFacts
from vani.errors import InputError
from vani.schema.host_list import expand

if TYPE_CHECKING:
    from vani.centre.plan.schema import PlanInput

_LONGEST: Final = 16 << 20
"""Maximum size of a profile in bytes; a prolog has no time for more files."""

_OF_ANY_SCALE: Final = ("bytes", "curve", "profile", "pattern", "demand", "mpi_io", "runs", "unknown")
_OF_THIS_SCALE: Final = ("creations", "io_s", "usual_stripes", "by_stripes", "by_plan", "reads_from", "avoid")

_FILE_NAME: Final = re.compile(r"[^/\x00-\x1f\x7f.][^/\x00-\x1f\x7f]{0,199}")


@dataclass(frozen=True)
class KnownJob:
    """A job as in jobs.yaml, the source of its facts, and what is missing."""

    planned: PlannedJob
    inputs: tuple[PlanInput, ...] = ()
    lacks: tuple[str, ...] = ()


def is_file_name(name: str | None) -> bool:
    """Whether a name that a user chose is a plain file name."""
    return name is not None and _FILE_NAME.fullmatch(name) is not None


def known_file(job: JobFacts, folder: Path | None) -> Path | None:
    """The document about jobs of this name: `USER/NAME.yaml`, or `NAME.yaml`; None if neither exists.

    Users choose job names, so a name that is not a plain file name is not looked up.
    """
    if folder is None or not is_file_name(job.name):
        return None
    folders = [folder]
    if job.user is not None and is_file_name(job.user):
        folders.insert(0, folder / job.user)
    names = (folder / f"{job.name}.yaml" for folder in folders)
    return next((path for path in names if path.is_file()), None)


def known_job(job: JobFacts, path: Path | None) -> KnownJob:
    """Complete a job from a jobs.yaml or from the profile of an earlier run.

    Unusable documents are skipped and reported in `lacks`; the job is still planned.

    Raises
    ------
    InputError
        The job's number of nodes is unknown.
    """
    nodes = job.nodes or len(_hosts_of(job))
    if not nodes:
        raise InputError("its number of nodes and its hosts are unknown", todo="set VANI_JOB_NODES in the prolog")
    plain = PlannedJob(name=job.job, nodes=nodes)
    if path is None:
        return KnownJob(plain, lacks=("jobs of this name are not known",))
    try:
        return _read(plain, path)
    except (InputError, OSError, ValueError) as error:
        return KnownJob(plain, lacks=(f"its known figures cannot be used: {error}",))


def _hosts_of(job: JobFacts) -> list[str]:
    return [] if job.hosts is None else expand(job.hosts)


def _read(plain: PlannedJob, path: Path) -> KnownJob:
    if path.stat().st_size > _LONGEST:
        raise InputError(
            f"is longer than {_LONGEST >> 20} MiB", where=path, todo="write a jobs.yaml with its curve"
        )
    with path.open("rb") as file:
        is_profile = b"vani.profile/" in file.read(4096)
    if is_profile:
        planned = with_pattern(plain.model_copy(update={"profile": path.name}), path.parent)
        return _judged(planned, (plan_input("profile", path),), ())
    known = Jobs.load(path).jobs
    near = min(known, key=lambda job: max(job.nodes / plain.nodes, plain.nodes / job.nodes))
    lacks = []
    if near.nodes != plain.nodes:
        lacks.append(f"its known figures are from {near.nodes:,} nodes, not {plain.nodes:,}")
    processes = None if near.processes is None else max(1, round(near.processes / near.nodes * plain.nodes))
    fields = {key: getattr(near, key) for key in _OF_ANY_SCALE}
    if near.nodes == plain.nodes:
        # How long it takes and which files it creates depend on its scale.
        fields |= {key: getattr(near, key) for key in _OF_THIS_SCALE}
    fields |= {"processes": processes, "curve_nodes": near.curve_nodes or near.nodes}
    planned = with_pattern(plain.model_copy(update=fields), path.parent)
    return _judged(planned, tuple(_inputs(path, planned)), tuple(lacks))


def _inputs(path: Path, job: PlannedJob) -> Iterator[PlanInput]:
    yield plan_input("jobs", path)
    if job.profile is not None:
        yield plan_input("profile", path.parent / job.profile)


def _judged(job: PlannedJob, inputs: tuple[PlanInput, ...], lacks: tuple[str, ...]) -> KnownJob:
    """Drop a curve without a value for this number of nodes: one job must not prevent plans for the others."""
    job = job.model_copy(update={"profile": None})
    try:
        offer_of(job, (), direct=False, estimate="none")
    except InputError as error:
        return KnownJob(job.model_copy(update={"curve": None}), inputs, (*lacks, error.what))
    return KnownJob(job, inputs, lacks)
