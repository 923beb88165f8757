"""Evenness of a placement, and of what Lustre's own allocator would give by chance."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Final, Literal

import numpy as np

from vani.models.placement.allocator import Turn, allocate
from vani.models.placement.balance import loads
from vani.models.placement.targets import Floats, Stripes, Targets
from vani.schema.plan import AllocatorRange, OstCosts, PlaceSettings, Range

__all__ = ["allocator_ranges", "costs_of"]

Rule = Literal["as-set", "going-on", "random-start", "by-space"]

_RULES: Final[dict[Rule, tuple[Turn | None, bool | None]]] = {
    "as-set": (None, None),
    "going-on": ("going-on", False),
    "random-start": ("random-start", False),
    "by-space": ("going-on", True),
}

_WORK: Final = 20_000_000
_FEWEST: Final = 3


def costs_of(load: Floats, targets: Targets) -> OstCosts:
    """Costs where `load` bytes count on each target."""
    level = load / targets.size
    # Of all space, not the mean of levels: else a small target that fills up would lower the cost.
    mean = float(load.sum() / targets.size.sum()) if len(level) else 0.0
    servers = None
    if mean > 0 and not np.any(targets.server < 0):
        servers = float((targets.by_server(load) / targets.server_sizes).max() / mean)
    fullest = float(level.max(initial=0.0))
    return OstCosts(ost_cost=fullest / mean if mean > 0 else None, oss_cost=servers, fullest=fullest)


def allocator_ranges(
    requests: Sequence[Sequence[int]], targets: Targets, settings: PlaceSettings
) -> list[AllocatorRange]:
    """Figures of each rule over the seeds; empty where nothing can be placed.

    Of very many stripes fewer seeds are drawn.
    """
    fitting = [request for request in requests if len(request) <= len(targets)]
    stripes = Stripes.of(fitting)
    if not stripes.bytes.sum():
        return []
    work = max(len(fitting) * len(targets), 10 * len(stripes.bytes))
    seeds = max(_FEWEST, min(settings.seeds, _WORK // work))
    ranges = []
    for rule, (turn, weighted) in _RULES.items():
        drawn = [
            costs_of(
                loads(
                    allocate(
                        fitting,
                        targets,
                        settings.seed + number,
                        turn=turn or settings.turn,
                        window=settings.window,
                        weighted=weighted,
                    ),
                    stripes,
                    targets,
                ),
                targets,
            )
            for number in range(seeds)
        ]
        ost = [costs.ost_cost for costs in drawn if costs.ost_cost is not None]
        oss = [costs.oss_cost for costs in drawn if costs.oss_cost is not None]
        ranges.append(AllocatorRange(rule=rule, ost_cost=_range(ost), oss_cost=_range(oss) if oss else None))
    return ranges


def _range(values: Sequence[float]) -> Range:
    return Range(low=min(values), median=statistics.median(values), high=max(values))
