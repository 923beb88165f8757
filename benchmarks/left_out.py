"""Stripe counts and gains on measured machines that were not used for choosing, as tables of docs/accuracy.md."""

from __future__ import annotations

import statistics
from typing import Final

from benchmarks.gains import by_machine, of_advice, of_curves
from benchmarks.stripe_runs import DATA, Kind, runs
from benchmarks.stripes import scores_of

_HEAD: Final = """
## Stripes: machines left out

Published measurements of one file by its stripe count (`python -m benchmarks.stripes --leave-one-machine-out`): mean
share of the best bandwidth. *Left out*: targets per node and the least count are those that do best on the other
machines. *In use*: the constants of `vani/models/stripe_count.py`, which are smaller, because fewer targets leave more
to other users. Next to them the best fixed rule (keep, 4, 8, 16, all, one or two per node).

| | {machines} | mean | worst run | runs below half of the best | best fixed rule |
| --- |{lines} ---: | ---: | ---: | --- |
"""

_WAYS: Final = (("left out", True, True), ("in use", True, False), ("in use, nodes unknown", False, False))

_GAINS: Final = """
Gains of another count (`python -m benchmarks.gains`): a run's log and two counts of its machine's curve are known, and
its other measured counts are judged. Without a curve of the machine there is no number.

| machine | changes | with a number | in the range | widest range, high / low | low end above 1.05, but slower |
| --- | ---: | ---: | ---: | ---: | ---: |
"""


def section() -> list[str]:
    """Both tables; empty if the measurements are not available."""
    if not DATA.exists():
        return []
    machines = sorted({run.machine for run in runs() if run.kind in ("collective", "independent")})
    head = _HEAD.format(machines=" | ".join(machines), lines=" ---: |" * len(machines))
    kinds: tuple[Kind, ...] = ("collective", "independent")
    lines = [head.rstrip("\n")]
    for kind in kinds:
        for words, knows_nodes, left_out in _WAYS:
            lines.append(_counts(kind, machines, words, scores_of(kind, knows_nodes=knows_nodes, left_out=left_out)))
    lines.append(_GAINS.rstrip("\n"))
    points = of_curves()
    for name, own in (*by_machine(points).items(), ("all", points)):
        given = [(p, p.low, p.high) for p in own if p.low is not None and p.high is not None]
        slower = sum(point.measured < 1 and low > 1.05 for point, low, _ in given)
        lines.append(
            f"| {name} | {len(own)} | {len(given)} | {statistics.fmean(p.is_inside for p, _, _ in given):.0%} "
            f"| {max(high / low for _, low, high in given):.1f} | {slower} |"
        )
    given = [point for point in of_advice(curves=True) if point.low is not None]
    lines += [
        "",
        f"Recommendations for counts that are not on the curve: {len(given)} numbers, "
        f"{statistics.fmean(point.is_inside for point in given):.0%} in their range.",
    ]
    return lines


def _counts(kind: Kind, machines: list[str], words: str, scores: dict[str, dict[str, list[float]]]) -> str:
    fixed = {name for by_rule in scores.values() for name in by_rule} - {"advised"}
    means = {name: statistics.fmean(statistics.fmean(one[name]) for one in scores.values()) for name in fixed}
    best = max(means, key=lambda name: means[name])
    ours = {machine: by_rule["advised"] for machine, by_rule in scores.items()}
    pooled = [share for some in ours.values() for share in some]
    cells = [f"{statistics.fmean(ours[name]):.0%}" if name in ours else "" for name in machines]
    return (
        f"| {kind}, {words} | {' | '.join(cells)} | {statistics.fmean(map(statistics.fmean, ours.values())):.0%} "
        f"| {min(pooled):.0%} | {statistics.fmean(share < 0.5 for share in pooled):.1%} of {len(pooled)} "
        f"| {best}: {means[best]:.0%} |"
    )
