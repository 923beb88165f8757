"""`python -m benchmarks.gains`: expected gains compared with measured ones.

- Stripe counts: a run's log and two counts of its machine's curve are known, and its other measured counts are judged.
- AIIO's pairs of runs before and after a change (Cori, Darshan logs).

`tables` has those of docs/accuracy.md: stripe counts and gains on machines that were not used for choosing.
"""

from __future__ import annotations

import functools
import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import vani
from benchmarks.data import DATA, aiio, markdown, no_measurements, print_table
from benchmarks.stripes import KINDS, MeasuredRun, advice, aims_of, runs, scores_of
from vani.models import stripe_count
from vani.models.calibration import SPREAD
from vani.schema.advice import Expected
from vani.schema.profile import Profile
from vani.schema.system import StripePoint
from vani.units import MiB

PROMISED: Final = 1.05
"""Low end of a range from which on a run must not get slower."""

AIIO: Final = {
    "h5bench: 512 bytes independently, then large pieces": ("66082102", "66089597", "MIO001"),
    "ior: requests of 1 KiB between each other's, then of 1 MiB": ("66186370", "66184525", "POS009"),
    "write_3d_nc4: independent, then collective": ("66168155", "66168349", "MIO001"),
}
"""Pairs of jobs, the first and the second run, and the rule that advises the change."""


@dataclass(frozen=True)
class Change:
    """A run on `before` targets that goes to `after`, with its measured and expected speed-up.

    `low` to `high` is the expected range; None without a number.
    """

    run: MeasuredRun
    before: int
    after: int
    measured: float
    low: float | None = None
    high: float | None = None

    @property
    def is_inside(self) -> bool:
        return self.low is not None and self.high is not None and self.low <= self.measured <= self.high


@functools.cache
def of_curves(data: Path = DATA) -> tuple[Change, ...]:
    """The model on counts that it does not know: every two counts of a run are the machine's curve.

    The log of the run is on one of both counts, and the other measured counts are judged.
    """
    rows = []
    for run in runs(data):
        for pair in itertools.combinations(sorted(run.measured), 2):
            points = [StripePoint(stripe_count=count, bandwidth=run.measured[count] * MiB) for count in pair]
            for before, after in itertools.product(pair, sorted(set(run.measured) - set(pair))):
                expected = stripe_count.speedup(points, before, after)
                measured = run.measured[after] / run.measured[before]
                if expected is None:
                    rows.append(Change(run, before, after, measured))
                else:
                    spread = max(SPREAD, expected[1])
                    rows.append(Change(run, before, after, measured, expected[0] / spread, expected[0] * spread))
    return tuple(rows)


@functools.cache
def of_advice(data: Path = DATA, *, curves: bool) -> tuple[Change, ...]:
    """Every start for which LUS002 makes a recommendation, with every two counts of the run as curve or without."""
    rows = []
    for run in runs(data):
        if run.kind == "file per process":
            continue
        counts = sorted(run.measured)
        for start, pair in itertools.product(counts, itertools.combinations(counts, 2) if curves else [()]):
            given = advice(run, start, curve=pair)
            after = start if given is None else int(given.recommended["stripe_count"])  # type: ignore[arg-type]
            if given is not None and after != start and after not in pair:
                gain = given.gain
                low, high = (None, None) if gain is None else (gain.low, gain.high)
                rows.append(Change(run, start, after, run.rate(after) / run.measured[start], low, high))
    return tuple(rows)


HEAD: Final = (
    "machine", "changes", "with a number", "in the range", "widest range, high / low", "low end above 1.05, but slower",
)  # fmt: skip


def row(name: str, points: Sequence[Change]) -> tuple[object, ...]:
    """Number of changes, of numbers, share inside their range, widest range, and slower runs with a low end above 1."""
    given = [(point, point.low, point.high) for point in points if point.low is not None and point.high is not None]
    inside = statistics.fmean(point.is_inside for point, _, _ in given) if given else math.nan
    widest = max((high / low for _, low, high in given), default=math.nan)
    slower = sum(point.measured < 1 and low > PROMISED for point, low, _ in given)
    return name, len(points), len(given), f"{inside:.0%}", f"{widest:.1f}", slower


def gains_of_counts() -> list[str]:
    """Other counts of a run from two counts of its machine's curve, as lines of Markdown."""
    machines = sorted({point.run.machine for point in of_curves()})
    rows = [row(name, [point for point in of_curves() if point.run.machine == name]) for name in machines]
    return markdown(HEAD, [*rows, row("all", of_curves())])


def print_gains() -> None:
    """All tables."""
    if no_measurements():
        return
    print("\n".join(["Other counts of a run from two counts of its machine's curve", "", *gains_of_counts()]))
    curves = {"two counts of a curve": True, "no curve": False}
    rows = [row(name, of_advice(curves=known)) for name, known in curves.items()]
    print_table("Recommendations (LUS002) for counts that are not on the curve", HEAD, rows)
    _print_aiio()


def _print_aiio() -> None:
    print("\nAIIO, pairs of runs: I/O time of the slowest process, and the gain of the rule that advises the change")
    for name, (first, second, rule) in AIIO.items():
        profiles = [aiio(first), aiio(second)]
        before, after = (_slowest_s(p) for p in profiles)
        answer = vani.advise(profiles[0], system="generic-lustre", select=[rule])
        words = [_words(entry.expected) for entry in answer.recommendations]
        gains = [entry.gain for entry in answer.recommendations if entry.gain]
        inside = all((gain.low or 0.0) <= before / after <= (gain.high or math.inf) for gain in gains)
        judged = f" ({'inside' if inside else 'OUTSIDE'})" if gains else ""
        print(f"  {name}: {before:.1f} s -> {after:.1f} s, x{before / after:.3g}; {rule}: {', '.join(words)}{judged}")


def _slowest_s(profile: Profile) -> float:
    balance = profile.apps[0].balance
    return (balance and balance.slowest_io_time_s) or 0.0


def _words(expected: object) -> str:
    if isinstance(expected, Expected):
        return f"x{expected.speedup:.3g} (x{expected.low:.3g} to x{expected.high:.3g})"
    return "null" if expected is None else f"faster: {expected.why_no_number}"  # type: ignore[attr-defined]

_WAYS: Final = (("left out", True, True), ("in use", True, False), ("in use, nodes unknown", False, False))


def tables() -> dict[str, list[str]]:
    """Both tables as lines of Markdown; empty if the measurements are not available."""
    if not DATA.exists():
        return {}
    machines = sorted({run.machine for run in runs()})
    rows = [
        _counts(f"{kind}, {words}", machines, scores_of(kind, knows_nodes=knows_nodes, left_out=left_out))
        for kind, (words, knows_nodes, left_out) in itertools.product(KINDS[:2], _WAYS)
    ]
    # One machine was measured with these, so that none can be left out.
    rows += [_counts(f"{kind}, in use", machines, scores_of(kind)) for kind in KINDS[2:]]
    head = ("", *machines, "mean", "worst run", "runs below half of the best", "best fixed rule")
    _, _, given, inside, *_ = row("", of_advice(curves=True))
    judged = f"{given} numbers, {inside} in their range" if given else "none has a number"
    gains = [*gains_of_counts(), "", f"Recommendations for counts that are not on the curve: {judged}."]
    return {"stripes": markdown(head, rows, last=1), "stripe gains": gains}


def _counts(name: str, machines: Sequence[str], scores: dict[str, dict[str, list[float]]]) -> tuple[str, ...]:
    aims = aims_of(scores)
    ours = {machine: by_rule["advised"] for machine, by_rule in scores.items()}
    pooled = [share for some in ours.values() for share in some]
    cells = (f"{statistics.fmean(ours[machine]):.0%}" if machine in ours else "" for machine in machines)
    of_all = (f"{aims.mean:.0%}", f"{min(pooled):.0%}", f"{aims.low:.1%} of {len(pooled)}")
    return name, *cells, *of_all, f"{aims.rule}: {aims.best:.0%}"


if __name__ == "__main__":
    print_gains()
