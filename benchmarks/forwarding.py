"""`python -m benchmarks.models --forwarding`: the loss from choosing I/O nodes for held-out patterns.

Regret is 1 - bandwidth(chosen) / bandwidth(best legal), for means of repetitions on MareNostrum 4. Single runs are
read from `../shared/data/forge-mn4`; results that need them are left out without that folder.
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.data import DATA, print_table, rows_of
from vani.advisors.forwarding.io_nodes import IONodes
from vani.models.forwarding import (
    ANCHOR,
    Pattern,
    Rate,
    Scenario,
    choose,
    measured,
    nearest,
    offset,
    regrets,
    speedups,
)
from vani.units import KiB, MiB

FEW = 20
"""Number of curves of all kinds that a site may have measured; with fewer, most patterns are refused."""

RUNS = DATA / "forge-mn4" / "forge_mn4_runs.csv"

LEGAL: dict[str, tuple[int, ...]] = {"direct access allowed": (0, 1, 2, 4, 8), "forwarded only": (1, 2, 4, 8)}
"""All measured jobs have 8, 16 or 32 nodes, which are divisible by each of these numbers."""

Way = Callable[[Pattern, Sequence[Scenario], Sequence[int]], int | None]
"""A method of choosing: takes a pattern, the known curves and the legal numbers; returns None if it refuses."""


def oracle(curve: Mapping[int, Rate], allowed: Iterable[int]) -> int:
    """The number with the best mean, the first of equals: ORACLE of Bez et al."""
    return max(allowed, key=lambda n: curve[n].mean)


def fewest(curve: Mapping[int, Rate], allowed: Iterable[int], tolerance: float) -> int | None:
    """The fewest I/O nodes within `tolerance`, 0..1, of the best mean; None if no allowed number was measured."""
    known = [n for n in allowed if n in curve]
    if not known:
        return None
    best = max(curve[n].mean for n in known)
    # Direct access needs no I/O node, but its rates scatter most: it must be the best, not nearly the best.
    if 0 in known and curve[0].mean >= best:
        return 0
    return min(n for n in known if n and curve[n].mean >= (1 - tolerance) * best)


def near_curves(pattern: Pattern, shown: Sequence[Scenario], allowed: Sequence[int]) -> int | None:
    """The recommendation of FWD001."""
    found = choose(pattern, shown, allowed, IONodes.most_regret)
    return None if isinstance(found, str) else found.io_nodes


def nearest_curve(pattern: Pattern, shown: Sequence[Scenario], allowed: Sequence[int]) -> int | None:
    """The smallest number within 10 % of the best mean on the nearest curve, at any distance: the earlier FWD001."""
    return fewest(nearest(pattern, shown)[0].curve, allowed, 0.1)


def nearest_oracle(pattern: Pattern, shown: Sequence[Scenario], allowed: Sequence[int]) -> int | None:
    """The paper's method applied to the nearest curve."""
    return oracle(nearest(pattern, shown)[0].curve, allowed)


def always(count: int) -> Way:
    """A rule that ignores all curves; it refuses if its number is not legal."""
    return lambda _pattern, _shown, allowed: count if count in allowed else None


def where_answered(way: Way) -> Way:
    """Another method, restricted to the patterns that FWD001 answers, so that refusals cannot flatter FWD001."""

    def chosen(pattern: Pattern, shown: Sequence[Scenario], allowed: Sequence[int]) -> int | None:
        return None if near_curves(pattern, shown, allowed) is None else way(pattern, shown, allowed)

    return chosen


WAYS: dict[str, Way] = {
    "near curves (FWD001)": near_curves,
    "nearest curve": nearest_curve,
    "nearest curve, where FWD001 answers": where_answered(nearest_curve),
    "nearest curve, ORACLE": nearest_oracle,
    "always 8": always(8),
    "always 8, where FWD001 answers": where_answered(always(8)),
    "always 4": always(4),
    "always 2": always(2),
    "always direct": always(0),
}

HELD_OUT: dict[str, Callable[[Pattern, Pattern], bool]] = {
    "the pattern itself": lambda one, other: one == other,
    "number of nodes": lambda one, other: one.nodes == other.nodes,
    "request size": lambda one, other: one.request == other.request,
    "processes per node": lambda one, other: one.processes * other.nodes == other.processes * one.nodes,
    "number of processes": lambda one, other: one.processes == other.processes,
    "two conditions of three": lambda one, other: _equal_conditions(one, other) > 1,
}
"""Curves to hold out for a pattern: those for which the function is true."""


def _equal_conditions(one: Pattern, other: Pattern) -> int:
    off = offset(one, other)
    return [off.nodes, off.processes_per_node, off.request].count(0)


@dataclass(frozen=True)
class Regret:
    """Regret over the answered patterns; `refused` is the share of the others."""

    mean: float
    percentile_90: float
    worst: float
    refused: float


def summary(regret: Sequence[float | None]) -> Regret:
    """Summarise regrets, in which None is a refusal."""
    known = sorted(one for one in regret if one is not None)
    refused = 1 - len(known) / len(regret)
    if not known:
        return Regret(math.nan, math.nan, math.nan, refused)
    return Regret(statistics.fmean(known), known[min(len(known) - 1, int(0.9 * len(known)))], known[-1], refused)


def _regret(way: Way, one: Scenario, shown: Sequence[Scenario], allowed: Sequence[int]) -> float | None:
    """Regret of the number that a method chooses for a pattern from the curves that it knows; None if it refuses."""
    count = way(one.pattern, shown, allowed)
    return None if count is None else regrets(one.curve, allowed)[count]


def _others(one: Scenario, alike: Callable[[Pattern, Pattern], bool]) -> list[Scenario]:
    """The curves that remain when those that are alike are held out."""
    return [other for other in measured() if not alike(one.pattern, other.pattern)]


def held_out_regret(
    way: Way, alike: Callable[[Pattern, Pattern], bool], allowed: Sequence[int]
) -> list[float | None]:
    """Regret of each measured pattern when no curve that is `alike` is known."""
    return [_regret(way, one, _others(one, alike), allowed) for one in measured()]


def few_curves_regret(way: Way, allowed: Sequence[int], seeds: Iterable[int]) -> list[float | None]:
    """Regret of all other patterns when only `FEW` curves are known, drawn again for each seed."""
    found: list[float | None] = []
    for seed in seeds:
        shown = random.Random(seed).sample(measured(), FEW)
        found += [_regret(way, one, shown, allowed) for one in measured() if one not in shown]
    return found


def regret_by_offset(allowed: Sequence[int]) -> dict[tuple[tuple[str, str, str], str, float], list[float]]:
    """Loss from another pattern's curve, by kind of pattern, the one differing condition, and the distance."""
    found: defaultdict[tuple[tuple[str, str, str], str, float], list[float]] = defaultdict(list)
    for one, other in itertools.product(measured(), repeat=2):
        off = offset(one.pattern, other.pattern)
        conditions = {"nodes": off.nodes, "processes per node": off.processes_per_node, "request": off.request}
        differing = [(name, far) for name, far in conditions.items() if far]
        if one.pattern.kind == other.pattern.kind and len(differing) == 1:
            ((name, far),) = differing
            loss = regrets(one.curve, allowed)[fewest(other.curve, allowed, 0.1) or 0]
            found[one.pattern.kind, name, math.ceil(far)].append(loss)
    return found


Runs = Mapping[Pattern, Mapping[int, Sequence[float]]]
"""Bytes per second of each run, by pattern and number of I/O nodes."""


def read_runs(file: Path = RUNS) -> Runs:
    """The single runs behind the bundled means."""
    runs: defaultdict[Pattern, defaultdict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows_of(file):
        layout = "fpp" if row["layout"] == "0" else "shared"
        order = "contiguous" if row["spatiality"] == "0" else "strided"
        pattern = Pattern(int(row["clients"]), int(row["processes"]), layout, order, int(row["request"]) * KiB)
        runs[pattern][int(row["forwarders"])].append(float(row["bandwidth"]) * MiB)
    return runs


def halves(runs: Runs, seed: int) -> tuple[list[Scenario], list[Scenario]]:
    """Curves from one half of each pattern's runs, and from the other half."""
    shuffled = random.Random(seed)
    first, second = [], []
    for pattern, curve in runs.items():
        parts: tuple[dict[int, Rate], dict[int, Rate]] = ({}, {})
        for count, rates in curve.items():
            order = shuffled.sample(rates, len(rates))
            middle = len(order) // 2
            for part, some in zip(parts, (order[:middle], order[middle:]), strict=True):
                part[count] = Rate(statistics.fmean(some), 0.0)
        first.append(Scenario(pattern, parts[0]))
        second.append(Scenario(pattern, parts[1]))
    return first, second


def unseen_runs_regret(
    way: Way, runs: Runs, allowed: Sequence[int], seeds: Iterable[int]
) -> list[float | None]:
    """Regret when one half of the runs of all patterns, including its own, chooses, and the other half judges."""
    found: list[float | None] = []
    for seed in seeds:
        shown, judged = halves(runs, seed)
        found += [_regret(way, one, shown, allowed) for one in judged]
    return found


@dataclass(frozen=True)
class Coverage:
    """Coverage of speed-up ranges: number of runs with a range, and the measured shares inside and below."""

    anchored: float
    inside: float
    below: float


def coverage(runs: Runs, alike: Callable[[Pattern, Pattern], bool], allowed: Sequence[int]) -> Coverage:
    """Compare each run with another number of I/O nodes with each run with the chosen one; see `held_out_regret`."""
    asked = anchored = pairs = inside = below = 0
    for least, most, olds, news, by_curve in _changes(runs, alike, allowed):
        for old in olds:
            asked += 1
            if not 1 / ANCHOR <= old / by_curve <= ANCHOR:
                continue
            anchored += 1
            for new in news:
                pairs += 1
                inside += least <= new / old <= most
                below += new / old < least
    return Coverage(anchored / asked, inside / pairs, below / pairs)


def _changes(
    runs: Runs, alike: Callable[[Pattern, Pattern], bool], allowed: Sequence[int]
) -> Iterator[tuple[float, float, Sequence[float], Sequence[float], float]]:
    for one in measured():
        found = choose(one.pattern, _others(one, alike), allowed, IONodes.most_regret)
        if isinstance(found, str):
            continue
        for now in allowed:
            if now != found.io_nodes:
                least, _, most = speedups(found.rates, now, found.io_nodes)
                curve = runs[one.pattern]
                yield least, most, curve[now], curve[found.io_nodes], found.rates[now].mean


def _print_regret(title: str, regret: Callable[[Way], list[float | None]], names: Iterable[str]) -> None:
    """Print the regret of some methods, without those that refuse every pattern."""
    rows = []
    for name in names:
        one = summary(regret(WAYS[name]))
        if not math.isnan(one.mean):
            shares = (f"{share:.1%}" for share in (one.mean, one.percentile_90, one.worst))
            rows.append((name, *shares, f"{one.refused:.0%}"))
    print_table(title, ("", "mean", "90th percentile", "worst", "refused"), rows)


def main() -> None:
    """Print everything."""
    print("FORGE on MareNostrum 4: 189 patterns of writes, regret of the number of I/O nodes that is chosen")
    of_curves = [name for name in WAYS if "near" in name]
    # A method that ignores curves does not depend on the held-out ones.
    dependent = [name for name in WAYS if not name.startswith("always") or "where" in name]
    for name, allowed in LEGAL.items():
        for held_out, alike in HELD_OUT.items():
            names = WAYS if held_out == "the pattern itself" else dependent
            regret = partial(held_out_regret, alike=alike, allowed=allowed)
            _print_regret(f"{name}, held out: {held_out}", regret, names)
        _print_regret(f"{FEW} curves, {name}", partial(few_curves_regret, allowed=allowed, seeds=range(10)), of_curves)
        table = regret_by_offset(allowed)
        distances = sorted({far for _, _, far in table})
        rows = []
        for kind, condition in dict.fromkeys((kind, condition) for kind, condition, _ in table):
            losses = (table.get((kind, condition, far)) for far in distances)
            cells = (f"{statistics.fmean(some):.1%}" if some else "" for some in losses)
            rows.append((" ".join(kind[1:]), condition, *cells))
        title = f"Mean regret of another pattern's curve by what differs, {name}, by doublings"
        print_table(title, ("", "", *distances), rows, left=2)
    if not RUNS.exists():
        print(f"\n{RUNS.name} is not there: nothing is said about single runs")
        return
    runs = read_runs()
    rows = []
    for name, allowed in LEGAL.items():
        regret = partial(unseen_runs_regret, runs=runs, allowed=allowed, seeds=range(4))
        _print_regret(f"judged by other runs, {name}", regret, of_curves)
        for held_out, alike in HELD_OUT.items():
            one = coverage(runs, alike, allowed)
            rows.append((name, held_out, f"{one.anchored:.0%}", f"{one.inside:.1%}", f"{one.below:.1%}"))
    head = ("", "held out", "runs within the anchor", "inside", "below")
    print_table("Ranges of the speedup, nominal 90 %", head, rows, left=2)
