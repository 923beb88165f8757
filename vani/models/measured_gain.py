"""Correction of a rule's expected gain with `vani tune` measurements of the same rule on the same machine.

The ratio of a measurement is the measured over the expected saving, both as shares of the run. A rule's gains are
multiplied by the median ratio, shrunk toward 1 as if three more measurements had confirmed the model, and their range
is widened to the range of the ratios. Fewer than three sessions correct nothing.

The evaluation used only invented sessions, each left out in turn (tests/models/test_measured_gain.py): there are no
real ones yet. If the model is wrong by a factor of two, the median error shrinks by a third to three quarters, or by
a tenth if the ratios scatter by a factor of 2.7. If the model is right, the error grows by up to a tenth. Only settings
that looked worth trying were measured, so the ratios may be biased by selection.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from vani.schema.advice import Direction, Expected
from vani.units import format_number

LEAST_SESSIONS: Final = 3
_PRIOR: Final = 3.0
"""Weight of the model, as a number of measurements (our choice)."""
_LEAST_EXPECTED: Final = 0.02
"""Least expected saving as a share of the run: below it, noise dominates the ratio."""
_LEAST_RATIO: Final = 0.05
"""Ratio used for no gain or a loss: a recommended setting is expected to save something."""
_WIDEST: Final = 10.0
"""Greatest factor between the ends of a range. A wider one is only a direction."""


@dataclass(frozen=True)
class Correction:
    """A factor for the saved seconds, the least and greatest measured ratio, and the number of sessions."""

    factor: float
    low: float
    high: float
    sessions: int


def correction_of(pairs: Sequence[tuple[float, float]]) -> Correction | None:
    """The correction from (expected, measured) speed-ups of whole runs, one pair per session; None if too few."""
    shares = [(1 - 1 / expected, 1 - 1 / measured) for expected, measured in pairs]
    ratios = [
        max(_LEAST_RATIO, measured / expected) for expected, measured in shares if expected >= _LEAST_EXPECTED
    ]
    if len(ratios) < LEAST_SESSIONS:
        return None
    weight = len(ratios) / (len(ratios) + _PRIOR)
    factor = math.exp(weight * median(map(math.log, ratios)))
    return Correction(factor, min(ratios), max(ratios), len(ratios))


def corrected(expected: Expected, correction: Correction) -> Expected | Direction:
    """The corrected gain, which is a direction if measurements are too different from each other for a number.

    A gain without seconds or a range is returned unchanged.
    """
    if None in (expected.before, expected.after, expected.low, expected.high) or not expected.before:
        return expected
    assert expected.after is not None
    assert expected.low is not None
    assert expected.high is not None
    before, saved = expected.before, expected.before - expected.after

    after = before - correction.factor * saved
    worst = before - min(correction.low * saved, correction.factor * (before - before / expected.low))
    best = before - max(correction.high * saved, correction.factor * (before - before / expected.high))
    worst, best = max(worst, after), min(best, after)
    if best <= 0 or worst > _WIDEST * best:
        return Direction(
            why_no_number=f"{correction.sessions} sessions of vani tune on this machine measured from "
            f"{format_number(correction.low, 2)} to {format_number(correction.high, 2)} times the expected saving"
        )
    return expected.model_copy(
        update={
            "after": after,
            "speedup": before / after,
            "low": before / worst,
            "high": before / best,
            "method": f"{expected.method}; saving times {format_number(correction.factor, 2)}, as "
            f"{correction.sessions} sessions of vani tune measured of this rule on this machine",
        }
    )


def noise_of(groups: Sequence[Sequence[float]]) -> float | None:
    """Relative standard deviation of repeated runs, pooled over all settings; None if no setting was repeated."""
    squares, freedom = 0.0, 0
    for times in groups:
        if len(times) > 1:
            logs = [math.log(max(value, 1e-9)) for value in times]
            mean = sum(logs) / len(logs)
            squares += sum((value - mean) ** 2 for value in logs)
            freedom += len(logs) - 1
    return math.sqrt(squares / freedom) if freedom else None
