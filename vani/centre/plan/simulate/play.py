"""A scenario's variants, each simulated once for each seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from vani.centre.plan.schema.scenario import Placement, Variant
from vani.centre.plan.simulate.built import Built
from vani.centre.plan.simulate.calls import DataCalls
from vani.centre.plan.simulate.choices import Choices, choices_of
from vani.centre.plan.simulate.events import Change, Run, run
from vani.centre.plan.simulate.flows import build
from vani.centre.plan.simulate.jobs import Job, jobs_of
from vani.centre.plan.simulate.machine import Machine, machine_of
from vani.centre.plan.simulate.placement import RANDOM, Placer
from vani.centre.plan.simulate.rates import Floats
from vani.errors import InputError

if TYPE_CHECKING:
    from vani.centre.plan.schema import Plan
    from vani.centre.plan.schema.jobs import Jobs
    from vani.centre.plan.schema.scenario import Failure, Scenario
    from vani.centre.plan.schema.snapshot import Snapshot
    from vani.schema.profile import Profile
    from vani.schema.system import System

EXACT: Final = 2000
"""Without an explicit tolerance, up to this many flows are simulated exactly."""
MOST_RUN: Final = 1_000_000
"""Most flows of a variant over all seeds: all runs stay in memory until the median is known."""
TOLERANCE: Final = 0.005
"""Default tolerance for more flows. For 1,000 flows on 3,600 targets, ends are within 1 % of the exact run."""


@dataclass(frozen=True)
class Named:
    """Documents that a scenario refers to, by the text that names them."""

    systems: Mapping[str, System] = field(default_factory=dict)
    snapshots: Mapping[str, Snapshot] = field(default_factory=dict)
    plans: Mapping[str, Plan] = field(default_factory=dict)
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    stores: Mapping[str, DataCalls] = field(default_factory=dict)
    jobs: Jobs | None = None


@dataclass(frozen=True)
class Played:
    """A simulated variant: its inputs, and one run per seed."""

    variant: Variant
    placement: Placement
    serial: bool
    pieces: str
    plans: Sequence[Plan]
    machine: Machine
    jobs: Sequence[Job]
    choices: Choices
    runs: Sequence[tuple[Built, Run]]
    changes: Sequence[Change]
    tolerance: float
    lacks: Sequence[tuple[str, str]]

    @property
    def makespans(self) -> Floats:
        """End of the last job in each run, in seconds, shape (runs,); inf if a job never ends."""
        return np.array([_makespan(run) for _, run in self.runs])

    @property
    def median(self) -> int:
        """Index of the run with the (lower) median makespan."""
        order = np.argsort(self.makespans, kind="stable")
        return int(order[(len(order) - 1) // 2])


def _makespan(run: Run) -> float:
    # A phase that never starts waits for a phase that never ends.
    return float(np.where(np.isnan(run.phase_end), np.inf, run.phase_end).max(initial=0.0))


def tolerance_for(flows: int, tolerance: float | None) -> float:
    """The given tolerance, or else 0 for few flows and `TOLERANCE` for many."""
    if tolerance is not None:
        return tolerance
    return 0.0 if flows <= EXACT else TOLERANCE


def play(
    scenario: Scenario,
    variant: Variant,
    named: Named,
    *,
    tolerance: float | None = None,
    where: str = "scenario",
    only: str | None = None,
) -> Played:
    """Simulate one variant with every seed, or once if nothing is random.

    Parameters
    ----------
    only
        Name of a job to simulate alone.
    """
    figures = variant.machine or scenario.machine
    serial = (variant.stages or scenario.stages) == "serial"
    pieces = variant.pieces or scenario.pieces
    placement = variant.placement or scenario.placement
    jobs, lacks = jobs_of(scenario, named.jobs, named.profiles, named.stores, where=where)
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
    _refuse_unmoving(jobs, machine, where)
    names = variant.plans if variant.plans is not None else scenario.plans
    plans = [named.plans[name] for name in names]
    choices = choices_of(plans, [job.name for job in jobs], machine.io_nodes)
    failures = variant.failures if variant.failures is not None else scenario.failures
    seeds = scenario.seeds if placement.policy in RANDOM else scenario.seeds[:1]
    runs, changes, used = [], [], 0.0
    for seed in seeds:
        placer = Placer(machine.targets, placement, seed)
        built = build(
            jobs,
            machine,
            placer,
            choices,
            pieces=pieces,
            serial=serial,
            layout=variant.layout,
            where=where,
        )
        if len(built.work.count) * len(seeds) > MOST_RUN:
            raise InputError(
                f"{len(built.work.count):,} flows with {len(seeds):,} seeds",
                where=where,
                todo=f"at most {MOST_RUN:,} flows over all seeds: use fewer seeds",
            )
        changes = _changes(failures, machine, built, where)
        used = tolerance_for(len(built.work.count), tolerance)
        runs.append((built, run(built.work, built.resources, changes, tolerance=used, keep_steps=True)))
    return Played(
        variant, placement, serial, pieces, plans, machine, jobs, choices, runs, changes, used, lacks
    )


def _refuse_unmoving(jobs: Sequence[Job], machine: Machine, where: str) -> None:
    for reads, word in ((True, "read"), (False, "write")):
        operations = {"read", "stage_in"} if reads else {"write", "stage_out"}
        job = next(
            (
                job
                for job in jobs
                for phase in job.phases
                if phase.operation in operations and phase.bytes and phase.storage == "file_system"
            ),
            None,
        )
        for kind in ("node", "io_node", "whole", "server", "target"):
            stage = machine.stages.get(kind)
            if job is not None and stage is not None and stage.pace.of(reads=reads) == 0:
                raise InputError(
                    f"machine.{kind} {word}s 0 bytes per second: job {job.name!r} would never end",
                    where=where,
                    todo="give a rate above 0, or a failure with its time",
                )


def _changes(failures: Sequence[Failure], machine: Machine, built: Built, where: str) -> list[Change]:
    changes: list[Change] = []
    for failure in failures:
        stage = machine.stages.get(failure.kind)
        if stage is None:
            raise InputError(
                f"a {failure.kind} fails, but the machine has none with a rate",
                where=where,
                todo=f"give `machine.{failure.kind}`",
            )
        first = built.place_of[failure.kind]
        for number in failure.which:
            if number >= len(stage):
                raise InputError(
                    f"{failure.kind} {number} fails, but there are {len(stage):,}, counted from 0",
                    where=where,
                    todo="name others",
                )
            changes.append(Change(failure.from_s, first + number, failure.factor))
            if failure.until_s is not None:
                changes.append(Change(failure.until_s, first + number, 1.0))
    return changes


def rate_of(built: Built, run: Run, operation: str, job: int | None = None) -> float | None:
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
