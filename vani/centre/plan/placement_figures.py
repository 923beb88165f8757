"""Evenness of a placement, compared with random draws of Lustre's own allocator."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from vani.centre.plan.placement.allocator import Turn, allocate
from vani.centre.plan.placement.balance import loads
from vani.centre.plan.placement.targets import Floats, Ints, Stripes, Targets
from vani.centre.plan.schema import AllocatorRange, OstCosts, PlaceSettings, Range

if TYPE_CHECKING:
    from vani.centre.plan.schema.snapshot import Target

Rule = Literal["as-set", "going-on", "random-start", "by-space"]

_RULES: Final[dict[Rule, tuple[Turn | None, bool | None]]] = {
    "as-set": (None, None),
    "going-on": ("going-on", False),
    "random-start": ("random-start", False),
    "by-space": ("going-on", True),
}

_WORK: Final = 20_000_000
_FEWEST: Final = 3
_LEAST_PACE: Final = 0.05


@dataclass(frozen=True)
class Timing:
    """The order in which stripes are written and the speed of targets, which give the time of a placement.

    Attributes
    ----------
    step
        Step of each stripe in request order, shape (stripes,). Stripes of the same step are written at the same time.
    pace
        Bytes per second of each target in any unit, shape (targets,).
    """

    step: Ints
    pace: Floats

    @classmethod
    def of(cls, steps: Sequence[tuple[int, int]], counts: Sequence[int], pace: Floats) -> Timing:
        """Build the timing. `steps` has each request's component, and 1 if its stripes are written one by one."""
        alone = [
            (component, position * one_by_one)
            for (component, one_by_one), count in zip(steps, counts, strict=True)
            for position in range(count)
        ]
        number = {step: n for n, step in enumerate(dict.fromkeys(alone))}
        return cls(np.array([number[step] for step in alone], dtype=np.int64), pace)

    def cost(self, place: Ints, stripes: Stripes) -> float | None:
        """Time of a placement over the time with all targets always busy; None without bytes.

        Files are written in parallel, component by component, and a step lasts as long as its busiest target.
        """
        placed = (place >= 0) & (stripes.bytes > 0)
        total = float(stripes.bytes[placed].sum())
        if not total:
            return None
        targets = len(self.pace)
        key = self.step[placed] * targets + place[placed]
        busy = np.bincount(key, stripes.bytes[placed], minlength=(int(self.step.max()) + 1) * targets)
        seconds = (busy.reshape(-1, targets) / self.pace).max(axis=1).sum()
        return float(seconds * self.pace.sum() / total)


def paces_of(targets: Sequence[Target]) -> Floats:
    """Bytes per second of each target in any unit. A figure that some targets lack counts as equal for all."""
    peaks = [target.peak.iobw if target.peak is not None else None for target in targets]
    loads = [target.load for target in targets]
    pace = np.array(peaks if all(peaks) else [1.0] * len(targets), dtype=np.float64)
    if None not in loads:
        # A target that is busy with other jobs still moves something.
        pace *= np.maximum(_LEAST_PACE, 1 - np.array(loads, dtype=np.float64))
    return pace


def costs_of(load: Floats, targets: Targets, time_cost: float | None = None) -> OstCosts:
    """Costs with `load` bytes on each target."""
    level = load / targets.size
    # Mean over all space rather than over levels: otherwise a small target that fills up would lower the cost.
    mean = float(load.sum() / targets.size.sum()) if len(level) else 0.0
    servers = None
    if mean > 0 and not np.any(targets.server < 0):
        servers = float((targets.by_server(load) / targets.server_sizes).max() / mean)
    fullest = float(level.max(initial=0.0))
    return OstCosts(
        ost_cost=fullest / mean if mean > 0 else None, oss_cost=servers, fullest=fullest, time_cost=time_cost
    )


def allocator_ranges(
    requests: Sequence[Sequence[int]], timing: Timing, targets: Targets, settings: PlaceSettings
) -> list[AllocatorRange]:
    """Figures of each allocator rule over the seeds; empty without bytes. Many stripes reduce the number of seeds."""
    if not any(map(any, requests)):
        return []
    return [rule_range(rule, requests, timing, targets, settings) for rule in _RULES]


def rule_range(
    rule: Rule,
    requests: Sequence[Sequence[int]],
    timing: Timing,
    targets: Targets,
    settings: PlaceSettings,
    among: np.ndarray | None = None,
) -> AllocatorRange:
    """Figures of one rule. `among` is a mask of the targets that Lustre may choose; None: all."""
    stripes = Stripes.of(requests)
    chosen = np.arange(len(targets)) if among is None else np.flatnonzero(among)
    part = targets.part(chosen)
    turn, weighted = _RULES[rule]
    work = max(len(requests) * len(part), 10 * len(stripes.bytes))
    drawn = []
    for number in range(max(_FEWEST, min(settings.seeds, _WORK // work))):
        drawn_place = allocate(
            requests,
            part,
            settings.seed + number,
            turn=turn or settings.turn,
            window=settings.window,
            weighted=weighted,
        )
        place = np.where(drawn_place >= 0, chosen[drawn_place], -1)
        drawn.append(costs_of(loads(place, stripes, targets), targets, timing.cost(place, stripes)))
    ost, oss, time = (
        [value for costs in drawn if (value := getattr(costs, name)) is not None]
        for name in ("ost_cost", "oss_cost", "time_cost")
    )
    return AllocatorRange(
        rule=rule, ost_cost=_range(ost), oss_cost=_range(oss) if oss else None, time_cost=_range(time)
    )


def _range(values: Sequence[float]) -> Range:
    return Range(low=min(values), median=statistics.median(values), high=max(values))
