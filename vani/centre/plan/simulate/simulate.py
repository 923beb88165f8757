"""Simulates jobs that share a machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import vani
from vani.centre.columns import Floats
from vani.centre.plan import inputs as documents
from vani.centre.plan.forward import files_of_jobs
from vani.centre.plan.schema import plans as schema
from vani.centre.plan.schema.jobs import Jobs
from vani.centre.plan.schema.plans import SimulateOptions, SimulatePlan
from vani.centre.plan.schema.scenario import Failure, Placement, Scenario, Variant
from vani.centre.plan.schema.snapshot import Snapshot
from vani.centre.plan.simulate import jobs as workloads
from vani.centre.plan.simulate.events import Change, SimulatedRun, most_steps, run
from vani.centre.plan.simulate.flows import Builder, Built
from vani.centre.plan.simulate.machine import KINDS, RANDOM, Machine, Placer, machine_of
from vani.centre.plan.simulate.metadata_target import on_metadata_target
from vani.cli.profile import profile_of
from vani.cli.sources import Decoding, Resources, is_trace
from vani.errors import InputError
from vani.schema.advice import Expected
from vani.schema.document import dumps
from vani.schema.profile import Profile
from vani.schema.settings import PathLike
from vani.store.read import open_store
from vani.systems import known_systems, load_system, no_such_system
from vani.units import counted, first_of, format_seconds

if TYPE_CHECKING:
    from vani.engine.executor import Progress, SchedulerLike
    from vani.schema.system import System

# A scenario's variants, each simulated once for each seed.

EXACT: Final = 2000
"""Without an explicit tolerance, up to this many flows are simulated exactly."""
MAX_RUN: Final = 1_000_000
"""Most flows of a variant over all seeds: all runs stay in memory until the median is known."""
TOLERANCE: Final = 0.005
"""Default tolerance for more flows. For 1,000 flows on 3,600 targets, ends are within 1 % of the exact run."""


@dataclass(frozen=True)
class Named:
    """Documents that a scenario refers to, by the text that names them."""

    systems: Mapping[str, System] = field(default_factory=dict)
    snapshots: Mapping[str, Snapshot] = field(default_factory=dict)
    plans: Mapping[str, schema.Plan] = field(default_factory=dict)
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    stores: Mapping[str, workloads.DataCalls] = field(default_factory=dict)
    jobs: Jobs | None = None
    where: str = "scenario"
    """Name of the scenario in errors."""


@dataclass(frozen=True)
class Played:
    """A simulated variant: its inputs, and one run per seed."""

    variant: Variant
    placement: Placement
    serial: bool
    pieces: str
    plans: Sequence[schema.Plan]
    machine: Machine
    jobs: Sequence[workloads.Job]
    choices: workloads.Choices
    runs: Sequence[tuple[Built, SimulatedRun]]
    changes: Sequence[Change]
    tolerance: float
    lacks: Sequence[tuple[str, str]]
    notes: Sequence[str] = ()

    @property
    def makespans(self) -> Floats:
        """End of the last job in each run, in seconds, shape (runs,); inf if a job never ends."""
        # A phase that never starts waits for a phase that never ends.
        ends = (np.where(np.isnan(run.phase_end), np.inf, run.phase_end) for _, run in self.runs)
        return np.array([float(end.max(initial=0.0)) for end in ends])

    @property
    def median(self) -> int:
        """Index of the run with the (lower) median makespan."""
        order = np.argsort(self.makespans, kind="stable")
        return int(order[(len(order) - 1) // 2])


def play(
    scenario: Scenario, variant: Variant, named: Named, *, tolerance: float | None = None, only: str | None = None
) -> Played:
    """Simulate one variant with every seed, or once if nothing is random.

    Parameters
    ----------
    only
        Name of a job to simulate alone.
    """
    figures, where = variant.machine or scenario.machine, named.where
    serial = (variant.stages or scenario.stages) == "serial"
    pieces = variant.pieces or scenario.pieces
    placement = variant.placement or scenario.placement
    jobs, lacks = workloads.jobs_of(scenario, named.jobs, named.profiles, named.stores, where=where)
    if only is not None:
        jobs = [job for job in jobs if job.name == only]
    machine = machine_of(
        figures,
        nodes=max(1, sum(job.nodes for job in jobs)),
        system=named.systems[figures.system] if figures.system is not None else None,
        snapshot=named.snapshots[figures.snapshot] if figures.snapshot is not None else None,
        serial=serial,
        where=where,
    )
    notes: list[str] = []
    if variant.data_on_mdt is not None:
        small = on_metadata_target(jobs, variant.data_on_mdt, machine.metadata_free, where)
        jobs, notes = small.jobs, small.notes(variant.data_on_mdt)
    _refuse_unmoving(jobs, machine, where)
    names = variant.plans if variant.plans is not None else scenario.plans
    plans = [named.plans[name] for name in names]
    choices = workloads.choices_of(plans, [job.name for job in jobs], machine.io_nodes)
    if only is None:
        lacks += workloads.refuse_other_paths(choices, jobs, where)
    failures = variant.failures if variant.failures is not None else scenario.failures
    seeds = scenario.seeds if placement.policy in RANDOM else scenario.seeds[:1]
    runs, changes, used = [], [], 0.0
    for seed in seeds:
        placer = Placer(machine.targets, placement, seed)
        built = Builder(jobs, machine, placer, choices, pieces, serial, variant.layout, where).built()
        flows = len(built.work.count)
        if flows * len(seeds) > MAX_RUN:
            todo = f"at most {MAX_RUN:,} flows over all seeds: use fewer seeds"
            raise InputError(f"{flows:,} flows with {len(seeds):,} seeds", where=where, todo=todo)
        changes = _changes(failures, machine, built, where)
        used = (0.0 if flows <= EXACT else TOLERANCE) if tolerance is None else tolerance
        runs.append((built, run(built.work, changes, tolerance=used, keep_steps=True)))
    return Played(variant, placement, serial, pieces, plans, machine, jobs, choices, runs, changes, used, lacks, notes)


def _refuse_unmoving(jobs: Sequence[workloads.Job], machine: Machine, where: str) -> None:
    moving = [(job, phase) for job in jobs for phase in job.phases if phase.bytes and phase.storage == "file_system"]
    for word, stages_of in (("read", "stage_in"), ("write", "stage_out")):
        job = next((job for job, phase in moving if phase.operation in {word, stages_of}), None)
        for kind in ("node", "io_node", "whole", "server", "target"):
            stage = machine.stages.get(kind)
            if job is not None and stage is not None and stage.pace.of(reads=word == "read") == 0:
                what = f"machine.{kind} {word}s 0 bytes per second: job {job.name!r} would never end"
                raise InputError(what, where=where, todo="give a rate above 0, or a failure with its time")


def _changes(failures: Sequence[Failure], machine: Machine, built: Built, where: str) -> list[Change]:
    changes: list[Change] = []
    for failure in failures:
        stage = machine.stages.get(failure.kind)
        if stage is None:
            what = f"a {failure.kind} fails, but the machine has none with a rate"
            raise InputError(what, where=where, todo=f"give `machine.{failure.kind}`")
        first = built.place_of[failure.kind]
        for number in failure.which:
            if number >= len(stage):
                what = f"{failure.kind} {number} fails, but there are {len(stage):,}, counted from 0"
                raise InputError(what, where=where, todo="name others")
            changes.append(Change(failure.from_s, first + number, failure.factor))
            if failure.until_s is not None:
                changes.append(Change(failure.until_s, first + number, 1.0))
    return changes


def rate_of(built: Built, run: SimulatedRun, operation: str, job: int | None = None) -> float | None:
    """Bytes per second while any phase does `operation`; None if none does or one never ends."""
    phases = range(len(built.work.phases)) if job is None else built.phases_by_job[job]
    rows = [n for n in phases if built.direction[n] == operation and len(built.work.phases[n].flows)]
    if not rows:
        return None
    begin, end = run.phase_begin[rows], run.phase_end[rows]
    if not np.isfinite(end).all() or not np.isfinite(begin).all():
        return None
    moved = float(built.bytes_by_phase[rows].sum())
    seconds = union(begin, end)
    return moved / seconds if seconds > 0 and moved else None


def union(begin: Floats, end: Floats) -> float:
    """Length in seconds of the union of intervals."""
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], end[order]
    reached = np.maximum.accumulate(end)
    before = np.concatenate([[-np.inf], reached[:-1]])
    return float(np.maximum(0.0, reached - np.maximum(begin, before)).sum())


# Simulates a scenario and returns the outcome as a plan.

def simulate(
    scenario: Scenario, named: Named, *, tolerance: float | None = None, alone: bool = False,
    inputs: Sequence[schema.PlanInput] = (),
) -> SimulatePlan:
    """Simulate all variants of a scenario.

    Parameters
    ----------
    tolerance
        See `events.run`; None: exact for few flows.
    alone
        Also simulate each job alone, for its slowdown.

    Raises
    ------
    InputError
        The scenario contradicts itself or its inputs, or nothing in it could ever move.
    """
    scenario.refuse_contradictions(named.where)
    played = play_all(scenario, named, tolerance=tolerance)
    outcomes = [_outcome(trial) for trial in played]
    if alone:
        outcomes = [_with_alone(*pair, scenario, named, tolerance) for pair in zip(outcomes, played, strict=True)]
    last = played[-1]
    return SimulatePlan(
        version=vani.__version__,
        inputs=list(inputs),
        simulate=schema.SimulateSettings(seeds=scenario.seeds, tolerance=last.tolerance, alone=alone),
        outcomes=outcomes,
        timeline=_timeline(last),
        expected=_expected(played) if len(played) > 1 else None,
        unplaced=list(_never(played)),
        over_capacity=list(_over(played)),
        no_data=_once(
            schema.Left(name=name, reason=why)
            for trial in played
            for name, why in (*trial.machine.lacks, *trial.lacks, *trial.choices.lacks)
        ),
        notes=list(dict.fromkeys(_notes(played))),
    )


def play_all(scenario: Scenario, named: Named, *, tolerance: float | None = None) -> list[Played]:
    """Simulate every variant, or the scenario itself if it has no variants."""
    variants = scenario.variants or [Variant(name="scenario")]
    return [play(scenario, variant, named, tolerance=tolerance) for variant in variants]


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _outcome(played: Played) -> schema.SimulatedVariant:
    spans = played.makespans
    built, run = played.runs[played.median]
    placed = built.placer.placed[played.machine.targets.usable]
    ended = spans[np.isfinite(spans)]
    return schema.SimulatedVariant(
        name=played.variant.name,
        stages="serial" if played.serial else "overlapped",
        pieces="in_turn" if played.pieces == "in_turn" else "contiguous",
        placement=played.placement,
        plans=[plan.kind for plan in played.plans],
        runs=len(spans),
        makespan_s=_finite(spans[played.median]),
        low_s=float(ended.min()) if len(ended) else None,
        high_s=_finite(spans.max()),
        read=_median(rate_of(*run, "read") for run in played.runs),
        write=_median(rate_of(*run, "write") for run in played.runs),
        ost_cost=float(placed.max() / placed.mean()) if placed.any() else None,
        jobs=[_job(number, played, built, run) for number in range(len(played.jobs))],
        by_stage=list(_stages(played, built, run)),
        events=run.events,
    )


def _median(rates: Iterable[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return float(np.median(known)) if known else None


def _job(number: int, played: Played, built: Built, run: SimulatedRun) -> schema.SimulatedJob:
    job = played.jobs[number]
    rows = built.phases_by_job[number]
    begin, end = run.phase_begin[rows], run.phase_end[rows]
    ends = bool(rows) and bool(np.isfinite(end).all())
    bound = run.bound[number]
    return schema.SimulatedJob(
        name=job.name,
        begin_s=job.start_s,
        end_s=float(end.max()) if ends else None,
        io_s=union(begin, end) if ends else None,
        bytes=float(run.moved[number]),
        read=rate_of(built, run, "read", number),
        write=rate_of(built, run, "write", number),
        bound={
            name: min(1.0, float(share / bound.sum()))
            for name, share in sorted(zip((*KINDS, "process"), bound, strict=True), key=lambda pair: -pair[1])
            if share > 0
        },
    )


def _stages(played: Played, built: Built, run: SimulatedRun) -> Iterable[schema.SimulatedStage]:
    if not run.elapsed:
        return
    for kind, stage in played.machine.stages.items():
        first = built.place_of[kind]
        busy = run.carried[first : first + len(stage)] / run.elapsed
        if busy.any():
            yield schema.SimulatedStage(
                kind=kind,
                members=len(stage),
                used=int(np.count_nonzero(busy)),
                mean=float(busy.mean()),
                most=float(busy.max()),
                busiest=int(busy.argmax()),
            )


def _timeline(played: Played) -> list[schema.Moment]:
    _, run = played.runs[played.median]
    steps = run.steps
    every = -(-len(steps) // most_steps(len(played.jobs))) or 1
    moments = []
    for at in range(0, len(steps), every):
        chunk = steps[at : at + every]
        length = chunk[-1].end - chunk[0].begin
        if length <= 0:
            continue
        most = np.sum([step.most for step in chunk], axis=0) / length
        moments.append(
            schema.Moment(
                begin_s=chunk[0].begin,
                end_s=chunk[-1].end,
                rates=(np.sum([step.moved for step in chunk], axis=0) / length).tolist(),
                busy={kind: float(share) for kind, share in zip(KINDS, most, strict=True) if share > 0},
            )
        )
    return moments


def _with_alone(
    outcome: schema.SimulatedVariant, played: Played, scenario: Scenario, named: Named, tolerance: float | None
) -> schema.SimulatedVariant:
    jobs = []
    once = scenario.model_copy(update={"seeds": [scenario.seeds[played.median]]})
    for job in outcome.jobs:
        by_itself = play(once, played.variant, named, tolerance=tolerance, only=job.name)
        length = float(by_itself.makespans[0]) - job.begin_s
        slowdown = (job.end_s - job.begin_s) / length if job.end_s is not None and 0 < length < np.inf else None
        jobs.append(job.model_copy(update={"alone_s": _finite(length), "slowdown": slowdown}))
    return outcome.model_copy(update={"jobs": jobs})


def _expected(played: Sequence[Played]) -> Expected | None:
    """Speed-up of the last variant over the first, seed by seed if both are random."""
    first, last = played[0], played[-1]
    runs = {len(first.runs), len(last.runs)}
    if (len(runs) > 1 and 1 not in runs) or not np.isfinite([*first.makespans, *last.makespans]).all():
        return None
    before, after = float(first.makespans[first.median]), float(last.makespans[last.median])
    if not before or not after:
        return None
    gains = first.makespans / last.makespans
    many = len(gains) > 1
    ends = (float(gains.min()), float(gains.max())) if many else (None, None)
    method = f"end of the last job, {last.variant.name} compared with {first.variant.name}; "
    method += f"range over {len(gains)} seeds" if many else "one run each, so no range"
    return schema.expected_effect("makespan_s", before, after, method, speedup=before / after, ends=ends)


def _never(played: Sequence[Played]) -> Iterable[schema.Left]:
    for trial in played:
        built, run = max(trial.runs, key=lambda pair: int(np.count_nonzero(~np.isfinite(pair[1].phase_end))))
        for number, job in enumerate(trial.jobs):
            rows = built.phases_by_job[number]
            stuck = [n for n in rows if run.phase_end[n] == np.inf]
            if not stuck:
                continue
            flows = built.work.phases[stuck[0]].flows
            ends = run.flow_end[flows.start : flows.stop]
            count = int(built.work.count[flows.start : flows.stop][~np.isfinite(ends)].sum())
            waiting = sum(np.isnan(run.phase_end[n]) for n in rows)
            after = f", and {counted(int(waiting), 'phase', 'waits', 'wait')} behind it" if waiting else ""
            yield schema.Left(
                name=job.name,
                reason=f"{trial.variant.name}: {counted(count, 'process', 'never ends', 'never end')} the "
                f"{str(built.direction[stuck[0]]).replace('_', ' ')} begun at "
                f"{format_seconds(float(run.phase_begin[stuck[0]]))}: {_why(trial, built, run, stuck[0])}{after}",
            )


def _why(played: Played, built: Built, run: SimulatedRun, number: int) -> str:
    """Words for the resources without capacity on the path of a phase that never ends."""
    resources: set[int] = set()
    for flow in built.work.phases[number].flows:
        if np.isfinite(run.flow_end[flow]):
            continue
        low, high = built.work.use.first[built.work.chain[flow]]
        resources |= set(built.work.use.resource[low:high].tolist())
    dead = {change.resource for change in played.changes if change.factor == 0.0}
    dead |= set(np.flatnonzero(built.work.capacity == 0).tolist())
    names = []
    for resource in sorted(resources & dead):
        kind = KINDS[built.work.kind[resource]]
        names.append(f"{kind} {resource - built.place_of[kind]}")
    return f"{first_of(names, 5)} {'stands' if len(names) == 1 else 'stand'} still" if names else "it never recovers"


def _over(played: Sequence[Played]) -> Iterable[schema.Left]:
    for trial in played:
        targets = trial.machine.targets
        for built, _ in trial.runs:
            full = np.flatnonzero(built.placer.used > targets.size * (1 + 1e-12))
            if len(full):
                worst = int(full[np.argmax(built.placer.used[full] / targets.size[full])])
                yield schema.Left(
                    name=f"OST {targets.index[worst]}",
                    reason=f"{trial.variant.name}: {counted(len(full), 'target', 'would', 'would')} hold more than "
                    f"fits, this one {built.placer.used[worst] / targets.size[worst]:.2f} times",
                )
                break


def _notes(played: Sequence[Played]) -> Iterable[str]:
    for trial in played:
        yield from trial.machine.notes
        yield from (f"{trial.variant.name}: {note}" for note in trial.notes)
        if any(built.clipped for built, _ in trial.runs):
            targets = counted(int(trial.machine.targets.usable.sum()), "target")
            yield f"a file has at most one object on each target: layouts with more stripes than {targets} are cut"
        if any(built.has_dom for built, _ in trial.runs):
            yield "bytes on the metadata target are limited by the network only: that target's rate is not known"
        if trial.tolerance:
            yield (
                f"flows that end within {100 * trial.tolerance:.1f} % of the shortest flow are one event: end "
                "times are within about 1 % of an exact run (--tolerance 0)"
            )
    if any(trial.serial for trial in played):
        yield ("each flow passes one stage after another: jobs compete only in the same stage at the same time")


def _once(entries: Iterable[schema.Left]) -> list[schema.Left]:
    return list({(left.name, left.reason): left for left in entries}.values())


# Implements `vani plan simulate`.

_FILES = 1000
"""Maximum number of files in a profile made from a trace here; phases do not need them."""


def plan_simulate(
    scenario: PathLike | Scenario,
    settings: SimulateOptions | None = None,
    *,
    store: PathLike | None = None,
    scheduler: SchedulerLike = None,
    progress: Progress | None = None,
    **fields: Any,
) -> SimulatePlan:
    """Simulate jobs on a shared machine.

    Parameters
    ----------
    scenario
        A scenario.yaml, or the document itself.
    settings, fields
        How exact the simulation is, or single fields of `SimulateOptions`.
    store, scheduler, progress
        As in `vani.profile`, for traces in the scenario.

    Raises
    ------
    InputError
        A document cannot be used, or nothing can ever progress.
    """
    settings = SimulateOptions.of(settings, **fields)
    given = documents.loaded("scenario", scenario, Scenario)
    inputs = [given.source]
    with _read(given, inputs, store, scheduler, progress) as named:
        return simulate(given.document, named, tolerance=settings.tolerance, alone=settings.alone, inputs=inputs)


def files_of_scenario(scenario: Path) -> Iterator[Path]:
    """The scenario, and the files and folders it names."""
    yield scenario
    known, folder = Scenario.load(scenario), scenario.parent
    yield from (folder / name for name in _machines(known, "snapshot"))
    yield from (folder / name for name in _machines(known, "system") if name not in known_systems())
    yield from (folder / name for name in _plans(known))
    yield from (folder / job.profile for job in known.workload if job.profile is not None)
    for job in known.workload:
        if job.store is not None:
            yield from (path for path in (folder / job.store).rglob("*") if path.is_file())
    if known.jobs is not None:
        yield from files_of_jobs(folder / known.jobs, all_profiles=True)


@contextmanager
def _read(
    given: documents.LoadedInput[Scenario], inputs: list[schema.PlanInput], store: PathLike | None,
    scheduler: SchedulerLike, progress: Progress | None,
) -> Iterator[Named]:
    scenario, folder = given.document, given.folder

    def read(kind: documents.InputKind, name: str, model: type[documents.Document]) -> documents.Document:
        document = documents.loaded(kind, folder / name, model)
        inputs.append(document.source)
        return document.document

    systems = {name: _system(name, folder, inputs) for name in _machines(scenario, "system")}
    snapshots = {name: read("snapshot", name, Snapshot) for name in _machines(scenario, "snapshot")}
    plans = {name: read("plan", name, schema.Plan) for name in _plans(scenario)}
    jobs = None
    if scenario.jobs is not None:
        path, jobs = folder / scenario.jobs, read("jobs", scenario.jobs, Jobs)
        jobs.refuse_twins(str(path))
        layouts = documents.layout_files_of(jobs, path.parent)
        inputs += [documents.plan_input("layout", file) for file in dict.fromkeys(layouts.values())]
        jobs = documents.with_options(jobs, documents.read_layouts(layouts))
    places = {job.profile: folder / job.profile for job in scenario.workload if job.profile is not None}
    for job in jobs.jobs if jobs is not None else ():
        if job.profile is not None and job.bytes is None and not job.creations:
            places[job.profile] = (folder / str(scenario.jobs)).parent / job.profile
    stores = {job.store: _calls(folder / job.store, inputs) for job in scenario.workload if job.store is not None}
    with Resources(places.values(), Decoding.of(store=store, scheduler=scheduler), progress) as resources:
        profiles = {name: _profile(resources, path, inputs) for name, path in places.items()}
        yield Named(systems, snapshots, plans, profiles, stores, jobs, given.where)


def _calls(path: Path, inputs: list[schema.PlanInput]) -> workloads.DataCalls:
    calls = workloads.data_calls(open_store(path))
    digest = hashlib.sha256((path / "manifest.json").read_bytes()).hexdigest()
    inputs.append(schema.PlanInput(kind="trace", path=str(path), sha256=digest))
    return calls


def _profile(resources: Resources, path: Path, inputs: list[schema.PlanInput]) -> Profile:
    if not path.exists():
        raise InputError("no such profile or trace", where=path, todo="name one")
    trace = is_trace(path)
    profile = Profile.of(profile_of(resources, path, files=_FILES))
    if trace:
        # A trace consists of many files, so the digest is that of its profile.
        digest = hashlib.sha256(dumps(profile).encode()).hexdigest()
        inputs.append(schema.PlanInput(kind="trace", path=str(path), sha256=digest))
    else:
        inputs.append(documents.plan_input("profile", path))
    return profile


def _system(name: str, folder: Path, inputs: list[schema.PlanInput]) -> System:
    if name in known_systems():
        system = load_system(name)
        inputs.append(documents.plan_input("system", system).model_copy(update={"path": name}))
        return system
    if not (folder / name).is_file():
        raise no_such_system(name)
    inputs.append(documents.plan_input("system", folder / name))
    return load_system(folder / name)


def _machines(scenario: Scenario, what: str) -> list[str]:
    """The systems or snapshots that a scenario and its variants name, each once."""
    machines = [scenario.machine, *(variant.machine for variant in scenario.variants if variant.machine is not None)]
    return list(dict.fromkeys(name for machine in machines if (name := getattr(machine, what)) is not None))


def _plans(scenario: Scenario) -> list[str]:
    named = (name for variant in scenario.variants for name in variant.plans or ())
    return list(dict.fromkeys([*scenario.plans, *named]))

