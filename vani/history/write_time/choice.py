"""Which method, and how far its predictions are off: both by holding out the largest scale, since that is the use.

A model is made from small runs to predict large ones. So each method is fitted without the largest scale of the samples
and judged on it; the best one is fitted again to all. The ratios of measured to predicted time on the scale held out
give the interval (split conformal prediction): of new samples that are as far from the training as those, nine of ten
lie within.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from vani.errors import InputError
from vani.history.write_time.methods import methods
from vani.history.write_time.samples import Floats, Samples
from vani.history.write_time.stages import Kinds, kinds_of
from vani.models.write_time.judged import Judged

__all__ = ["NOMINAL", "Fitted", "choose", "fit_with", "judge", "judged_by_all"]

NOMINAL: Final = 0.9
_LEAST: Final = 8
"""Samples in all below which nothing is fitted."""
_FEW: Final = 19
"""Held-out samples below which no quantile of 5 % is known: their extremes are taken, and widened."""
_WIDER: Final = 1.15


@dataclass(frozen=True)
class Fitted:
    """A method fitted to all samples, and by how much the time may differ.

    Parameters
    ----------
    low, high
        Measured over predicted time: nine of ten lie between.
    judged
        All methods on the scale that was held out, the best first.
    """

    method: str
    parameters: dict[str, Any]
    known: Kinds
    low: float
    high: float
    judged: tuple[Judged, ...]

    def predict(self, samples: Samples) -> Floats:
        """Seconds, shape (samples,)."""
        return np.asarray(methods()[self.method].predict(self.parameters, samples, self.known), dtype=float)


def judge(method: str, train: Samples, scale: Floats, test: Samples) -> Judged:
    """Fit to `train`, whose scales are `scale`, and hold it against `test`."""
    known = kinds_of(train)
    module = methods()[method]
    predicted = module.predict(module.fit(train, scale, known), test, known)
    return Judged(method, test.seconds / np.maximum(predicted, 1e-6))


def judged_by_all(
    train: Samples, scale: Floats, test: Samples, names: Iterable[str] | None = None
) -> list[Judged]:
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
    judged = []
    for name in names if names is not None else methods():
        try:
            judged.append(judge(name, train, scale, test))
        except InputError:
            if names is not None:
                raise
    return judged


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
    judged = judged_by_all(small, scale[~largest], large, names)
    judged.sort(key=lambda one: one.error)
    return fit_with(judged[0].method, samples, scale, tuple(judged))


def fit_with(method: str, samples: Samples, scale: Floats, judged: tuple[Judged, ...]) -> Fitted:
    """Fit one method to all samples; the interval is that of its held-out ratios among `judged`."""
    known = kinds_of(samples)
    ratios = next(one.ratios for one in judged if one.method == method)
    low, high = _interval(ratios)
    return Fitted(method, methods()[method].fit(samples, scale, known), known, low, high, judged)


def _interval(ratios: Floats) -> tuple[float, float]:
    # What was off all one way without the largest scale is fitted to it in the end: the truth lies between the two.
    low, high = _quantiles(ratios)
    return min(low, 1.0), max(high, 1.0)


def _quantiles(ratios: Floats) -> tuple[float, float]:
    logs = np.sort(np.log(ratios))
    count = len(logs)
    if count < _FEW:
        return float(np.exp(logs[0]) / _WIDER), float(np.exp(logs[-1]) * _WIDER)
    tail = (1 - NOMINAL) / 2
    below = max(0, int(np.floor(tail * (count + 1))) - 1)
    return float(np.exp(logs[below])), float(np.exp(logs[count - 1 - below]))
