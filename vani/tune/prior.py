"""The expected gain of a setting before it is tried, which shows whether it is worth a run.

The logarithm of the speed-up is assumed normal, with the median and 80 % range of the recommendation's own
estimate. Recommendations without a number all get the same wide range.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final

from vani.schema.tuned import Candidate

FASTER: Final = (0.9, 1.1, 1.35)
"""Low end, median and high end (80 %) of the speed-up if a recommendation expects one without a number (our choice)."""
UNKNOWN: Final = (0.8, 1.0, 1.25)
"""The same range for a recommendation that does not expect a faster run (our choice)."""
_HIGHEST: Final = 0.95
"""Largest share of a run that can be saved, even if a recommendation for a run of another size expects more."""
_DEVIATIONS: Final = 2 * NormalDist().inv_cdf(0.9)
"""Width of an 80 % range in standard deviations."""


def expected_saving(candidate: Candidate, seconds: float, most_s: float | None) -> float:
    """Mean share of a run that trying a setting saves. A setting that turns out slower is dropped and saves nothing.

    Parameters
    ----------
    seconds
        Time of a run without settings.
    most_s
        Most time that can be saved; None if unknown.
    """
    cap = _HIGHEST if most_s is None else min(_HIGHEST, most_s / seconds)
    low, median, high = _speedups(candidate, seconds)
    centre, width = math.log(median), max(math.log(high / low) / _DEVIATIONS, 1e-6)
    below = NormalDist(centre, width).cdf
    # Mean of 1 - 1/speedup between 0 and the cap, plus the cap above it, like the price of a call option.
    end = -math.log1p(-cap)
    shifted = NormalDist(centre - width**2, width).cdf
    inside = below(end) - below(0) - math.exp(width**2 / 2 - centre) * (shifted(end) - shifted(0))
    return max(0.0, inside + cap * (1 - below(end)))


def _speedups(candidate: Candidate, seconds: float) -> tuple[float, float, float]:
    if candidate.saves_s is None:
        return FASTER if candidate.is_faster else UNKNOWN
    low, median, high = (1 / (1 - min(_HIGHEST, saved / seconds)) for saved in candidate.saves_s)
    return low, median, high
