"""Stripe counts and gains on measured machines that were not used for choosing, as tables of docs/accuracy.md."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from typing import Final

import numpy as np

from benchmarks.gains import MEASURABLE, Change, by_machine, changes, errors, fitted, is_inside, limits
from benchmarks.stripe_runs import DATA, Kind, Run, runs
from benchmarks.stripes import OF_NODES, THUMB, Rule, advised, assumed, chosen, shares
from vani.models import stripe_count

_HEAD: Final = """
## Stripes: machines left out

Published measurements of one file by its stripe count. Targets per node (and, for unknown nodes, processes per node)
are chosen on all machines but one and judged on that one: mean share of the best bandwidth. The fixed rule (keep, 4,
8, 16, all, or one or two per node) is the best over all machines.

| | {machines} | mean | runs below half of the best | best fixed rule |
| --- |{lines} ---: | ---: | --- |
"""

_GAINS: Final = """
Gains of more targets, from every measured count. Node rate, power and range are fitted to the other machines. *In
use* are the rounded constants of `vani/models/stripe_count.py`, chosen with all machines.

| machine left out | starts | in the range | above | below | median of measured / expected | in use: in it | median |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""


def section() -> list[str]:
    """Both tables; empty if the measurements are not available."""
    if not DATA.exists():
        return []
    machines = sorted({run.machine for run in runs(DATA) if run.kind in ("collective", "independent")})
    head = _HEAD.format(machines=" | ".join(machines), lines=" ---: |" * len(machines))
    lines = [head.rstrip("\n")]
    kinds: tuple[Kind, ...] = ("collective", "independent")
    for kind in kinds:
        some = [run for run in runs(DATA) if run.kind == kind]
        lines += [_counts(kind, some, machines, knows_nodes=knows_nodes) for knows_nodes in (True, False)]
    lines += [_GAINS.rstrip("\n"), *_gains()]
    for knows_nodes in (True, False):
        lines += ["", _given(changes(knows_nodes=knows_nodes), "known" if knows_nodes else "unknown")]
    return lines


def _counts(kind: Kind, some: Sequence[Run], machines: Sequence[str], *, knows_nodes: bool) -> str:
    own = {name: [run for run in some if run.machine == name] for name in machines}
    own = {name: measured for name, measured in own.items() if measured}
    reached = {
        name: shares(_rule([run for run in some if run.machine != name], knows_nodes=knows_nodes), measured)
        for name, measured in own.items()
    }
    thumb = {name: rule for name, rule in THUMB.items() if knows_nodes or name not in OF_NODES}
    means = {
        name: statistics.fmean(statistics.fmean(shares(rule, measured)) for measured in own.values())
        for name, rule in thumb.items()
    }
    best = max(means, key=lambda name: means[name])
    cells = [f"{statistics.fmean(reached[name]):.0%}" if name in reached else "" for name in machines]
    pooled = [share for some_shares in reached.values() for share in some_shares]
    mean = statistics.fmean(statistics.fmean(some_shares) for some_shares in reached.values())
    below = statistics.fmean(share < 0.5 for share in pooled)
    nodes = "known" if knows_nodes else "unknown"
    return (
        f"| {kind}, nodes {nodes} | {' | '.join(cells)} | {mean:.0%} | {below:.1%} of {len(pooled)} "
        f"| {best}: {means[best]:.0%} |"
    )


def _rule(others: Sequence[Run], *, knows_nodes: bool) -> Rule:
    per_node = chosen(others)
    if knows_nodes:
        return functools.partial(advised, per_node=per_node)
    return functools.partial(
        advised, knows_nodes=False, per_node=per_node, processes_per_node=assumed(others, per_node)
    )


def _gains() -> list[str]:
    points = [point for point in changes() if point.after > point.before]
    used = (stripe_count.NODE_RATE, stripe_count.EXPONENT, stripe_count.RANGE_EXPONENT)
    lines = []
    for machine, own in by_machine(points).items():
        within, above, below, median = _judged(own, fitted([p for p in points if p.run.machine != machine]))
        in_use, _, _, median_in_use = _judged(own, used)
        lines.append(
            f"| {machine} | {len(own)} | {within:.0%} | {above:.0%} | {below:.0%} | {median:.2f} | {in_use:.0%} "
            f"| {median_in_use:.2f} |"
        )
    return lines


def _judged(
    own: Sequence[Change], parameters: tuple[float, float, float]
) -> tuple[float, float, float, float]:
    off, most = errors(own, *parameters[:2]), limits(own, parameters[2])
    above, below = float((off > most).mean()), float((off < -most).mean())
    return 1 - above - below, above, below, math.exp(float(np.median(off)))


def _given(points: Sequence[Change], nodes: str) -> str:
    large = [point for point in points if point.measured > MEASURABLE]
    given = [(point.measured, point.expected) for point in points if point.expected is not None]
    ratios = [measured / (expected.speedup or 1.0) for measured, expected in given]
    inside = statistics.fmean(is_inside(measured, expected) for measured, expected in given)
    number = statistics.fmean(point.expected is not None for point in large)
    return (
        f"Advice, nodes {nodes}: of {len(large)} changes measured above {MEASURABLE} "
        f"times, {number:.0%} get a number; {inside:.0%} of {len(given)} ranges contain the measurement; median of "
        f"measured / expected {statistics.median(ratios):.2f}."
    )
