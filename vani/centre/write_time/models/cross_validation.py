"""Results of prediction methods on held-out writes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MethodScore:
    """A method's predictions of held-out samples.

    Parameters
    ----------
    ratios
        Measured over predicted time, shape (samples,).
    """

    method: str
    ratios: Floats

    @property
    def error(self) -> float:
        """Mean absolute logarithm of the ratios."""
        return float(np.abs(np.log(self.ratios)).mean())

    def only(self, chosen: npt.NDArray[np.bool_]) -> MethodScore:
        """The score on the samples for which `chosen`, shape (samples,), is true."""
        return MethodScore(self.method, self.ratios[chosen])

    def within(self, share: float) -> float:
        """Share of the samples with a prediction error of at most `share` of the measured time."""
        return float((np.abs(1 / self.ratios - 1) <= share).mean())


@dataclass(frozen=True)
class CrossValidation:
    """The scores of all methods on held-out samples.

    Parameters
    ----------
    by_scale
        The methods' scores by scale.
    unconverged
        The scores for larger writes whose repetitions differ too much for a mean; empty if there are none.
    left_out
        Number of smaller writes of that kind, which nothing was fitted to.
    chosen
        The method chosen from the training samples alone.
    low, high
        Ends of the chosen method's interval over its prediction, as medians over the test samples. The interval widens
        with the distance from the training samples.
    covered
        Share of the test samples inside that interval.
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
