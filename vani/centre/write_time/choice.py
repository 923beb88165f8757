"""Chooses a method and estimates its prediction error, both by extrapolating in scale as users do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from vani.centre.columns import Flags, Floats
from vani.centre.write_time.methods import METHODS, Kinds, Refit, kinds_of, only_loads, stage_loads
from vani.centre.write_time.samples import Samples, nine_of_ten
from vani.centre.write_time.schema import StageCost
from vani.errors import InputError

# Results of prediction methods on held-out writes.

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

    def only(self, chosen: Flags) -> MethodScore:
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


# Chooses a method and estimates its prediction error, both by extrapolating in scale as users do.
#
# A model is made from small runs to predict large ones. So each method is fitted to the scales up to half of the
# largest one and judged on those above; then the same is repeated one step below. The method with the smallest error
# over both steps is fitted again to all samples. Its ratios of measured to predicted time on the upper step give the
# interval, which contains nine out of ten new samples as far from the training data. With fewer than nine ratios,
# lower steps contribute theirs.
#
# Three things widen the interval. If the ratios are biased, the method may become right once it has seen the largest
# scale, or remain as wrong: the interval covers both cases. Beyond the largest scale such a bias grows in proportion
# to the scale, as a term missing from the method would. Finally, the interval includes the predictions of the rivals,
# which are the methods whose error is at most a quarter larger.

_LEAST: Final = 8
"""Total number of samples below which nothing is fitted."""
_FEWEST: Final = 9
"""Number of held-out samples below which nine out of ten cannot be estimated."""
FEW: Final = 48
"""Number of samples below which two extrapolations in scale are too noisy to choose by: one scale is left out at a
time instead, and `bottleneck` is kept unless another method is clearly better."""
_CLEARLY: Final = 0.7
"""Error of a better method relative to that of `bottleneck`. On 32 drawn machines with 24 samples, it was the best on
average (70 % of larger writes within 30 %; by two extrapolations 59 %)."""
_STEP: Final = 2.0
"""Factor between the scales used for fitting and those used for judging."""
_STEPS: Final = 2
_RIVAL: Final = 1.25
"""Maximum error of a rival relative to the best method."""
_MAX_DISAGREEMENT: Final = 3.0
"""Factor from which on a rival is ignored: a model that wrong would not be written."""

# Sizes and times near the limits of floats overflow; a method that suffers from it is judged by its
# predictions.
_extreme_numbers = np.errstate(all="ignore")


@dataclass(frozen=True)
class Fitted:
    """A method fitted to all samples, and its uncertainty.

    Parameters
    ----------
    low, high
        Measured over predicted time at the samples' largest scale; nine out of ten are between.
    scores
        Scores of all methods on the held-out scales, the best first.
    held_out
        Number of samples behind the interval.
    offset
        Median of measured over predicted time of these samples.
    rivals
        Parameters of the methods that were nearly as good, also fitted to all samples, by name.
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
        """Predicted seconds, shape (samples,)."""
        return self._seconds(self.method, self.parameters, samples)

    @_extreme_numbers
    def interval(self, samples: Samples, beyond: Floats) -> tuple[Floats, Floats]:
        """Lower and upper seconds for nine out of ten such writes, shape (samples,) each.

        Parameters
        ----------
        beyond
            Scale of each sample relative to the largest fitted one, shape (samples,).
        """
        seconds = self.predict(samples)
        drift = self.offset ** (np.maximum(beyond, 1.0) - 1)
        low, high = self.low * np.minimum(drift, 1.0), self.high * np.maximum(drift, 1.0)
        for name, parameters in self.rivals.items():
            differs = self._seconds(name, parameters, samples) / np.maximum(seconds, 1e-6)
            differs = np.clip(np.nan_to_num(differs, nan=1.0), 1 / _MAX_DISAGREEMENT, _MAX_DISAGREEMENT)
            low, high = np.minimum(low, differs), np.maximum(high, differs)
        return seconds * low, seconds * high

    def _seconds(self, name: str, parameters: dict[str, Any], samples: Samples) -> Floats:
        return np.asarray(METHODS[name].predict(parameters, samples, self.known), dtype=float)


@_extreme_numbers
def judge(method: str, train: Samples, scale: Floats, test: Samples) -> MethodScore:
    """Fit to `train`, whose scales are `scale`, and test on `test`."""
    known = kinds_of(train)
    fit, predict = METHODS[method].fit, METHODS[method].predict
    predicted = predict(fit(train, scale, known), test, known)
    return MethodScore(method, test.seconds / np.maximum(predicted, 1e-6))


def score_all(train: Samples, scale: Floats, test: Samples, names: Iterable[str] | None = None) -> list[MethodScore]:
    """Judge methods, plain ones first.

    Parameters
    ----------
    names
        Names of methods; None: all with installed libraries.

    Raises
    ------
    InputError
        A named method needs a library that is not installed.
    """
    scores = []
    for name in names if names is not None else METHODS:
        try:
            scores.append(judge(name, train, scale, test))
        except InputError:
            if names is not None:
                raise
    return scores


def choose(samples: Samples, scale: Floats, names: Iterable[str] | None = None) -> Fitted:
    """Choose the method that is best in two extrapolations in scale, judged on samples it has not seen.

    Parameters
    ----------
    scale
        Shape (samples,).
    names
        Methods to choose from; None: all that are installed.

    Raises
    ------
    InputError
        There are fewer than eight samples or a single scale, so that nothing can be held out.
    """
    if len(samples) < _LEAST:
        raise InputError(f"{len(samples)} samples", where="samples", todo=f"measure at least {_LEAST} writes")
    scales = np.unique(scale)
    if len(scales) < 2:
        raise InputError("all samples are of one scale", where="samples", todo="measure at least two, to hold one out")
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
    if len(samples) < FEW and "bottleneck" in ratios:
        chosen = _by_leaving_out(samples, scale, ratios)
        scores.sort(key=lambda score: score.method != chosen)
    best = scores[0]
    own = ratios[best.method][0]
    for step in steps[1:]:
        if len(own) >= _FEWEST:
            break
        own = np.concatenate([own, *(score.ratios for score in _scored(samples, scale, step, [best.method]))])
    rivals = [score.method for score in scores[1:] if score.error <= _RIVAL * best.error]
    return _fitted(samples, scale, scores, rivals, own)


def _by_leaving_out(samples: Samples, scale: Floats, names: Iterable[str]) -> str:
    """The method with the smallest error on each scale in turn, fitted to all others, if it is clearly the best."""
    ratios: dict[str, list[Floats]] = {name: [] for name in names}
    for left_out in np.unique(scale):
        rest = scale != left_out
        if rest.sum() >= _LEAST:
            for score in _scored(samples, scale, (rest, ~rest), names):
                ratios[score.method].append(score.ratios)
    errors = {name: MethodScore(name, np.concatenate(parts)).error for name, parts in ratios.items() if parts}
    best = min(errors, key=errors.__getitem__, default="bottleneck")
    return best if errors and errors[best] < _CLEARLY * errors["bottleneck"] else "bottleneck"


Step = tuple[Flags, Flags]
"""Samples for fitting, and larger ones for judging, shape (samples,) each."""


def _steps(scale: Floats) -> Iterator[Step]:
    """Extrapolations in scale, the largest scales first; at least one if there are two scales."""
    scales = np.unique(scale)
    end = scales[-1]
    while True:
        below = scales[scales < end]
        half = below[below <= end / _STEP * (1 + 1e-9)]
        limit = half[-1] if len(half) else below[-1]
        if end != scales[-1] and limit == scales[0]:
            return  # A single scale reveals nothing about larger ones.
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
    """Fit the first of `scores` and its rivals to all samples; held-out `ratios` of the first give the interval."""
    known = kinds_of(samples)
    logs = np.log(ratios)
    offset = float(np.median(logs))
    low, high = nine_of_ten(logs)
    best, *others = (METHODS[name].fit(samples, scale, known) for name in (scores[0].method, *rivals))
    return Fitted(
        scores[0].method,
        best,
        known,
        # Having seen the largest scale, the method may be off by the whole offset, by none of it, or by a
        # part.
        float(np.exp(min(low, low - offset, 0.0))),
        float(np.exp(max(high, high - offset, 0.0))),
        tuple(scores),
        len(ratios),
        float(np.exp(offset)),
        dict(zip(rivals, others, strict=True)),
    )


# The cost of each stage of a path, with ranges; the reciprocal of a cost is the stage's bandwidth.
#
# The range is from a bootstrap: the samples are drawn again, with replacement, and the costs are fitted again. A
# stage is not identified, because the samples do not determine its speed, if it accounts for little of every sample's
# time, or if its cost varies by more than a factor of ten between draws.

_DRAWINGS: Final = 100
_TAIL: Final = 0.05
_LEAST_SHARE: Final = 0.02
_MAX_WIDTH: Final = 10.0
_SEED: Final = 0
_SAME: Final = 1e-9


@np.errstate(all="ignore")
def stage_costs(fitted: Fitted, samples: Samples, scale: Floats) -> list[StageCost]:
    """The stages of a fitted method, the most important first; empty for a method without stages.

    Parameters
    ----------
    samples, scale
        The samples that it was fitted to, and their scales.
    """
    refit = METHODS[fitted.method].refit
    if refit is None:
        return []
    loads = only_loads(stage_loads(samples, fitted.known))
    costs = refit(fitted.parameters, samples, scale, fitted.known)
    drawn = _drawn(refit, fitted, samples, scale, list(loads))
    together = _in_proportion(np.stack(list(loads.values()), axis=1))
    drawn = drawn @ together
    joint = np.array([costs.get(name, 0.0) for name in loads]) @ together
    stages = []
    for number, (name, load) in enumerate(loads.items()):
        if not together[number, number]:
            continue
        cost = max(float(joint[number]), 0.0)
        share = float(min(1.0, (load * cost / samples.seconds).max()))
        low, high = np.quantile(drawn[:, number], (_TAIL, 1 - _TAIL))
        known = share >= _LEAST_SHARE and low > 0 and high <= low * _MAX_WIDTH
        ends = (cost, float(min(low, cost)), float(max(high, cost))) if known else (None, None, None)
        stages.append(StageCost(stage=name, cost=ends[0], low=ends[1], high=ends[2], share=share))
    return sorted(stages, key=lambda stage: (stage.cost is None, -stage.share))


def _in_proportion(loads: Floats) -> Floats:
    """Cost of another load (column) equal to a unit cost of each load (row), shape (stages, stages).

    Proportional loads, such as bytes and requests of one size, cannot be separated: their costs become a single
    cost, assigned to the first.
    """
    worth = np.zeros((loads.shape[1], loads.shape[1]))
    size = np.maximum(np.abs(loads).max(axis=0), 1e-300)
    scaled = loads / size
    for number in range(len(worth)):
        first = int(np.argmax(np.abs(scaled[:, : number + 1] - scaled[:, [number]]).max(axis=0) < _SAME))
        worth[number, first] = size[number] / size[first]
    return worth


def _drawn(refit: Refit, fitted: Fitted, samples: Samples, scale: Floats, names: list[str]) -> Floats:
    """Costs in each draw, shape (draws, stages)."""
    random = np.random.default_rng(_SEED)
    drawings = np.zeros((_DRAWINGS, len(names)))
    for row in drawings:
        chosen = random.integers(len(samples), size=len(samples))
        costs = refit(fitted.parameters, samples.only(chosen), scale[chosen], fitted.known)
        row[:] = [costs.get(name, 0.0) for name in names]
    return drawings
