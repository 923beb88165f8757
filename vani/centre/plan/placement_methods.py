"""The methods that choose OSTs, and the costs of their choices."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from vani.centre.plan.placement.layouts import Turn, allocate
from vani.centre.plan.placement.search import Floats, Ints, Stripes, Targets, balance, loads
from vani.centre.plan.schema.plans import AllocatorRange, OstCosts, PlaceSettings, Range

if TYPE_CHECKING:
    from vani.centre.plan.schema.snapshot import Target

# Algorithm 1 of Tarazu as printed: a minimum-cost maximum flow from requests to targets.
#
# An arc from a request to a target costs the load of the target's server, and an arc from a target to the
# sink costs the
# target's own cost. Neither depends on the request or on the number of stripes. The flow of least cost is therefore
# greedy: the cheapest target takes as many requests as it may, then the next. (The feasible flows form a
# polymatroid, for
# which greedy is exact.) All stripes of a batch pile up on the cheapest targets. Each target takes the requests with
# most stripes left, which leaves most choice for the remaining targets.

def cheapest(counts: Sequence[int], costs: Floats, capacity: Ints) -> list[list[int]]:
    """Targets of each request in the order of assignment; fewer than its stripes if the targets run out.

    Parameters
    ----------
    counts
        Number of stripes of each request.
    costs
        Cost of a stripe on each target, shape (targets,): load of its server + its own cost.
    capacity
        Most stripes on each target, shape (targets,). A target takes at most one per request.
    """
    left = np.array(counts, dtype=np.int64)
    targets_of_request: list[list[int]] = [[] for _ in counts]
    for target in np.argsort(costs, kind="stable").tolist():
        count = min(int(capacity[target]), int(np.count_nonzero(left)))
        if count <= 0:
            continue
        # The request's index breaks ties.
        chosen = np.lexsort((np.arange(len(left)), -left))[:count]
        left[chosen] -= 1
        for request in chosen.tolist():
            targets_of_request[request].append(target)
    return targets_of_request


def flow_cost(places: Sequence[Sequence[int]], costs: Floats) -> tuple[int, float]:
    """Number of placed stripes and their total cost."""
    taken = np.bincount([target for targets in places for target in targets], minlength=len(costs))
    return int(taken.sum()), float(np.dot(taken, costs))


# Evenness of a placement, compared with random draws of Lustre's own allocator.

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


# Chooses OSTs for requests with each method: sound ones first, and degraded ones only for the rest.

Request = Sequence[int]

_MAX_ORDERED = 256
"""Widest request whose stripes are ordered one by one, in quadratic time. Wider ones are only rotated."""


@dataclass(frozen=True)
class Pool:
    """OSTs in service. Every column has shape (targets,).

    Attributes
    ----------
    index
        Lustre's indexes, ascending.
    is_sound
        True for OSTs that are not degraded.
    load
        Weighted load of each OST's server (tarazu only).
    used
        Share of the bytes in use, 0..1.
    pace
        Bytes per second in any unit: the peak times the share that its load leaves, if those are known.
    """

    index: Ints
    is_sound: np.ndarray
    targets: Targets
    load: Floats
    used: Floats
    pace: Floats

    def part(self, mask: np.ndarray) -> Pool:
        """A subset of the OSTs, given as a mask."""
        return Pool(
            self.index[mask],
            self.is_sound[mask],
            self.targets.part(np.flatnonzero(mask)),
            self.load[mask],
            self.used[mask],
            self.pace[mask],
        )

    def after(self, added: Floats) -> Pool:
        """The pool with `added` bytes on each OST."""
        old = self.targets
        return replace(
            self,
            targets=Targets(old.size, old.base + added, np.maximum(old.room - added, 0), old.server),
        )


@dataclass(frozen=True)
class Chosen:
    """For each request, the position in the pool of each stripe's OST; incomplete or empty if it does not fit.

    `is_least` is true if no placement can have a lower level of the fullest OST.
    """

    of: list[list[int]]
    is_least: bool


def choose(requests: Sequence[Request], largest: int, pool: Pool, settings: PlaceSettings) -> Chosen:
    """Choose OSTs. `largest` is the largest stripe of all requests, the unit in which tarazu counts room."""
    sound = np.flatnonzero(pool.is_sound)
    first = _choose(requests, largest, pool.part(pool.is_sound), settings)
    rows = [[int(sound[target]) for target in row] for row in first.of]
    left = [number for number, row in enumerate(rows) if len(row) < len(requests[number])]
    if not left or bool(np.all(pool.is_sound)):
        return Chosen(rows, first.is_least)
    added = np.zeros(len(pool.index))
    for request, row in zip(requests, rows, strict=True):
        np.add.at(added, np.array(row, dtype=np.int64), np.array(request[: len(row)], dtype=np.float64))
    if settings.method == "tarazu":
        degraded = np.flatnonzero(~pool.is_sound)
        rest = [requests[number][len(rows[number]) :] for number in left]
        second = _choose(rest, largest, pool.after(added).part(~pool.is_sound), settings)
        for number, row in zip(left, second.of, strict=True):
            rows[number] += [int(degraded[target]) for target in row]
    else:
        second = _choose([requests[number] for number in left], largest, pool.after(added), settings)
        for number, row in zip(left, second.of, strict=True):
            rows[number] = row
    return Chosen(rows, is_least=False)


def _choose(requests: Sequence[Request], largest: int, pool: Pool, settings: PlaceSettings) -> Chosen:
    if not requests or not len(pool.index):
        return Chosen([[] for _ in requests], is_least=False)
    if settings.method == "tarazu":
        capacity = np.floor(pool.targets.room / max(1, largest)).astype(np.int64)
        counts = [len(request) for request in requests]
        return Chosen(cheapest(counts, pool.load + pool.used, capacity), is_least=False)
    if settings.method == "lsa":
        place = allocate(requests, pool.targets, settings.seed, turn=settings.turn, window=settings.window)
        return Chosen(_rows(requests, place), is_least=False)
    placement = balance(requests, pool.targets)
    return Chosen(_spread(requests, _rows(requests, placement.place)), placement.is_least)


def _spread(requests: Sequence[Request], rows: list[list[int]]) -> list[list[int]]:
    """Order the OSTs of each request so that few files use the same OST for the same stripe number.

    Only stripes of the same size as the first are reordered, so every OST keeps its bytes.
    """
    _deal(requests, rows)
    stripes_on: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for request, row in zip(requests, rows, strict=True):
        alike = [n for n in range(len(row)) if request[n] == request[0]]
        osts = [row[n] for n in alike]
        order = _ordered(osts, [stripes_on[n] for n in alike])
        for n, ost in zip(alike, order, strict=True):
            row[n] = ost
            stripes_on[n][ost] += 1
    return rows


def _deal(requests: Sequence[Request], rows: list[list[int]]) -> None:
    """Give single-stripe files of equal size their OSTs in turn, because consecutive files are written together."""
    by_size: defaultdict[int, list[int]] = defaultdict(list)
    for number, request in enumerate(requests):
        if len(request) == 1 and rows[number]:
            by_size[request[0]].append(number)
    for numbers in by_size.values():
        turns: Counter[int] = Counter()
        order = []
        for number in numbers:
            (ost,) = rows[number]
            order.append((turns[ost], ost))
            turns[ost] += 1
        for number, (_, ost) in zip(numbers, sorted(order), strict=True):
            rows[number] = [ost]


def _ordered(osts: list[int], stripes_on: Sequence[Counter[int]]) -> list[int]:
    """Reorder the OSTs so that each position gets the OST with the fewest stripes at that position."""
    if len(osts) > _MAX_ORDERED:
        first = min(range(len(osts)), key=lambda n: stripes_on[0][osts[n]])
        return osts[first:] + osts[:first]
    left, order = list(osts), []
    for at_place in stripes_on:
        order.append(min(left, key=at_place.__getitem__))
        left.remove(order[-1])
    return order


def _rows(requests: Sequence[Request], place: Ints) -> list[list[int]]:
    first = Stripes.of(requests).first.tolist()
    flat = place.tolist()
    rows = [flat[begin:end] for begin, end in pairwise(first)]
    return [row if row and row[0] >= 0 else [] for row in rows]
