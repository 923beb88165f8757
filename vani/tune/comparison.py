"""How much faster one setting is than another, by the times of few runs each.

Noise of runs is relative, so logarithms of times are compared. Student's test with one variance for both needs fewer
runs than Welch's, which with two runs each can hardly decide anything; it is exact where the logarithms are normal. No
permutation test can be surer than 1 in 6 with two runs each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True)
class Comparison:
    """How many times as fast, with an interval that is None where one of both ran only once."""

    speedup: float
    low: float | None
    high: float | None


def compare(before: Sequence[float], after: Sequence[float], error_rate: float) -> Comparison:
    """Compare times (s) of runs; each end of the interval is wrong with a probability of `error_rate`.

    Raises
    ------
    ImportError
        scipy is not installed.
    """
    logs = [[math.log(max(value, 1e-9)) for value in times] for times in (before, after)]
    difference = sum(logs[0]) / len(before) - sum(logs[1]) / len(after)
    if min(len(before), len(after)) < 2:
        return Comparison(math.exp(difference), None, None)
    from scipy.special import stdtrit  # noqa: PLC0415 - an extra, and slow to load

    # scipy's test warns where the runs of one setting took the same time, as a clock of whole seconds may show them.
    freedom = len(before) + len(after) - 2
    squares = sum((value - sum(values) / len(values)) ** 2 for values in logs for value in values)
    deviation = math.sqrt(squares / freedom * (1 / len(before) + 1 / len(after)))
    reach = deviation * float(stdtrit(freedom, 1 - error_rate))
    return Comparison(math.exp(difference), math.exp(difference - reach), math.exp(difference + reach))
