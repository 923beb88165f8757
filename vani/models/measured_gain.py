"""Correction of an expected gain by what `vani tune` measured of the same rule on the same machine.

The ratio of a measurement is the measured over the expected saved share of the run. A rule's gains are multiplied
by the median ratio, drawn toward 1 as if three further measurements had found the model right, and their range is
widened to what the ratios span. Fewer than three sessions correct nothing.

It was judged on invented sessions alone, each left out in turn (tests/models/test_measured_gain.py), for there are no
real ones yet. Where the model is wrong by a factor of two, the median error shrinks by a third to three quarters, or by
a tenth where the ratios scatter by 2.7 times; where the model is right, it grows by up to a tenth. Settings that were
tried are those that looked worth it, so ratios may be those of a lucky choice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from vani.schema.advice import Expected
from vani.units import format_number

__all__ = ["LEAST_SESSIONS", "Correction", "corrected", "correction_of"]

LEAST_SESSIONS: Final = 3
_PRIOR: Final = 3.0
"""Measurements that the model itself counts as (ours)."""
_LEAST_EXPECTED: Final = 0.02
"""Share of the run: below it, noise makes any ratio."""
_LEAST_RATIO: Final = 0.05
"""No gain, or a loss, counts as this ratio: a recommended setting is expected to save something."""
_WIDEST: Final = math.sqrt(10)
"""Factor either way of the central estimate that a range has at most, as in `vani.advisors.gains`."""


@dataclass(frozen=True)
class Correction:
    """A factor for the saved seconds, the least and the most ratio seen, and the number of sessions."""

    factor: float
    low: float
    high: float
    sessions: int


def correction_of(pairs: Sequence[tuple[float, float]]) -> Correction | None:
    """Correction by pairs of expected and measured speedups of whole runs, one a session; None: too few."""
    shares = [(1 - 1 / expected, 1 - 1 / measured) for expected, measured in pairs]
    ratios = [
        max(_LEAST_RATIO, measured / expected) for expected, measured in shares if expected >= _LEAST_EXPECTED
    ]
    if len(ratios) < LEAST_SESSIONS:
        return None
    weight = len(ratios) / (len(ratios) + _PRIOR)
    factor = math.exp(weight * float(np.median(np.log(ratios))))
    return Correction(factor, min(ratios), max(ratios), len(ratios))


def corrected(expected: Expected, correction: Correction) -> Expected:
    """The expected gain, corrected; one without a number of seconds or a range stays as it is."""
    if None in (expected.before, expected.after, expected.low, expected.high) or not expected.before:
        return expected
    assert expected.after is not None
    assert expected.low is not None
    assert expected.high is not None
    before, won = expected.before, expected.before - expected.after

    def left(seconds: float) -> float:
        return max(before / 100, before - seconds)

    after = left(correction.factor * won)
    worst = max(left(correction.low * won), before - correction.factor * (before - before / expected.low))
    best = min(left(correction.high * won), left(correction.factor * (before - before / expected.high)))
    return expected.model_copy(
        update={
            "after": after,
            "speedup": before / after,
            "low": before / min(max(worst, after), _WIDEST * after),
            "high": before / max(min(best, after), after / _WIDEST),
            "method": f"{expected.method}; saving times {format_number(correction.factor, 2)}, as "
            f"{correction.sessions} sessions of vani tune measured of this rule on this machine",
        }
    )
