"""Whether a simulation is what it claims: fair, conserving, and no slower with more of everything."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

import numpy as np

from vani.plan.simulate.events import Probe
from vani.plan.simulate.machine import KINDS
from vani.plan.simulate.oracle import by_linear_programs, solver
from vani.plan.simulate.play import Named, Played, play
from vani.plan.simulate.rates import Floats, Usage, max_min
from vani.schema.plan import SimulationCheck
from vani.schema.scenario import Variant
from vani.units import counted

if TYPE_CHECKING:
    from vani.schema.scenario import Scenario

__all__ = ["NOT_PUBLIC", "checks_of", "fair", "random_usage"]

_PROBES: Final = 10
_MOST_FLOWS: Final = 150
_NEAR: Final = 1e-6
_SPEED: Final = 2.0

NOT_PUBLIC: Final = (
    SimulationCheck(
        name="Tarazu, figure 23 (three workloads on 160 to 3,600 OSTs)",
        holds=None,
        detail="its traces of genomicPrediction, E3SM and cosmoFlow and its rates of clients are not public",
    ),
    SimulationCheck(
        name="AIOT, table III (slowdowns of five applications)",
        holds=None,
        detail="the applications' demands and the background load of OST1 are not public",
    ),
)


def checks_of(scenario: Scenario, named: Named, *, where: str = "scenario") -> list[SimulationCheck]:
    """Play each variant exactly, with its first seed, and hold it against what must be.

    Raises
    ------
    InputError
        scipy is not installed, or the scenario cannot be played.
    """
    solver()
    one_seed = scenario.model_copy(update={"seeds": scenario.seeds[:1]})
    found = []
    for variant in scenario.variants or [Variant(name="scenario")]:
        played = play(one_seed, variant, named, tolerance=0.0, where=where, probes=_PROBES)
        found += [
            _fair(played),
            _conserved(played),
            *_faster(one_seed, variant, named, played, where),
        ]
    return [*found, *NOT_PUBLIC]


def fair(usage: Usage, capacity: Floats) -> float:
    """Largest difference of rates by progressive filling and by linear programs, over the largest rate."""
    ours, _ = max_min(usage, capacity)
    theirs = by_linear_programs(usage, capacity)
    return float(np.max(np.abs(ours - theirs)) / max(float(np.max(theirs)), 1e-300))


def random_usage(seed: int, flows: int = 40, resources: int = 12) -> tuple[Usage, Floats]:
    """Flows through random resources with random shares, some with a cap, and capacities, some of them 0."""
    random = np.random.default_rng(seed)
    counts = random.integers(1, min(6, resources) + 1, flows)
    first = np.concatenate([[0], np.cumsum(counts)])
    passed = np.concatenate([random.choice(resources, n, replace=False) for n in counts])
    capacity = random.uniform(0.5, 2.0, resources) * (random.random(resources) > 0.05)
    cap = np.where(random.random(flows) < 0.3, random.uniform(0.01, 0.5, flows), np.inf)
    return Usage(first, passed, random.uniform(0.05, 1.0, len(passed)), cap), capacity


def _fair(played: Played) -> SimulationCheck:
    name = f"{played.variant.name}: rates are max-min fair"
    probes = [probe for _, found in played.runs for probe in found.probes]
    small = [one for one in probes if len(one.rates) <= _MOST_FLOWS]
    cut = [_some_of(one) for one in probes if len(one.rates) > _MOST_FLOWS]
    worst = 0.0
    for one in (*small, *cut):
        worst = max(worst, fair(one.use, one.capacity))
    if not probes:
        return SimulationCheck(name=name, holds=None, detail="nothing moves")
    part = (
        f", of {len(cut):,} of them {_MOST_FLOWS:,} flows each that share what the others leave"
        if cut
        else ""
    )
    return SimulationCheck(
        name=name,
        holds=worst <= _NEAR,
        detail=f"{len(probes):,} moments{part}: largest difference from linear programs {worst:.1e} of the "
        "largest rate",
    )


def _some_of(probe: Probe) -> Probe:
    """A part of the flows of a moment, with the capacity that the others leave; theirs must not change."""
    chosen = np.unique(np.linspace(0, len(probe.rates) - 1, _MOST_FLOWS).astype(np.int64))
    others = np.setdiff1d(np.arange(len(probe.rates)), chosen)
    use = probe.use.of(others)
    taken = np.bincount(
        use.resource,
        use.load * np.repeat(probe.rates[others], np.diff(use.first)),
        minlength=len(probe.capacity),
    )
    return Probe(
        probe.time, probe.use.of(chosen), np.maximum(probe.capacity - taken, 0.0), probe.rates[chosen]
    )


def _conserved(played: Played) -> SimulationCheck:
    (built, found) = played.runs[0]
    asked = built.bytes_by_phase
    ended = np.isfinite(found.phase_end)
    all_end = bool(ended.all())
    lost = abs(float(asked[ended].sum()) - float(found.moved.sum())) / max(float(asked.sum()), 1.0)
    holds = found.overuse <= _NEAR and (lost <= _NEAR or not all_end)
    left = "" if all_end else " (some phases never end: what they moved is not compared)"
    return SimulationCheck(
        name=f"{played.variant.name}: bytes are conserved",
        holds=holds,
        detail=f"{lost:.1e} of the bytes asked for are lost{left}; no resource is used beyond its capacity by more "
        f"than {max(found.overuse, 0.0):.1e}",
    )


def _faster(
    scenario: Scenario, variant: Variant, named: Named, played: Played, where: str
) -> Iterable[SimulationCheck]:
    before = played.runs[0][1].phase_end
    timeless = not played.changes and not any(
        phase.compute_s or job.start_s for job in played.jobs for phase in job.phases
    )
    end = float(played.makespans[0])

    def again(faster: str | None) -> Played:
        return play(scenario, variant, named, tolerance=0.0, where=where, speed=_SPEED, faster=faster)

    ends = again(None).runs[0][1].phase_end
    if timeless and np.isfinite(end):
        off = float(np.max(np.abs(ends * _SPEED / before - 1)))
        yield SimulationCheck(
            name=f"{played.variant.name}: twice of everything takes half the time",
            holds=off <= _NEAR,
            detail=f"ends of all phases differ from half by {off:.1e} at most",
        )
    yield from _one_faster(played, again, before)


def _one_faster(
    played: Played, again: Callable[[str | None], Played], before: Floats
) -> Iterable[SimulationCheck]:
    """What a stage twice as fast does. Where it alone holds flows back, nothing may end later.

    Elsewhere max-min fairness promises no such thing: a flow that gets more in one place takes from others in another.
    """
    bound = played.runs[0][1].bound.sum(axis=0)
    for kind in played.machine.stages:
        later = again(kind)
        ends = later.runs[0][1].phase_end
        known = np.isfinite(before) & np.isfinite(ends)
        slower = int(np.count_nonzero(ends[known] > before[known] * (1 + _NEAR)))
        alone = bool(bound[KINDS.index(kind)] >= (1 - _NEAR) * bound.sum())
        old, new = float(played.makespans[0]), float(later.makespans[0])
        change = f"ends {100 * (1 - new / old):.1f} % earlier" if old and np.isfinite(new) else "never ends"
        single = ", the only one that holds flows back" if alone else ""
        why = "" if not slower or alone else ", which fair sharing may do"
        yield SimulationCheck(
            name=f"{played.variant.name}: {kind.replace('_', ' ')} twice as fast{single}",
            holds=slower == 0 if alone else None,
            detail=f"the whole {change}; {counted(slower, 'phase')} of {len(before):,} end later{why}",
        )
