"""Whether the mean of a write's repetitions is known well enough: by the central limit theorem, as in Xie et al.

The mean of many measured times is normally distributed around the true one. It has converged where, with the confidence
asked for, it lies within a tenth of the true one. One measurement tells nothing of that; it is taken as it is.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from vani.history.write_time.samples import Samples

__all__ = ["CONFIDENCE", "converged"]

CONFIDENCE: Final = 0.9
"""What the paper takes on Titan; on Cetus 0.98."""
_ERROR: Final = 0.1


def converged(samples: Samples, confidence: float = CONFIDENCE) -> npt.NDArray[np.bool_]:
    """Which means have converged, or were measured once; shape (samples,)."""
    if samples.standard_error is None:
        return np.ones(len(samples), dtype=bool)
    times = NormalDist().inv_cdf((1 + confidence) / 2)
    return ~(times * samples.standard_error > _ERROR)
