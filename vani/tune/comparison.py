"""How much faster one setting is than another, from the times of a few runs each.

Run-to-run noise is relative, so logarithms of times are compared. Student's test with a common variance needs fewer
runs than Welch's, which can hardly decide anything with two runs each; it is exact if the logarithms are normal. With
two runs each, no permutation test reaches an error rate below 1 in 6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Comparison:
    """The speed-up and its confidence interval. The ends are None if one setting ran only once."""

    speedup: float
    low: float | None
    high: float | None


def compare(before: Sequence[float], after: Sequence[float], error_rate: float) -> Comparison:
    """Compare run times in seconds. Each end of the interval is wrong with probability `error_rate`.

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

    # Not scipy's own test: it warns if all runs of a setting took equally long, as with a clock of whole seconds.
    freedom = len(before) + len(after) - 2
    squares = sum((value - sum(values) / len(values)) ** 2 for values in logs for value in values)
    deviation = math.sqrt(squares / freedom * (1 / len(before) + 1 / len(after)))
    reach = deviation * float(stdtrit(freedom, 1 - error_rate))
    return Comparison(math.exp(difference), math.exp(difference - reach), math.exp(difference + reach))
