"""The jobs of a simulation: what they read and write, and what plans chose for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from vani.centre.columns import Flags, Floats, Ints
from vani.centre.plan.schema.jobs import Jobs, PlannedJob, refuse_twins
from vani.centre.plan.schema.plans import ForwardPlan, PathPlan, PlacedExtent, PlacedFile, PlacePlan, Plan
from vani.centre.plan.schema.scenario import Scenario, ScenarioJob, ScenarioPhase
from vani.errors import InputError
from vani.units import counted, format_bytes

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Phase, Profile
    from vani.store.read import Store

# Phases of a run, derived from the data calls in a store.

_MAX_CALLS: Final = 100_000_000
_MAX_PHASES: Final = 2000
_GAP_SHARE: Final = 0.01
_LEAST_GAP_S: Final = 0.01
_NESTED: Final = 1 << 11
_STREAMS: Final = 1
"""Last layer of the file system: 0 is POSIX, 1 is stdio."""


@dataclass(frozen=True)
class DataCalls:
    """Reads and writes of data-set files. Arrays have shape (calls,), times are seconds since the start of the run."""

    app: str
    ranks: int
    start: Floats
    end: Floats
    reads: Flags
    bytes: Floats
    file: Ints
    metadata: int
    """Number of metadata calls to the file system."""


def data_calls(store: Store) -> DataCalls:
    """Read the data calls of a store.

    Raises
    ------
    StoreError
        The store is damaged.
    InputError
        The store has too many calls to simulate one by one.
    """
    manifest = store.manifest
    if manifest.records > _MAX_CALLS:
        raise InputError(
            f"contains {manifest.records:,} calls", where=store.path, todo="name the profile of that run instead"
        )
    files = store.files
    ordinary = np.array(files["file"].to_numpy()[files["class"].to_numpy() == 0])
    columns_of_batches: list[tuple[Ints, ...]] = []
    metadata = 0
    columns = ("layer", "kind", "flags", "file", "bytes", "start_ns", "duration_ns")
    for part in manifest.parts:
        for batch in store.batches(part, columns):
            layer, kind, flags = (
                batch.column(name).to_numpy(zero_copy_only=False) for name in ("layer", "kind", "flags")
            )
            own = (layer <= _STREAMS) & (flags & _NESTED == 0)
            metadata += int(np.count_nonzero(own & (kind == 2)))
            file, moved, start, took = (
                batch.column(name).fill_null(-1).to_numpy(zero_copy_only=False)
                for name in ("file", "bytes", "start_ns", "duration_ns")
            )
            rows = own & (kind <= 1) & (moved > 0) & np.isin(file, ordinary)
            columns_of_batches.append((start[rows], took[rows], kind[rows], moved[rows], file[rows]))
    begin = manifest.begin_ns
    start, took, kind, moved, file = (
        np.concatenate([np.zeros(0), *parts]) for parts in zip(*columns_of_batches, strict=True)
    )
    begun = (start - begin) / 1e9
    end = begun + took / 1e9
    return DataCalls(manifest.app, manifest.ranks, begun, end, kind == 0, moved, file.astype(np.int64), metadata)


def phases_of_calls(calls: DataCalls) -> list[ScenarioPhase]:
    """Split a run into phases at pauses longer than 1 % of the time from first to last call and than 10 ms.

    A phase that reads and writes reads first. Its bytes are spread evenly over all processes. Metadata calls are
    spread over the phases in proportion to their data calls.
    """
    if not len(calls.start):
        return []
    order = np.argsort(calls.start, kind="stable")
    start, reached = calls.start[order], np.maximum.accumulate(calls.end[order])
    gap = max(_LEAST_GAP_S, _GAP_SHARE * float(reached[-1] - start[0]))
    # With too many pauses, only the longest count.
    pauses = start[1:] - reached[:-1]
    if np.count_nonzero(pauses > gap) > _MAX_PHASES:
        gap = float(np.sort(pauses)[-_MAX_PHASES])
    cuts = np.concatenate([[0], np.flatnonzero(pauses > gap) + 1, [len(start)]])
    phases: list[ScenarioPhase] = []
    before = 0.0
    idle = np.concatenate([[0.0], np.maximum(pauses, 0.0)])
    for low, high in pairwise(cuts.tolist()):
        rows = order[low:high]
        # The time between the calls of a phase becomes computing before it.
        pause = max(0.0, float(start[low]) - before) + float(idle[low + 1 : high].sum())
        opens = calls.metadata * len(rows) / len(order)
        by_direction = (rows[calls.reads[rows]], rows[~calls.reads[rows]])
        moved = [(float(calls.bytes[some].sum()), _of_files(len(np.unique(calls.file[some])))) for some in by_direction]
        phases += _read_and_written(moved, opens, pause)
        before = float(reached[high - 1])
    return phases


def _read_and_written(
    moved: Sequence[tuple[float, Mapping[str, Any]]], opens: float, pause: float
) -> list[ScenarioPhase]:
    """A phase for what is read, then one for what is written: bytes and other fields of each; none without bytes."""
    phases: list[ScenarioPhase] = []
    for operation, (size, more) in zip(("read", "write"), moved, strict=True):
        if size:
            begin = {"opens": 0.0, "compute_s": 0.0} if phases else {"opens": opens, "compute_s": pause}
            phases.append(ScenarioPhase.model_validate({"operation": operation, "bytes": size, **begin, **more}))
    return phases


def _of_files(number: int) -> dict[str, Any]:
    """Phases with different numbers of files use different files."""
    return {"files": number, "file_set": f"{number} files"}


# Phases of a run from the times of its files, for sources without the time of each call (Tarazu, section 6.3).
#
# The time of a file runs from its first call to its last. Its bytes, metadata operations and time in calls are spread
# evenly over that time and summed over all files, stretch by stretch. Time in a stretch that is not I/O becomes
# computing before it.

MAX_STRETCHES: Final = 200
"""Most stretches. If there are more, the time is cut into equal ones."""
_LEAST_S: Final = 1e-6
"""Duration of a file whose first call is its last."""


def phases_of_files(files: Sequence[FileEntity], processes: int) -> tuple[list[ScenarioPhase], float]:
    """Phases in chronological order, and seconds from the start of the workload to the first call on a file.

    Parameters
    ----------
    files
        Files of one app. Those without bytes or times are left out.
    processes
        Number of processes of the app.
    """
    rows = np.array(
        [
            (
                file.first_s,
                file.last_s,
                file.io.bytes.read or 0,
                file.io.bytes.written or 0,
                file.io.ops.metadata if file.io.ops is not None else 0,
                file.io.time_s.total
                if file.io.time_s is not None and file.io.time_s.total is not None
                else 0.0,
                file.processes,
            )
            for file in files
            if file.first_s is not None
            and file.last_s is not None
            and (file.io.bytes.read or file.io.bytes.written)
        ],
        dtype=np.float64,
    )
    if not len(rows):
        return [], 0.0
    first, last, read, written, metadata, busy, users = rows.T
    last = np.maximum(last, first + _LEAST_S)
    edges = np.unique(np.concatenate([first, last]))
    if len(edges) > MAX_STRETCHES + 1:
        edges = np.linspace(edges[0], edges[-1], MAX_STRETCHES + 1)
    low, high = edges[:-1, None], edges[1:, None]
    # Share of each file in each stretch, shape (stretches, files).
    part = np.maximum(0.0, np.minimum(last, high) - np.maximum(first, low)) / (last - first)
    # Processes work in parallel: at least the time of the busiest file, and at least the total spread over all.
    in_calls = np.maximum((part * (busy / np.maximum(users, 1))).max(axis=1), part @ busy / processes)
    pauses = np.maximum(0.0, np.diff(edges) - in_calls)
    phases: list[ScenarioPhase] = []
    pause = 0.0
    all_opens = part @ metadata
    for stretch in range(len(part)):
        pause += float(pauses[stretch])
        own = (part[stretch] * read, part[stretch] * written)
        moved = [(float(some.sum()), _of_files(int(np.count_nonzero(some)))) for some in own]
        new = _read_and_written(moved, float(all_opens[stretch]), pause)
        phases, pause = phases + new, 0.0 if new else pause
    return phases, float(edges[0])


# Choices that plans make for jobs: I/O nodes, targets, a measured bandwidth.
#
# `BY_KIND` has a function for each kind of plan, from the plan, the names of the running jobs and the number
# of I/O nodes
# to `Choices`. Anything that it leaves out is chosen as without a plan.

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
    extents: Mapping[tuple[str, str], Sequence[PlacedExtent]] = field(default_factory=lambda: MappingProxyType({}))
    rates: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    lacks: Sequence[tuple[str, str]] = ()


def choices_of(plans: Sequence[Plan], jobs: Collection[str], io_nodes: int) -> Choices:
    """Merge the choices of several plans.

    Raises
    ------
    InputError
        Two plans have the same kind, a kind is not simulated, or a plan needs more I/O nodes than there are.
    """
    twin, times = Counter(plan.kind for plan in plans).most_common(1)[0] if plans else ("", 0)
    if times > 1:
        raise InputError(f"two plans are of kind {twin}", where="plans", todo="name one of each kind")
    choices = []
    for plan in plans:
        if plan.kind not in BY_KIND:
            what = f"a plan of kind {plan.kind} decides nothing that is simulated"
            raise InputError(what, where="plans", todo=f"these do: {', '.join(BY_KIND)}")
        choices.append(BY_KIND[plan.kind](plan, jobs, io_nodes))
    return Choices(
        {job: nodes for choice in choices for job, nodes in choice.io_nodes.items()},
        {key: parts for choice in choices for key, parts in choice.extents.items()},
        {job: rate for choice in choices for job, rate in choice.rates.items()},
        [lack for choice in choices for lack in choice.lacks],
    )


def _forward(plan: ForwardPlan, jobs: Collection[str], io_nodes: int) -> Choices:
    used = plan.after.io_nodes
    if used > io_nodes:
        what = f"the plan assigns {used:,} I/O nodes, the machine has {io_nodes:,}"
        raise InputError(what, where="plans", todo="give `machine.io_nodes`, or a plan for that machine")
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
    why = "the forward plan does not mention it: its nodes are spread over all I/O nodes"
    return Choices(io_nodes=nodes, rates=rates, lacks=[(job, why) for job in jobs if job not in nodes])


def _place(plan: PlacePlan, jobs: Collection[str], _: int) -> Choices:
    if not plan.pin:
        why = "the plan of OSTs leaves the choice to Lustre (`pin: false`): its files are placed as without the plan"
        return Choices(lacks=[(job, why) for job in jobs])
    extents = extents_of_plan(plan.files, jobs)
    placed = {job for job, _ in extents}
    why = "the plan of OSTs places none of its files: they are placed as without the plan"
    return Choices(extents=extents, lacks=[(job, why) for job in jobs if job not in placed])


def extents_of_plan(
    files: Iterable[PlacedFile], jobs: Collection[str]
) -> dict[tuple[str, str], Sequence[PlacedExtent]]:
    """Extents by job and path. A file with an extent that is left to Lustre is placed as without a plan."""
    return {
        (file.job, file.path): file.extents
        for file in files
        if file.job in jobs and file.extents and not any(extent.is_left for extent in file.extents)
    }


def refuse_other_paths(choices: Choices, jobs: Sequence[Job], where: str) -> list[tuple[str, str]]:
    """Name the files of a plan that no job writes, as (job, reason).

    Raises
    ------
    InputError
        The plan places files, and none of them is written: it is for other paths.
    """
    written = {
        (job.name, path)
        for job in jobs
        for path in (
            [file.path for file in job.files]
            if job.files
            else {
                f"{phase.file_set}.{n}" for phase in job.phases for n in range(phase.files or job.processes)
            }
        )
    }
    others = [key for key in choices.extents if key not in written]
    if choices.extents and len(others) == len(choices.extents):
        job, path = others[0]
        what = f"the plan places {path} of job {job}, and no job of the scenario writes that"
        raise InputError(what, where=where, todo="give the jobs.yaml from which the plan was made")
    count = Counter(job for job, _ in others)
    return [(job, f"it does not write {counted(number, 'file')} of the plan of OSTs") for job, number in count.items()]


def _path(plan: PathPlan, jobs: Collection[str], io_nodes: int) -> Choices:
    most = max((part.number for job in plan.jobs for part in job.map), default=-1) + 1
    if most > io_nodes:
        what = f"the plan uses I/O node {most:,} of the snapshot, the machine has {io_nodes:,}"
        raise InputError(what, where="plans", todo="give `machine.io_nodes`, or a plan for that machine")
    nodes = {
        job.name: [part.number for part in job.map for _ in range(part.nodes)]
        for job in plan.jobs
        if job.name in jobs and job.map
    }
    why = "the plan of paths does not mention it: its nodes are spread over all I/O nodes"
    return Choices(io_nodes=nodes, lacks=[(job, why) for job in jobs if job not in nodes])


BY_KIND: Final[dict[str, Callable[[Any, Collection[str], int], Choices]]] = {
    "forward": _forward,
    "place": _place,
    "path": _path,
}


# Jobs to simulate: from a scenario's own phases, a list of jobs, or the profile or store of an earlier run.

MAX_PHASES = 200_000
_MAX_BYTES: Final = 1e18
"""Most bytes of a phase. The sizes of its files decide what is moved."""


@dataclass(frozen=True)
class File:
    """A file that process `rank` moves, or all processes of the job if that is None."""

    path: str
    size: float
    rank: int | None
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
            processes = outline.processes or outline.nodes
            all_jobs.append(Job(outline.name, outline.nodes, processes, outline.start_s, outline.phases))
        elif outline.profile is not None:
            all_jobs += _of_profile(outline, profiles[outline.profile], lacks)
        elif outline.store is not None:
            all_jobs += _of_calls(outline, stores[outline.store], lacks)
    for planned in jobs.jobs if jobs is not None else ():
        all_jobs += _of_planned(planned, profiles, lacks)
    refuse_twins("job", [job.name for job in all_jobs], where)
    phases = sum(phase.repeat for job in all_jobs for phase in job.phases)
    if phases > MAX_PHASES:
        what = f"the jobs have {phases:,} phases, repetitions counted"
        raise InputError(what, where=where, todo=f"at most {MAX_PHASES:,} are simulated: use fewer repetitions")
    return all_jobs, lacks


def _of_planned(job: PlannedJob, profiles: Mapping[str, Profile], lacks: list[tuple[str, str]]) -> Iterable[Job]:
    if job.creations:
        return [job_of_creations(job)]
    if job.bytes is not None:
        shared = job.pattern is not None and job.pattern.layout == "shared"
        phase = _only_phase(job, job.bytes, 1 if shared else None)
        if job.pattern is None:
            lacks.append((job.name, "no pattern: one written file per process is assumed"))
        else:
            phase = phase.model_copy(update={"operation": job.pattern.operation})
        return [Job(job.name, job.nodes, job.processes or job.nodes, job.submit_s, [phase], _rate(job))]
    if job.profile is not None:
        own = ScenarioJob(name=job.name, nodes=job.nodes, processes=job.processes, start_s=job.submit_s)
        return _of_profile(own, profiles[job.profile], lacks)
    lacks.append((job.name, "no bytes, files or profile: it moves nothing and is left out"))
    return []


def job_of_creations(job: PlannedJob) -> Job:
    """A job that writes the files of its `creations`.

    Without a number of processes, there are as many as ranks. A file without a rank belongs to the process of its
    place in the list; by a pattern with a shared file, all processes write each file.
    """
    creations, pattern = job.creations or [], job.pattern
    ranks = [creation.rank for creation in creations if creation.rank is not None]
    processes = job.processes or max(job.nodes, max(ranks, default=0) + 1)
    shared = pattern is not None and pattern.layout == "shared" and processes > 1
    files = [
        File(
            creation.path,
            float(creation.size),
            None if shared else (n if creation.rank is None else creation.rank) % processes,
            creation.layout,
        )
        for n, creation in enumerate(creations)
    ]
    phase = _only_phase(job, min(_MAX_BYTES, sum(file.size for file in files)), len(files))
    return Job(job.name, job.nodes, processes, job.submit_s, [phase], _rate(job), files)


def _only_phase(job: PlannedJob, size: float, files: int | None) -> ScenarioPhase:
    """The phase of a job that writes by its pattern."""
    known = {} if job.pattern is None else {"order": job.pattern.order, "request": job.pattern.request}
    return ScenarioPhase.model_validate({"operation": "write", "bytes": size, "files": files, **known})


def _rate(job: PlannedJob) -> float | None:
    return job.demand.iobw if job.demand is not None else None


def _of_calls(job: ScenarioJob, calls: DataCalls, lacks: list[tuple[str, str]]) -> Iterable[Job]:
    phases = phases_of_calls(calls)
    if not phases:
        lacks.append((job.name, "its store has no reads and writes: it is left out"))
        return []
    processes = job.processes or calls.ranks
    return [Job(job.name, min(job.nodes, processes), processes, job.start_s, phases)]


def _of_profile(job: ScenarioJob, profile: Profile, lacks: list[tuple[str, str]]) -> Iterable[Job]:
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


def _phases_of(phase: Phase, gap: float, *, shared: bool) -> list[ScenarioPhase]:
    count = phase.count
    # Similar phases are evenly spaced, and the time between them is computing.
    pause = max(0.0, (phase.end_s - phase.start_s - phase.runtime_s) / (count - 1)) if count > 1 else 0.0
    busy = phase.io.busy_s.total if phase.io.busy_s is not None else None
    # The time between the calls of a phase becomes computing before it.
    within = max(0.0, phase.runtime_s - busy) / count if busy is not None else 0.0
    opens = phase.io.ops.metadata if phase.io.ops is not None else 0
    files = {"files": 1 if shared else None, "repeat": count}
    moved = [((size or 0) / count, files) for size in (phase.io.bytes.read, phase.io.bytes.written)]
    phases = _read_and_written(moved, opens / count, within + (pause if count > 1 else gap))
    if len(phases) > 1 and count > 1:
        # Reads and writes of a repeated phase alternate. Simulating one after the other keeps bytes and pauses.
        phases = [phase.model_copy(update={"compute_s": phase.compute_s / len(phases)}) for phase in phases]
    return phases
