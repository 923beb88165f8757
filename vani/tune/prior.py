"""The gain to expect of a setting that was not tried yet, and whether it is worth the run that tries it.

The logarithm of the speedup is taken as normal, by the median and the 80 % range of the recommendation's own
estimate. A recommendation without a number gets a wide range that is the same for all.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final

from vani.schema.tuned import Candidate

__all__ = ["expected_saving"]

FASTER: Final = (0.9, 1.1, 1.35)
"""80 % range and median of the speedup where a recommendation expects a faster run without a number (ours)."""
UNKNOWN: Final = (0.8, 1.0, 1.25)
"""The same where it does not know (ours)."""
_HIGHEST: Final = 0.95
"""Share of a run that can be saved at most, whatever a recommendation says of a run of another size."""
_DEVIATIONS: Final = 2 * NormalDist().inv_cdf(0.9)
"""Width of an 80 % range."""


def expected_saving(candidate: Candidate, seconds: float, most_s: float | None) -> float:
    """Share of a run that trying a setting saves on average; one that turns out slower is dropped and saves nothing.

    Parameters
    ----------
    seconds
        Time of a run as it is.
    most_s
        Time that can be saved at most; None where that is not known.
    """
    cap = _HIGHEST if most_s is None else min(_HIGHEST, most_s / seconds)
    low, median, high = _speedups(candidate, seconds)
    centre, width = math.log(median), max(math.log(high / low) / _DEVIATIONS, 1e-6)
    below = NormalDist(centre, width).cdf
    # The mean of 1 - 1/speedup from none to the cap, and the cap beyond it: as the price of an option.
    end = -math.log1p(-cap)
    shifted = NormalDist(centre - width**2, width).cdf
    inside = below(end) - below(0) - math.exp(width**2 / 2 - centre) * (shifted(end) - shifted(0))
    return max(0.0, inside + cap * (1 - below(end)))


def _speedups(candidate: Candidate, seconds: float) -> tuple[float, float, float]:
    if candidate.saves_s is None:
        return FASTER if candidate.is_faster else UNKNOWN
    low, median, high = (1 / (1 - min(_HIGHEST, saved / seconds)) for saved in candidate.saves_s)
    return low, median, high
