"""The choice of a method, and the error of its predictions, both by holding out the largest scale, as in use.

A model is made from small runs to predict large ones. So each method is fitted without the largest scale of the samples
and scores on it; the best one is fitted again to all. The ratios of measured to predicted time on the scale held out
give the interval: of new samples that are as far from the training as those, nine of ten lie within. Of many ratios
their quantiles are taken (split conformal prediction); of few, what nine of ten draws from a normal distribution like
theirs would hold, and where they are fewer than nine, the scale before is held out in the same way and adds its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from vani.errors import InputError
from vani.history.write_time.methods import methods
from vani.history.write_time.samples import Floats, Samples
from vani.history.write_time.stages import Kinds, kinds_of
from vani.models.write_time.cross_validation import MethodScore

__all__ = ["NOMINAL", "Fitted", "choose", "fit_with", "judge", "score_all"]

NOMINAL: Final = 0.9
_LEAST: Final = 8
"""Samples in all below which nothing is fitted."""
_FEW: Final = 19
"""Held-out samples below which no quantile of 5 % is known."""
_FEWEST: Final = 9
"""Held-out samples below which nine of ten are not known."""

# Sizes and times near the limits of floats overflow; a method that they spoil is judged by its predictions.
_extreme_numbers = np.errstate(all="ignore")


@dataclass(frozen=True)
class Fitted:
    """A method fitted to all samples, and by how much the time may differ.

    Parameters
    ----------
    low, high
        Measured over predicted time: nine of ten lie between.
    scores
        All methods on the scale that was held out, the best first.
    held_out
        Samples that the interval rests on.
    """

    method: str
    parameters: dict[str, Any]
    known: Kinds
    low: float
    high: float
    scores: tuple[MethodScore, ...]
    held_out: int = 0

    @_extreme_numbers
    def predict(self, samples: Samples) -> Floats:
        """Seconds, shape (samples,)."""
        return np.asarray(methods()[self.method].predict(self.parameters, samples, self.known), dtype=float)


@_extreme_numbers
def judge(method: str, train: Samples, scale: Floats, test: Samples) -> MethodScore:
    """Fit to `train`, whose scales are `scale`, and test on `test`."""
    known = kinds_of(train)
    fit, predict = methods()[method].fit, methods()[method].predict
    predicted = predict(fit(train, scale, known), test, known)
    return MethodScore(method, test.seconds / np.maximum(predicted, 1e-6))


def score_all(
    train: Samples, scale: Floats, test: Samples, names: Iterable[str] | None = None
) -> list[MethodScore]:
    """Judge methods, the plain ones first.

    Parameters
    ----------
    names
        Which; None: all whose libraries are installed.

    Raises
    ------
    InputError
        A method that was named needs a library that is not installed.
    """
    scores = []
    for name in names if names is not None else methods():
        try:
            scores.append(judge(name, train, scale, test))
        except InputError:
            if names is not None:
                raise
    return scores


def choose(
    samples: Samples,
    scale: Floats,
    names: Iterable[str] | None = None,
) -> Fitted:
    """Take the method that is best on the largest scale, without having seen it.

    Parameters
    ----------
    scale
        Shape (samples,).
    names
        Methods to choose from; None: all that are installed.

    Raises
    ------
    InputError
        Fewer than eight samples, or a single scale: nothing can be held out.
    """
    if len(samples) < _LEAST:
        raise InputError(f"{len(samples)} samples", where="samples", todo=f"measure at least {_LEAST} writes")
    scales = np.unique(scale)
    if len(scales) < 2:
        raise InputError(
            "all samples are of one scale",
            where="samples",
            todo="measure at least two, so that one can be held out",
        )
    largest = scale == scales[-1]
    small, large = samples.only(~largest), samples.only(largest)
    scores = score_all(small, scale[~largest], large, names)
    scores.sort(key=lambda score: score.error)
    return fit_with(scores[0].method, samples, scale, tuple(scores))


@_extreme_numbers
def fit_with(method: str, samples: Samples, scale: Floats, scores: tuple[MethodScore, ...]) -> Fitted:
    """Fit one method to all samples; the interval is that of its held-out ratios, `scores` on the largest scale."""
    known = kinds_of(samples)
    ratios = next(score.ratios for score in scores if score.method == method)
    for limit in np.unique(scale)[-2:1:-1]:  # Of one scale alone nothing is learnt about larger ones.
        if len(ratios) >= _FEWEST:
            break
        smaller = scale < limit
        earlier = judge(method, samples.only(smaller), scale[smaller], samples.only(scale == limit))
        ratios = np.concatenate([ratios, earlier.ratios])
    low, high = _interval(ratios)
    fitted = methods()[method].fit(samples, scale, known)
    return Fitted(method, fitted, known, low, high, scores, len(ratios))


def _interval(ratios: Floats) -> tuple[float, float]:
    # What was off all one way without the largest scale is fitted to it in the end: the truth lies between the two.
    low, high = np.exp(_quantiles(np.sort(np.log(ratios))))
    return min(float(low), 1.0), max(float(high), 1.0)


def _quantiles(logs: Floats) -> Floats:
    """Two of them, shape (2,), of sorted logarithms."""
    count = len(logs)
    tail = (1 - NOMINAL) / 2
    if count >= _FEW:
        below = max(0, int(np.floor(tail * (count + 1))) - 1)
        return logs[[below, count - 1 - below]]
    width = float(logs.std(ddof=1)) if count > 1 else float(np.abs(logs[0]))
    reach = _student(1 - tail, max(1, count - 1)) * width * float(np.sqrt(1 + 1 / count))
    return np.asarray(logs.mean() + np.array([-reach, reach]))


def _student(share: float, freedom: int) -> float:
    """Quantile of Student's t by Fisher's expansion, right to a hundredth from five degrees of freedom on."""
    z = NormalDist().inv_cdf(share)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3
