"""Implements `vani plan simulate`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import vani
from vani.api.arguments import PathLike
from vani.api.run import Run
from vani.api.source import is_trace, profile_of, read_profile
from vani.centre.plan.api.inputs import layout_files_of, loaded, plan_input, read_layouts, with_options
from vani.centre.plan.schema import Plan, PlanInput, SimulatePlan
from vani.centre.plan.schema.jobs import Jobs
from vani.centre.plan.schema.scenario import Scenario
from vani.centre.plan.schema.snapshot import Snapshot
from vani.centre.plan.simulate.calls import DataCalls, data_calls
from vani.centre.plan.simulate.play import Named
from vani.centre.plan.simulate.simulate import simulate
from vani.errors import InputError
from vani.schema.document import dumps
from vani.store.read import open_store
from vani.systems import known_systems, load_system, no_such_system

if TYPE_CHECKING:
    from vani.engine.executor import Progress
    from vani.engine.scheduler import SchedulerLike
    from vani.schema.profile import Profile
    from vani.schema.system import System

_FILES = 1000
"""Maximum number of files in a profile made from a trace here; phases do not need them."""


def plan_simulate(
    scenario: PathLike | Scenario,
    *,
    tolerance: float | None = None,
    alone: bool = False,
    store: PathLike | None = None,
    scheduler: SchedulerLike = None,
    progress: Progress | None = None,
) -> SimulatePlan:
    """Simulate jobs on a shared machine.

    Parameters
    ----------
    scenario
        A scenario.yaml, or the document itself.
    tolerance
        Flows whose ends differ by at most this share of the shortest flow end in one event; None: 0 for up to 2,000
        flows, otherwise 0.005.
    alone
        Also simulate each job alone, to compute its slowdown.
    store, scheduler, progress
        As in `vani.profile`, for traces in the scenario.

    Raises
    ------
    InputError
        A document cannot be used, or nothing can ever progress.
    """
    if tolerance is not None and not 0 <= tolerance <= 0.1:
        raise InputError(f"is {tolerance:g}", where="--tolerance", todo="give a share, 0 to 0.1")
    given = loaded("scenario", scenario, Scenario)
    inputs = [given.source]
    with _read(given.document, given.folder, inputs, store, scheduler, progress) as named:
        return simulate(
            given.document,
            named,
            tolerance=tolerance,
            alone=alone,
            inputs=inputs,
            where=given.where,
            version=vani.__version__,
        )


def files_of_scenario(scenario: Path) -> Iterator[Path]:
    """The scenario, and the files and folders it names."""
    yield scenario
    known, folder = Scenario.load(scenario), scenario.parent
    yield from (folder / name for name in _snapshots(known))
    yield from (folder / name for name in _systems(known) if name not in known_systems())
    yield from (folder / name for name in _plans(known))
    yield from (folder / job.profile for job in known.workload if job.profile is not None)
    for job in known.workload:
        if job.store is not None:
            yield from (path for path in (folder / job.store).rglob("*") if path.is_file())
    if known.jobs is not None:
        jobs = folder / known.jobs
        yield jobs
        read = Jobs.load(jobs)
        yield from (jobs.parent / job.profile for job in read.jobs if job.profile is not None)
        yield from layout_files_of(read, jobs.parent).values()


@contextmanager
def _read(
    scenario: Scenario,
    folder: Path,
    inputs: list[PlanInput],
    store: PathLike | None,
    scheduler: SchedulerLike,
    progress: Progress | None,
) -> Iterator[Named]:
    systems = {name: _system(name, folder, inputs) for name in _systems(scenario)}
    snapshots = {}
    for name in _snapshots(scenario):
        inputs.append(plan_input("snapshot", folder / name))
        snapshots[name] = Snapshot.load(folder / name)
    plans = {}
    for name in _plans(scenario):
        inputs.append(plan_input("plan", folder / name))
        plans[name] = Plan.load(folder / name)
    jobs = None
    if scenario.jobs is not None:
        path = folder / scenario.jobs
        inputs.append(plan_input("jobs", path))
        jobs = Jobs.load(path)
        jobs.refuse_twins(str(path))
        layouts = layout_files_of(jobs, path.parent)
        inputs += [plan_input("layout", path) for fromkey in dict.fromkeys(layouts.values())]
        jobs = with_options(jobs, read_layouts(layouts))
    places = {job.profile: folder / job.profile for job in scenario.workload if job.profile is not None}
    for job in jobs.jobs if jobs is not None else ():
        if job.profile is not None and job.bytes is None and not job.creations:
            places[job.profile] = (folder / str(scenario.jobs)).parent / job.profile
    stores = {
        job.store: _calls(folder / job.store, inputs) for job in scenario.workload if job.store is not None
    }
    with Run(places.values(), store=store, scheduler=scheduler, progress=progress) as run:
        profiles = {name: _profile(run, path, inputs) for name, path in places.items()}
        yield Named(systems, snapshots, plans, profiles, stores, jobs)


def _calls(path: Path, inputs: list[PlanInput]) -> DataCalls:
    calls = data_calls(open_store(path))
    digest = hashlib.sha256((path / "manifest.json").read_bytes()).hexdigest()
    inputs.append(PlanInput(kind="trace", path=str(path), sha256=digest))
    return calls


def _profile(run: Run, path: Path, inputs: list[PlanInput]) -> Profile:
    if not path.exists():
        raise InputError("no such profile or trace", where=path, todo="name one")
    trace = is_trace(path)
    profile = read_profile(profile_of(run, path, files=_FILES))
    if trace:
        # A trace consists of many files, so the digest is that of its profile.
        digest = hashlib.sha256(dumps(profile).encode()).hexdigest()
        inputs.append(PlanInput(kind="trace", path=str(path), sha256=digest))
    else:
        inputs.append(plan_input("profile", path))
    return profile


def _system(name: str, folder: Path, inputs: list[PlanInput]) -> System:
    if name in known_systems():
        system = load_system(name)
        inputs.append(_renamed(plan_input("system", system), name))
        return system
    inputs.append(plan_input("system", folder / name) if (folder / name).is_file() else _missing(name))
    return load_system(folder / name)


def _missing(name: str) -> PlanInput:
    raise no_such_system(name)


def _renamed(source: PlanInput, name: str) -> PlanInput:
    return source.model_copy(update={"path": name})


def _systems(scenario: Scenario) -> list[str]:
    return _machines(scenario, "system")


def _snapshots(scenario: Scenario) -> list[str]:
    return _machines(scenario, "snapshot")


def _machines(scenario: Scenario, what: str) -> list[str]:
    machines = [
        scenario.machine,
        *(variant.machine for variant in scenario.variants if variant.machine is not None),
    ]
    return _once(getattr(machine, what) for machine in machines if getattr(machine, what) is not None)


def _plans(scenario: Scenario) -> list[str]:
    return _once([*scenario.plans, *(name for variant in scenario.variants for name in variant.plans or ())])


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
