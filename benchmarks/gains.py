"""`python -m benchmarks.gains`: expected gains compared with measured ones.

- Stripe counts: every measured count of the sweeps as the start, the gain of the count that LUS002 advises for it. The
  node rate, the exponent and the range of `vani/models/stripe_count.py` are fitted to all machines but one and
  judged on that one.
- AIIO's pairs of runs before and after a change (Cori, Darshan logs).

With `--nodes-unknown` profiles lack the number of nodes, and only the resulting advice is printed.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

import vani
from benchmarks.stripe_runs import DATA, Run, runs
from benchmarks.stripes import advice
from vani.models import stripe_count
from vani.models.calibration import SPREAD
from vani.schema.advice import Expected
from vani.schema.profile import Profile
from vani.units import MiB

WITHIN: Final = 0.8
"""Share of measured speed-ups that a range should contain."""

MEASURABLE: Final = 1.3
"""Speed-up from which on a change should have a number."""

AIIO: Final = {
    "h5bench: 512 bytes independently, then large pieces": ("66082102", "66089597", "MIO001"),
    "ior: requests of 1 KiB between each other's, then of 1 MiB": ("66186370", "66184525", "POS009"),
    "write_3d_nc4: independent, then collective": ("66168155", "66168349", "MIO001"),
}
"""Pairs of jobs, the first and the second run, and the rule that advises the change."""


@dataclass(frozen=True)
class Change:
    """A run on `before` targets that is advised `after`, with its measured and expected gain.

    `expected` is None if the advice gives no number.
    """

    run: Run
    before: int
    after: int
    measured: float
    expected: Expected | None

    def estimate(self, node_rate: float, exponent: float) -> float:
        """The estimate of the model with other parameters."""
        return stripe_count.speedup(
            self.before,
            self.after,
            self.run.measured[self.before] * MiB,
            nodes=self.run.nodes or math.ceil(self.run.processes / 16),
            node_rate=node_rate,
            exponent=exponent,
        )


@functools.cache
def changes(data: Path = DATA, *, knows_nodes: bool = True) -> tuple[Change, ...]:
    """Every start for which LUS002 makes a recommendation."""
    rows = []
    for run in runs(data):
        if run.kind == "file per process":
            continue
        for start in run.measured:
            recommendation = advice(run, start, knows_nodes=knows_nodes)
            if recommendation is not None:
                after = int(recommendation.recommended["stripe_count"])  # type: ignore[arg-type]
                if after != start:
                    measured = run.rate(after) / run.measured[start]
                    rows.append(Change(run, start, after, measured, recommendation.gain))
    return tuple(rows)


def fitted(points: Sequence[Change]) -> tuple[float, float, float]:
    """Node rate, exponent and exponent of the range.

    Fits by least squares of logarithms, in which each machine has the same weight and overestimates weigh twice as
    much. Then takes the narrowest range that contains four of five changes on the machine that needs the widest.
    """
    grid = itertools.product((0.4e9, 0.6e9, 0.8e9, 1.2e9, 1.6e9), (0.2, 0.3, 0.4, 0.5, 0.6))

    def loss(pair: tuple[float, float]) -> float:
        of_machines = [errors(own, *pair) for own in by_machine(points).values()]
        return statistics.fmean(float(np.mean(np.where(e < 0, 2.0, 1.0) * e**2)) for e in of_machines)

    best = min(grid, key=loss)
    wide = next(
        exponent
        for exponent in np.arange(0.1, 1.0, 0.02)
        if all(_within(own, *best, float(exponent)) >= WITHIN for own in by_machine(points).values())
    )
    return (*best, float(wide))


def by_machine(points: Sequence[Change]) -> dict[str, list[Change]]:
    machines = sorted({point.run.machine for point in points})
    return {name: [point for point in points if point.run.machine == name] for name in machines}


def errors(points: Sequence[Change], node_rate: float, exponent: float) -> np.ndarray:
    return np.asarray([math.log(point.measured / point.estimate(node_rate, exponent)) for point in points])


def limits(points: Sequence[Change], exponent: float) -> np.ndarray:
    factors = [max(SPREAD, (point.after / point.before) ** exponent) for point in points]
    logs: np.ndarray = np.log(np.asarray(factors))
    return logs


def _within(points: Sequence[Change], node_rate: float, exponent: float, wide: float) -> float:
    return float((np.abs(errors(points, node_rate, exponent)) <= limits(points, wide)).mean())


def print_gains(data: Path = DATA) -> None:
    """Both tables."""
    if not data.exists():
        print(f"No measurements: {data.name} is not beside the repository")
        return
    points = [point for point in changes(data) if point.after > point.before]
    used = (stripe_count.NODE_RATE, stripe_count.EXPONENT, stripe_count.RANGE_EXPONENT)
    print(
        "Gains of more targets, every measured count as the start; fitted to the other machines, and as in use"
    )
    print(
        "  machine      starts   node GB/s   exponents    within   above   below   median measured / expected"
    )
    for machine, own in by_machine(points).items():
        _row(machine, own, fitted([point for point in points if point.run.machine != machine]))
        _row("  in use", own, used)
    print("  all machines: {:.1f} GB/s, {:.1f}, {:.2f}".format(*_shown(fitted(points))))
    _print_given(changes(data))
    _print_aiio(data / "aiio-darshan")


def _shown(parameters: tuple[float, float, float]) -> tuple[float, float, float]:
    return parameters[0] / 1e9, *parameters[1:]


def _row(name: str, points: Sequence[Change], parameters: tuple[float, float, float]) -> None:
    off, most = errors(points, *parameters[:2]), limits(points, parameters[2])
    above, below = float((off > most).mean()), float((off < -most).mean())
    figures = "{:<11.1f} {:.1f}, {:<7.2f}".format(*_shown(parameters))
    shares = f"{1 - above - below:<8.0%} {above:<7.0%} {below:<7.0%}"
    print(f"  {name:<12} {len(points):<8} {figures} {shares} {math.exp(float(np.median(off))):.2f}")


def _print_given(points: Sequence[Change]) -> None:
    large = [point for point in points if point.measured > MEASURABLE]
    given = [point for point in points if point.expected is not None]
    print(f"\nOf {len(large)} changes that are measured to give more than x{MEASURABLE}: ", end="")
    print(f"{sum(point.expected is not None for point in large) / len(large):.0%} with a number")
    print(f"Of {len(points)} changes: {len(given)} with a number, others with a direction")
    inside = [is_inside(point.measured, point.expected) for point in given if point.expected]
    ratios = [point.measured / (point.expected.speedup or 1) for point in given if point.expected]
    print(f"  measured within the range: {statistics.fmean(inside):.0%}; ", end="")
    print(f"median measured / expected: {statistics.median(ratios):.2f}")
    slower = [point for point in points if point.measured < 0.95]
    print(
        f"  measured to be slower by more than a twentieth: {len(slower)}, worst x{min(p.measured for p in points):.2f}"
    )


def is_inside(measured: float, expected: Expected) -> bool:
    return (expected.low or 0.0) <= measured <= (expected.high or math.inf)


def _print_aiio(folder: Path) -> None:
    print(
        "\nAIIO, pairs of runs: I/O time of the slowest process, and the gain of the rule that advises the change"
    )
    for name, (first, second, rule) in AIIO.items():
        profiles = [vani.profile(next(folder.glob(f"*id{job}-*.darshan"))) for job in (first, second)]
        before, after = (_slowest_s(p) for p in profiles)
        answer = vani.advise(profiles[0], system="generic-lustre", select=[rule])
        words = [_words(entry.expected) for entry in answer.recommendations]
        contains = any(is_inside(before / after, entry.gain) for entry in answer.recommendations if entry.gain)
        print(
            f"  {name}: {before:.1f} s -> {after:.1f} s, x{before / after:.3g}; {rule}: {', '.join(words)}, "
            f"which {'contains' if contains else 'does not contain'} it"
        )


def _slowest_s(profile: Profile) -> float:
    balance = profile.apps[0].balance
    return (balance and balance.slowest_io_time_s) or 0.0


def _words(expected: object) -> str:
    if isinstance(expected, Expected):
        return f"x{expected.speedup:.3g} (x{expected.low:.3g} to x{expected.high:.3g})"
    return "null" if expected is None else f"faster: {expected.why_no_number}"  # type: ignore[attr-defined]


def main(arguments: Sequence[str] = ()) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gains", description=__doc__)
    parser.add_argument(
        "--nodes-unknown", action="store_true", help="leave the number of nodes out of the profiles"
    )
    if parser.parse_args(arguments).nodes_unknown:
        _print_given(changes(knows_nodes=False))
    else:
        print_gains()


if __name__ == "__main__":
    main(sys.argv[1:])
