"""The choice of a method, and the error of its predictions, both by steps out in scale, as in use.

A model is made from small runs to predict large ones. So each method is fitted to the scales up to half of the largest
one and judged on those above; then the same is repeated below. The method with the least error over both steps is
fitted again to all samples. Its ratios of measured to predicted time on the upper step give the interval: of new
samples that are as far from the training as those, nine of ten are within. Where they are fewer than nine, lower steps
add theirs.

Three things widen it. Where the ratios were off one way, the method may be right once it has seen the largest scale, or
stay as wrong: the interval reaches from the one to the other. Beyond the largest scale such an offset grows in
proportion to the scale, as a term does that the method lacks. And it reaches to what the rivals say, which are methods
whose error was at most a quarter larger.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from vani.errors import InputError
from vani.history.write_time.methods import methods
from vani.history.write_time.samples import Floats, Samples
from vani.history.write_time.stages import Kinds, kinds_of
from vani.models.interval import nine_of_ten
from vani.models.write_time.cross_validation import MethodScore

__all__ = ["Fitted", "choose", "judge", "score_all"]

_LEAST: Final = 8
"""Samples in all below which nothing is fitted."""
_FEWEST: Final = 9
"""Held-out samples below which nine of ten are not known."""
_STEP: Final = 2.0
"""Factor between the scales that a method is fitted to and those it is judged on."""
_STEPS: Final = 2
_RIVAL: Final = 1.25
"""Error of a rival over that of the best method, at most."""
_MOST_DISAGREEMENT: Final = 3.0
"""Factor from which a rival means nothing: no model that wrong would be written."""

# Sizes and times near the limits of floats overflow; a method that they spoil is judged by its predictions.
_extreme_numbers = np.errstate(all="ignore")


@dataclass(frozen=True)
class Fitted:
    """A method fitted to all samples, and by how much the time may differ.

    Parameters
    ----------
    low, high
        Measured over predicted time at the largest scale of the samples: nine of ten are between.
    scores
        All methods on the scales that were held out, the best first.
    held_out
        Samples that the interval rests on.
    offset
        Median of measured over predicted time of those samples.
    rivals
        Parameters of the methods that were nearly as good, fitted to all samples too, by name.
    """

    method: str
    parameters: dict[str, Any]
    known: Kinds
    low: float
    high: float
    scores: tuple[MethodScore, ...]
    held_out: int = 0
    offset: float = 1.0
    rivals: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    @_extreme_numbers
    def predict(self, samples: Samples) -> Floats:
        """Seconds, shape (samples,)."""
        return self._seconds(self.method, self.parameters, samples)

    @_extreme_numbers
    def interval(self, samples: Samples, beyond: Floats) -> tuple[Floats, Floats]:
        """Seconds that contain nine of ten such writes, shape (samples,) each.

        Parameters
        ----------
        beyond
            Scale of each sample over the largest one of the samples that were fitted, shape (samples,).
        """
        seconds = self.predict(samples)
        drift = self.offset ** (np.maximum(beyond, 1.0) - 1)
        low, high = self.low * np.minimum(drift, 1.0), self.high * np.maximum(drift, 1.0)
        for name, parameters in self.rivals.items():
            differs = self._seconds(name, parameters, samples) / np.maximum(seconds, 1e-6)
            differs = np.clip(np.nan_to_num(differs, nan=1.0), 1 / _MOST_DISAGREEMENT, _MOST_DISAGREEMENT)
            low, high = np.minimum(low, differs), np.maximum(high, differs)
        return seconds * low, seconds * high

    def _seconds(self, name: str, parameters: dict[str, Any], samples: Samples) -> Floats:
        return np.asarray(methods()[name].predict(parameters, samples, self.known), dtype=float)


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
    """Take the method that is best over two steps out in scale, without having seen what it is judged on.

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
            todo="measure at least two, to hold one out",
        )
    steps = list(_steps(scale))
    upper = _scored(samples, scale, steps[0], names)
    ratios = {score.method: [score.ratios] for score in upper}
    for step in steps[1:_STEPS]:
        if step[0].sum() < _LEAST:
            break
        for score in _scored(samples, scale, step, ratios):
            ratios[score.method].append(score.ratios)
    scores = [MethodScore(name, np.concatenate(parts)) for name, parts in ratios.items()]
    scores.sort(key=lambda score: score.error)
    best = scores[0]
    own = ratios[best.method][0]
    for step in steps[1:]:
        if len(own) >= _FEWEST:
            break
        own = np.concatenate([own, *(score.ratios for score in _scored(samples, scale, step, [best.method]))])
    rivals = [score.method for score in scores[1:] if score.error <= _RIVAL * best.error]
    return _fitted(samples, scale, scores, rivals, own)


Step = tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]
"""Samples to fit to, and larger ones to judge on, shape (samples,) each."""


def _steps(scale: Floats) -> Iterator[Step]:
    """Steps out in scale, the largest scales first; at least one, where there are two scales."""
    scales = np.unique(scale)
    end = scales[-1]
    while True:
        below = scales[scales < end]
        half = below[below <= end / _STEP * (1 + 1e-9)]
        limit = half[-1] if len(half) else below[-1]
        if end != scales[-1] and limit == scales[0]:
            return  # Of one scale alone nothing is learnt about larger ones.
        yield scale <= limit, (scale > limit) & (scale <= end)
        end = limit
        if end == scales[0]:
            return


def _scored(samples: Samples, scale: Floats, step: Step, names: Iterable[str] | None) -> list[MethodScore]:
    smaller, larger = step
    return score_all(samples.only(smaller), scale[smaller], samples.only(larger), names)


@_extreme_numbers
def _fitted(
    samples: Samples, scale: Floats, scores: list[MethodScore], rivals: Iterable[str], ratios: Floats
) -> Fitted:
    """Fit the first of `scores` and its rivals to all samples; the interval is that of its held-out `ratios`."""
    known = kinds_of(samples)
    logs = np.log(ratios)
    offset = float(np.median(logs))
    low, high = nine_of_ten(logs)
    best, *others = (methods()[name].fit(samples, scale, known) for name in (scores[0].method, *rivals))
    return Fitted(
        scores[0].method,
        best,
        known,
        # The method that has seen the largest scale is off by all of the offset, by none of it, or in between.
        float(np.exp(min(low, low - offset, 0.0))),
        float(np.exp(max(high, high - offset, 0.0))),
        tuple(scores),
        len(ratios),
        float(np.exp(offset)),
        dict(zip(rivals, others, strict=True)),
    )
