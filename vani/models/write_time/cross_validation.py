"""Methods, tested on writes that they were not fitted to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["CrossValidation", "MethodScore"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MethodScore:
    """A method, tested on samples that it was not fitted to.

    Parameters
    ----------
    ratios
        Measured over predicted time, shape (samples,).
    """

    method: str
    ratios: Floats

    @property
    def error(self) -> float:
        """Mean of the logarithm of how many times too long or too short."""
        return float(np.abs(np.log(self.ratios)).mean())

    def only(self, chosen: npt.NDArray[np.bool_]) -> MethodScore:
        """The same of the samples where `chosen`, shape (samples,), is true."""
        return MethodScore(self.method, self.ratios[chosen])

    def within(self, share: float) -> float:
        """Share of the samples whose prediction is off by at most `share` of the measured time."""
        return float((np.abs(1 / self.ratios - 1) <= share).mean())


@dataclass(frozen=True)
class CrossValidation:
    """All methods on samples that they were not fitted to.

    Parameters
    ----------
    by_scale
        By scale, each method's ratios of measured to predicted time.
    unconverged
        The same for larger writes whose repetitions differ too much for a mean; empty where there are none.
    left_out
        Smaller writes of that kind: nothing was fitted to them.
    chosen
        The method that was chosen from the training samples alone.
    low, high
        Ends of its interval over its prediction, the median of the test samples: it is wider further out.
    covered
        Share of the test samples in its interval.
    """

    scale: str
    trained_on: int
    by_scale: dict[float, list[MethodScore]]
    unconverged: list[MethodScore]
    left_out: int
    chosen: str
    low: float
    high: float
    covered: float
