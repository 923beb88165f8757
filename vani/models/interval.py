"""Prediction interval that contains nine of ten new values, from earlier measurements."""

from __future__ import annotations

from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["ENOUGH", "NOMINAL", "nine_of_ten"]

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
        below = max(0, int(np.floor(tail * (count + 1))) - 1)
        return values[[below, count - 1 - below]]
    width = float(values.std(ddof=1)) if count > 1 else float(np.abs(values[0]))
    reach = _student(1 - tail, max(1, count - 1)) * width * float(np.sqrt(1 + 1 / count))
    return np.asarray(values.mean() + np.array([-reach, reach]))


def _student(share: float, freedom: int) -> float:
    """Quantile of Student's t by Fisher's expansion, accurate to 0.01 with five degrees of freedom or more."""
    z = NormalDist().inv_cdf(share)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3
