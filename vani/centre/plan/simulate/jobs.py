"""Jobs to simulate: from a scenario's own phases, a list of jobs, or the profile or store of an earlier run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from vani.centre.plan.schema.scenario import ScenarioPhase
from vani.centre.plan.simulate.calls import DataCalls, phases_of_calls
from vani.centre.plan.simulate.file_times import phases_of_files
from vani.errors import InputError
from vani.units import format_bytes

if TYPE_CHECKING:
    from vani.centre.plan.schema.jobs import Jobs, PlannedJob
    from vani.centre.plan.schema.scenario import Scenario, ScenarioJob
    from vani.schema.profile import Phase as ProfilePhase
    from vani.schema.profile import Profile

MOST_PHASES = 200_000


@dataclass(frozen=True)
class File:
    """A file that process `rank` moves."""

    path: str
    size: float
    rank: int
    layout: int | str | None


@dataclass(frozen=True)
class Job:
    """A job to simulate. If its files are known individually, `files` are those that its only phase moves."""

    name: str
    nodes: int
    processes: int
    start_s: float
    phases: list[ScenarioPhase]
    rate: float | None = None
    """Upper limit of the job's bytes per second; None: no limit."""
    files: list[File] = field(default_factory=list)


def jobs_of(
    scenario: Scenario,
    jobs: Jobs | None,
    profiles: Mapping[str, Profile],
    stores: Mapping[str, DataCalls],
    *,
    where: str,
) -> tuple[list[Job], list[tuple[str, str]]]:
    """All jobs, those of the scenario first, and missing figures as (name, reason).

    Parameters
    ----------
    profiles, stores
        Loaded documents, by the text that names them.

    Raises
    ------
    InputError
        Two jobs have the same name, or there are too many phases to simulate.
    """
    all_jobs: list[Job] = []
    lacks: list[tuple[str, str]] = []
    for outline in scenario.workload:
        if outline.phases is not None:
            all_jobs.append(
                Job(
                    outline.name,
                    outline.nodes,
                    outline.processes or outline.nodes,
                    outline.start_s,
                    outline.phases,
                )
            )
        elif outline.profile is not None:
            all_jobs += _of_profile(outline, profiles[outline.profile], lacks)
        elif outline.store is not None:
            all_jobs += _of_calls(outline, stores[outline.store], lacks)
    for planned in jobs.jobs if jobs is not None else ():
        all_jobs += _of_planned(planned, profiles, lacks)
    names = [job.name for job in all_jobs]
    twin = next(
        (name for name, again in zip(sorted(names), sorted(names)[1:], strict=False) if name == again), None
    )
    if twin is not None:
        raise InputError(f"two jobs are named {twin!r}", where=where, todo="give each a different name")
    phases = sum(phase.repeat for job in all_jobs for phase in job.phases)
    if phases > MOST_PHASES:
        raise InputError(
            f"the jobs have {phases:,} phases, repetitions counted",
            where=where,
            todo=f"at most {MOST_PHASES:,} are simulated: use fewer repetitions",
        )
    return all_jobs, lacks


def _of_planned(
    job: PlannedJob, profiles: Mapping[str, Profile], lacks: list[tuple[str, str]]
) -> Iterable[Job]:
    processes = job.processes or job.nodes
    rate = job.demand.iobw if job.demand is not None else None
    if job.creations:
        files = [
            File(
                creation.path,
                float(creation.size),
                (creation.rank if creation.rank is not None else n) % processes,
                creation.layout,
            )
            for n, creation in enumerate(job.creations)
        ]
        phase = ScenarioPhase(operation="write", bytes=sum(file.size for file in files), files=len(files))
        return [Job(job.name, job.nodes, processes, job.submit_s, [phase], rate, files)]
    if job.bytes is not None:
        pattern = job.pattern
        phase = ScenarioPhase(
            operation=pattern.operation if pattern is not None else "write",
            bytes=job.bytes,
            files=1 if pattern is not None and pattern.layout == "shared" else None,
            order=pattern.order if pattern is not None else "contiguous",
        )
        if pattern is None:
            lacks.append((job.name, "no pattern: one written file per process is assumed"))
        return [Job(job.name, job.nodes, processes, job.submit_s, [phase], rate)]
    if job.profile is not None:
        own = _JobOutline(job.name, job.nodes, job.processes, job.submit_s)
        return _of_profile(own, profiles[job.profile], lacks)
    lacks.append((job.name, "no bytes, files or profile: it moves nothing and is left out"))
    return []


def _of_calls(job: ScenarioJob, calls: DataCalls, lacks: list[tuple[str, str]]) -> Iterable[Job]:
    phases = phases_of_calls(calls)
    if not phases:
        lacks.append((job.name, "its store has no reads and writes: it is left out"))
        return []
    processes = job.processes or calls.ranks
    return [Job(job.name, min(job.nodes, processes), processes, job.start_s, phases)]


@dataclass(frozen=True)
class _JobOutline:
    name: str
    nodes: int
    processes: int | None
    start_s: float


def _of_profile(
    job: ScenarioJob | _JobOutline, profile: Profile, lacks: list[tuple[str, str]]
) -> Iterable[Job]:
    """One job per app of the run, with its phases and the pauses between them."""
    of_profile: list[Job] = []
    for app in profile.apps:
        own = [phase for phase in profile.phases or () if phase.app == app.name]
        name = job.name if len(profile.apps) == 1 else f"{job.name}/{app.name}"
        shared = bool(app.files.shared and not app.files.file_per_process)
        phases: list[ScenarioPhase] = []
        begin = own[0].start_s if own else 0.0
        now = begin
        for phase in sorted(own, key=lambda phase: phase.start_s):
            phases += _phases_of(phase, max(0.0, phase.start_s - now), shared=shared)
            now = max(now, phase.end_s)
        if not phases:
            why = "phases with bytes" if profile.phases is not None else f"phases ({_why_none(profile)})"
            phases, begin = phases_of_files([file for file in profile.files if app.name in file.apps], app.processes)
            if not phases:
                lacks.append((name, f"its profile has no {why}, nor times of files with bytes: it is left out"))
                continue
            moved, all_bytes = sum(phase.bytes for phase in phases), app.io.bytes.total
            rest = 0.0 if all_bytes is None else all_bytes - moved
            omission = f", {format_bytes(rest)} are left out" if rest >= 1 else ""
            lacks.append(
                (name, f"its profile has no {why}: bytes are spread evenly over the time of each listed file{omission}")
            )
        if any(phase.io.ops is None for phase in own):
            lacks.append((name, "its profile lacks the calls of phases: its opens are not simulated"))
        processes = job.processes or app.processes
        nodes = min(job.nodes if job.nodes > 1 else profile.job.nodes or job.nodes, processes)
        of_profile.append(Job(name, nodes, processes, job.start_s + begin, phases))
    if not profile.apps:
        lacks.append((job.name, "its profile has no apps: it is left out"))
    if any(trace.complete is False for trace in profile.traces):
        lacks.append((job.name, "its trace is damaged: the missing part is not simulated"))
    return of_profile


def _why_none(profile: Profile) -> str:
    return profile.provenance.get("phases", "made with --quick")


def _phases_of(phase: ProfilePhase, gap: float, *, shared: bool) -> list[ScenarioPhase]:
    count = phase.count
    # Similar phases are evenly spaced, and the time between them is computing.
    pause = max(0.0, (phase.end_s - phase.start_s - phase.runtime_s) / (count - 1)) if count > 1 else 0.0
    busy = phase.io.busy_s.total if phase.io.busy_s is not None else None
    # The time between the calls of a phase becomes computing before it.
    within = max(0.0, phase.runtime_s - busy) / count if busy is not None else 0.0
    directions: tuple[tuple[Literal["read", "write"], int | None], ...] = (
        ("read", phase.io.bytes.read),
        ("write", phase.io.bytes.written),
    )
    opens = phase.io.ops.metadata if phase.io.ops is not None else 0
    phases: list[ScenarioPhase] = []
    for operation, moved in directions:
        if moved:
            first = not phases
            phases.append(
                ScenarioPhase(
                    operation=operation,
                    bytes=moved / count,
                    files=1 if shared else None,
                    opens=opens / count if first else 0.0,
                    compute_s=within + (pause if count > 1 else gap) if first else 0.0,
                    repeat=count,
                )
            )
    if len(phases) > 1 and count > 1:
        # Reads and writes of a repeated phase alternate. Simulating one after the other keeps bytes and pauses.
        phases = [phase.model_copy(update={"compute_s": phase.compute_s / len(phases)}) for phase in phases]
    return phases
