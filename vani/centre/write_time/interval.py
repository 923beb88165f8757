"""Prediction interval that contains nine of ten new values, from earlier measurements."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

NOMINAL: Final = 0.9
ENOUGH: Final = 19
"""Least number of values with a 5 % quantile."""


def nine_of_ten(values: Floats) -> Floats:
    """Bounds of the interval, shape (2,).

    With `ENOUGH` values or more they are quantiles (split conformal prediction), with fewer those of Student's t.

    Parameters
    ----------
    values
        Measurements in any order, shape (n,) with n >= 1.
    """
    values = np.sort(values)
    count = len(values)
    tail = (1 - NOMINAL) / 2
    if count >= ENOUGH:
        # Rounded, because 0.05 * 40 is just below 2.
        below = max(0, math.floor(round(tail * (count + 1), 9)) - 1)
        return values[[below, count - 1 - below]]
    width = float(values.std(ddof=1)) if count > 1 else float(np.abs(values[0]))
    reach = _student(1 - tail, max(1, count - 1)) * width * float(np.sqrt(1 + 1 / count))
    return np.asarray(values.mean() + np.array([-reach, reach]))


def _student(share: float, freedom: int) -> float:
    """Quantile of Student's t above the median: exact up to two degrees of freedom, within 1 % (Fisher) beyond."""
    if freedom == 1:
        return math.tan(math.pi * (share - 0.5))
    if freedom == 2:
        return (2 * share - 1) / math.sqrt(2 * share * (1 - share))
    z = NormalDist().inv_cdf(share)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3
