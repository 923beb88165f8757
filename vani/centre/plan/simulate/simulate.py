"""Simulates a scenario and returns the outcome as a plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from vani.centre.plan.schema import (
    Left,
    Moment,
    PlanInput,
    SimulatedJob,
    SimulatedStage,
    SimulatedVariant,
    SimulatePlan,
    SimulateSettings,
)
from vani.centre.plan.schema.scenario import Variant
from vani.centre.plan.simulate.machine import KINDS
from vani.centre.plan.simulate.play import Named, Played, play, rate_of, union
from vani.centre.plan.simulate.steps import most_steps
from vani.schema.advice import Expected
from vani.units import counted, format_seconds

if TYPE_CHECKING:
    from vani.centre.plan.schema.scenario import Scenario
    from vani.centre.plan.simulate.built import Built
    from vani.centre.plan.simulate.events import Run

def simulate(
    scenario: Scenario,
    named: Named,
    *,
    tolerance: float | None = None,
    alone: bool = False,
    inputs: Sequence[PlanInput] = (),
    where: str = "scenario",
    version: str = "",
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
    scenario.refuse_contradictions(where)
    played = play_all(scenario, named, tolerance=tolerance, where=where)
    outcomes = [_outcome(trial) for trial in played]
    if alone:
        for number, trial in enumerate(played):
            outcomes[number] = _with_alone(outcomes[number], trial, scenario, named, tolerance, where)
    last = played[-1]
    return SimulatePlan(
        version=version,
        inputs=list(inputs),
        simulate=SimulateSettings(seeds=scenario.seeds, tolerance=last.tolerance, alone=alone),
        outcomes=outcomes,
        timeline=_timeline(last),
        expected=_expected(played) if len(played) > 1 else None,
        unplaced=list(_never(played)),
        over_capacity=list(_over(played)),
        no_data=_once(
            Left(name=name, reason=why)
            for trial in played
            for name, why in (*trial.machine.lacks, *trial.lacks, *trial.choices.lacks)
        ),
        notes=list(dict.fromkeys(_notes(played))),
    )


def play_all(
    scenario: Scenario,
    named: Named,
    *,
    tolerance: float | None = None,
    where: str = "scenario",
) -> list[Played]:
    """Simulate every variant, or the scenario itself if it has no variants."""
    variants = scenario.variants or [Variant(name="scenario")]
    return [play(scenario, variant, named, tolerance=tolerance, where=where) for variant in variants]


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _outcome(played: Played) -> SimulatedVariant:
    spans = played.makespans
    built, run = played.runs[played.median]
    placed = built.placer.placed[played.machine.targets.usable]
    ended = spans[np.isfinite(spans)]
    return SimulatedVariant(
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


def _job(number: int, played: Played, built: Built, run: Run) -> SimulatedJob:
    job = played.jobs[number]
    rows = built.phases_by_job[number]
    begin, end = run.phase_begin[rows], run.phase_end[rows]
    ends = bool(rows) and bool(np.isfinite(end).all())
    bound = run.bound[number]
    whole = bound.sum()
    names = (*KINDS, "process")
    return SimulatedJob(
        name=job.name,
        begin_s=job.start_s,
        end_s=float(end.max()) if ends else None,
        io_s=union(begin, end) if ends else None,
        bytes=float(run.moved[number]),
        read=rate_of(built, run, "read", number),
        write=rate_of(built, run, "write", number),
        bound={
            name: min(1.0, float(share / whole))
            for name, share in sorted(zip(names, bound, strict=True), key=lambda pair: -pair[1])
            if share > 0
        }
        if whole > 0
        else {},
    )


def _stages(played: Played, built: Built, run: Run) -> Iterable[SimulatedStage]:
    if not run.elapsed:
        return
    for kind, stage in played.machine.stages.items():
        first = built.place_of[kind]
        busy = run.carried[first : first + len(stage)] / run.elapsed
        if busy.any():
            yield SimulatedStage(
                kind=kind,
                members=len(stage),
                used=int(np.count_nonzero(busy)),
                mean=float(busy.mean()),
                most=float(busy.max()),
                busiest=int(busy.argmax()),
            )


def _timeline(played: Played) -> list[Moment]:
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
            Moment(
                begin_s=chunk[0].begin,
                end_s=chunk[-1].end,
                rates=(np.sum([step.moved for step in chunk], axis=0) / length).tolist(),
                busy={kind: float(share) for kind, share in zip(KINDS, most, strict=True) if share > 0},
            )
        )
    return moments


def _with_alone(
    outcome: SimulatedVariant,
    played: Played,
    scenario: Scenario,
    named: Named,
    tolerance: float | None,
    where: str,
) -> SimulatedVariant:
    jobs = []
    for job in outcome.jobs:
        by_itself = play(
            scenario.model_copy(update={"seeds": [scenario.seeds[played.median]]}),
            played.variant,
            named,
            tolerance=tolerance,
            where=where,
            only=job.name,
        )
        end = float(by_itself.makespans[0])
        length = end - job.begin_s
        slower = None if job.end_s is None or not np.isfinite(end) or length <= 0 else job.end_s - job.begin_s
        jobs.append(
            job.model_copy(
                update={
                    "alone_s": _finite(length),
                    "slowdown": None if slower is None else slower / length,
                }
            )
        )
    return outcome.model_copy(update={"jobs": jobs})


def _expected(played: Sequence[Played]) -> Expected | None:
    """Speed-up of the last variant over the first, seed by seed if both are random."""
    first, last = played[0], played[-1]
    first_spans, other = (
        np.broadcast_arrays(first.makespans, last.makespans) if _pairs(first, last) else (None, None)
    )
    if (
        first_spans is None
        or other is None
        or not (np.isfinite(first_spans).all() and np.isfinite(other).all())
    ):
        return None
    before, after = float(first.makespans[first.median]), float(last.makespans[last.median])
    if not before or not after:
        return None
    gains = first_spans / other
    many = len(gains) > 1
    return Expected(
        metric="makespan_s",
        before=before,
        after=after,
        speedup=before / after,
        low=float(gains.min()) if many else None,
        high=float(gains.max()) if many else None,
        method=f"end of the last job, {last.variant.name} compared with {first.variant.name}; "
        + (f"range over {len(gains)} seeds" if many else "one run each, so no range"),
    )


def _pairs(first: Played, last: Played) -> bool:
    return len(first.runs) == len(last.runs) or 1 in {len(first.runs), len(last.runs)}


def _never(played: Sequence[Played]) -> Iterable[Left]:
    for trial in played:
        built, run = max(trial.runs, key=lambda pair: int(np.count_nonzero(~np.isfinite(pair[1].phase_end))))
        for number, job in enumerate(trial.jobs):
            rows = built.phases_by_job[number]
            stuck = [n for n in rows if run.phase_end[n] == np.inf]
            if not stuck:
                continue
            phase = built.work.phases[stuck[0]]
            flows = range(phase.flows.start, phase.flows.stop)
            ends = run.flow_end[flows.start : flows.stop]
            count = int(built.work.count[flows.start : flows.stop][~np.isfinite(ends)].sum())
            waiting = sum(np.isnan(run.phase_end[n]) for n in rows)
            after = f", and {counted(int(waiting), 'phase', 'waits', 'wait')} behind it" if waiting else ""
            yield Left(
                name=job.name,
                reason=f"{trial.variant.name}: {counted(count, 'process', 'never ends', 'never end')} the "
                f"{str(built.direction[stuck[0]]).replace('_', ' ')} begun at "
                f"{format_seconds(float(run.phase_begin[stuck[0]]))}: {_why(trial, built, run, stuck[0])}{after}",
            )


def _why(played: Played, built: Built, run: Run, number: int) -> str:
    """Words for the resources without capacity on the path of a phase that never ends."""
    flows = built.work.phases[number].flows
    resources: set[int] = set()
    for flow in range(flows.start, flows.stop):
        if np.isfinite(run.flow_end[flow]):
            continue
        low, high = built.work.chain[flow]
        use = built.work.use
        resources |= set(use.resource[use.first[low] : use.first[high]].tolist())
    dead = {change.resource for change in played.changes if change.factor == 0.0}
    dead |= set(np.flatnonzero(built.resources.capacity == 0).tolist())
    names = []
    for resource in sorted(resources & dead):
        kind = KINDS[built.resources.kind[resource]]
        names.append(f"{kind} {resource - built.place_of[kind]}")
    listed = ", ".join(names[:5]) + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")
    return f"{listed} {'stands' if len(names) == 1 else 'stand'} still" if names else "it never recovers"


def _over(played: Sequence[Played]) -> Iterable[Left]:
    for trial in played:
        targets = trial.machine.targets
        for built, _ in trial.runs:
            full = np.flatnonzero(built.placer.used > targets.size * (1 + 1e-12))
            if len(full):
                worst = int(full[np.argmax(built.placer.used[full] / targets.size[full])])
                yield Left(
                    name=f"OST {targets.index[worst]}",
                    reason=f"{trial.variant.name}: {counted(len(full), 'target', 'would', 'would')} hold more than "
                    f"fits, this one {built.placer.used[worst] / targets.size[worst]:.2f} times",
                )
                break


def _notes(played: Sequence[Played]) -> Iterable[str]:
    for trial in played:
        yield from trial.machine.notes
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
        yield (
            "each flow passes one stage after another: jobs compete only in the same stage at the same time"
        )


def _once(entries: Iterable[Left]) -> list[Left]:
    return list({(left.name, left.reason): left for left in entries}.values())
