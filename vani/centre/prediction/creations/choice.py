"""Chooses a predictor, and estimates the trust in it, from its forecasts of past runs it had not seen.

The last runs determine the choice. A walk forward over many more runs counts how often the chosen predictor was
right, which is the trust in it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from vani.centre.columns import Flags, Floats, Ints
from vani.centre.prediction.creations import series
from vani.centre.prediction.creations.predictors import PREDICTORS, Predictor

BLOCKS: Final = 10
"""Number of blocks in which a running run is followed; the first one is predicted from past runs alone."""


@dataclass(frozen=True)
class ForecastOutcome:
    """A forecast compared with the actual creations.

    Attributes
    ----------
    right
        Whether the size of each actual creation was predicted within 1 %, shape (came,).
    ratios
        Actual over predicted size, NaN without a prediction; shape (came,).
    accuracy
        Share of right sizes among the actual creations, or among the predicted ones if there are more.
    at
        Index of each creation's prediction, or -1; shape (came,).
    """

    right: Flags
    ratios: Floats
    accuracy: float
    at: Ints


def on_next_run(method: Predictor, past: Sequence[series.Creations], came: series.Creations) -> ForecastOutcome:
    """Predict the run after `past`, and compare it with the actual one."""
    return compare(method.predict(past, series.nothing(), None), came)


def blocks_of(number: int, blocks: int = BLOCKS) -> list[tuple[int, int]]:
    """Begin and end of each block of a run except the first."""
    edges = np.unique(np.linspace(0, number, blocks + 1).astype(int))
    return [(int(begin), int(end)) for begin, end in pairwise(edges[1:])]


def on_rest(
    method: Predictor, past: Sequence[series.Creations], came: series.Creations, blocks: Sequence[tuple[int, int]]
) -> Iterator[ForecastOutcome]:
    """Predict each block of a run from all creations before it."""
    for begin, end in blocks:
        so_far = came.first(begin)
        # Ranks may create in another order, so two more files of each rank are predicted.
        count = end - begin + 2 * len(np.unique(so_far.ranks))
        outcome = compare(method.predict(past, so_far, count), came.part(begin, end))
        yield replace(outcome, accuracy=float(outcome.right.mean()))


def compare(foreseen: series.Foreseen, came: series.Creations) -> ForecastOutcome:
    """Compare a forecast with the actual creations."""
    guess = foreseen.find(came)
    # Creations of unpredicted ranks are matched in order.
    strange = np.flatnonzero(guess < 0)
    free = np.ones(len(foreseen), dtype=np.bool_)
    free[guess[guess >= 0]] = False
    left = np.flatnonzero(free)[: len(strange)]
    guess[strange[: len(left)]] = left
    sizes = foreseen.sizes_at(guess)
    right = series.is_right(sizes, came.values)
    with np.errstate(all="ignore"):
        ratios = np.where((sizes == 0) & (came.values == 0), 1.0, came.values / sizes)
    ratios[~np.isfinite(ratios)] = np.nan
    return ForecastOutcome(right, ratios, float(right.sum() / max(1, len(came), len(foreseen))), guess)


NOMINAL: Final = 0.9
"""The share of sizes that an interval should cover."""

_HELD_OUT: Final = 4
_BLOCKS_HELD_OUT: Final = 2
_GOOD_ENOUGH: Final = 0.9
"""Accuracy of a plain predictor above which costly ones are not tried."""
_COSTLY_RUNS: Final = 2
WALKED: Final = 32
"""Number of latest past runs whose forecasts show how often a law breaks."""
_KNOWN_FIRST: Final = 3
"""Number of runs before the first of these: fewer would not show a law that changes from run to run."""
_MAX_WALKED: Final = 200_000
"""Number of creations in these runs beyond which no further run is examined."""
_RUNS_IN_PARTS: Final = 8
"""Number of earlier runs that a running run's predictor forecasts part by part."""
_RIGHT, _WRONG = 0.5, 1.0
"""Prior counts of right and wrong forecasts, with which nine forecasts must be right for a trust of 0.9.

Chosen on half of the categories of Summit's runs of 2021, as the least strict of the pairs tried for which sizes
with a trust of 0.9 were right in 95 % (at most ten forecasts per category). On the other half, 97 % were right.
"""
_MAX_RUNS: Final = 64
_MAX_CREATIONS: Final = 2_000_000
_LARGE: Final = 20_000
"""Number of creations above which a run is followed in fewer blocks."""
_OWN: Final = 6
"""Number of latest blocks of a running run by which predictors are judged."""


@dataclass(frozen=True)
class Chosen:
    """The forecast of the chosen predictor.

    Attributes
    ----------
    probability
        Probability that each size is within 1 %, shape (creations,); NaN if there was nothing to compare with.
    low, high
        Bounds of the ratio of actual to predicted size for nine out of ten creations; NaN as in `probability`.
    accuracy
        Accuracy of each predictor on runs it had not seen, the best first.
    runs
        Number of held-out runs.
    """

    method: str
    foreseen: series.Foreseen
    probability: Floats
    low: float
    high: float
    accuracy: Mapping[str, float]
    runs: int


def _untried(method: str, foreseen: series.Foreseen) -> Chosen:
    """A forecast that nothing could be compared with."""
    return Chosen(method, foreseen, np.full(len(foreseen), np.nan), np.nan, np.nan, {}, 0)


def remembered(past: Sequence[series.Creations]) -> list[series.Creations]:
    """The latest runs, as many as predictors use."""
    latest: list[series.Creations] = []
    left = _MAX_CREATIONS
    for run in reversed(past[-_MAX_RUNS:]):
        if latest and len(run) > left:
            break
        latest.insert(0, run)
        left -= len(run)
    return latest


def choose_next(past: Sequence[series.Creations], names: Iterable[str] | None = None) -> Chosen:
    """Predict the run after `past` with the predictor that predicted the last of them best.

    Parameters
    ----------
    past
        At least one run, the oldest first.
    names
        Predictors to choose from; None: all, the costly ones only if the others do badly.
    """
    held_out = range(max(1, len(past) - _HELD_OUT), len(past))
    if len(held_out) > 2 and held_out[0] == 1:
        held_out = held_out[1:]  # A single run shows no law.
    plain, costly = _split(names)
    outcomes = {name: [on_next_run(method, past[:at], past[at]) for at in held_out] for name, method in plain.items()}
    best = max((_mean(own) for own in outcomes.values()), default=0.0)
    if held_out and (best < _GOOD_ENOUGH or not plain):
        tried = held_out if not plain else held_out[-_COSTLY_RUNS:]
        for name, method in costly.items():
            outcomes[name] = [on_next_run(method, past[:at], past[at]) for at in tried]
    candidates = plain or costly
    if not held_out:
        name = "same_position" if "same_position" in candidates else next(iter(candidates))
        return _untried(name, candidates[name].predict(past, series.nothing(), None))
    name = _best(outcomes)
    foreseen = (plain | costly)[name].predict(past, series.nothing(), None)
    own = outcomes[name]
    first = len(past) - len(own)
    walked = _walked(plain[name], past, range(first)) if name in plain else []
    probability = _by_key([*walked, *own], past[first - len(walked) :], foreseen)
    return Chosen(name, foreseen, probability, *_interval([*walked, *own]), _ranked(outcomes), len(own))


class Follower:
    """Predicts the rest of a running run; the predictor may change with each block.

    Parameters
    ----------
    past
        Earlier runs; may be empty.
    names
        As in `choose_next`; costly predictors are tried only if named.
    """

    def __init__(self, past: Sequence[series.Creations], names: Iterable[str] | None = None) -> None:
        self.past = list(past)
        plain, costly = _split(names)
        self._methods = plain if names is None else plain | costly
        held_out = range(max(0, len(past) - _BLOCKS_HELD_OUT), len(past))
        self._before = {name: [part for at in held_out for part in self._parts_of(name, at)] for name in self._methods}
        self._own: dict[str, list[ForecastOutcome]] = {name: [] for name in self._methods}
        self._ranks: list[series.Creations] = []
        self._judged_to = 0
        self._earlier: dict[str, list[ForecastOutcome]] = {}

    def _parts_of(self, name: str, at: int) -> Iterator[ForecastOutcome]:
        """Each part of a past run, predicted from all earlier runs."""
        run = self.past[at]
        return on_rest(self._methods[name], self.past[:at], run, blocks_of(len(run), _blocks(len(run))))

    def _parts_of_earlier_runs(self, name: str) -> list[ForecastOutcome]:
        """The same for runs before those that decide; only for the chosen predictor, since it takes time."""
        if name not in self._earlier:
            self._earlier[name] = []
            left = 0 if self._methods[name].costly else _MAX_WALKED
            last = max(0, len(self.past) - _BLOCKS_HELD_OUT)
            for at in reversed(range(max(_KNOWN_FIRST, last - _RUNS_IN_PARTS), last)):
                left -= len(self.past[at])
                if left < 0:
                    break
                self._earlier[name] += self._parts_of(name, at)
        return self._earlier[name]

    def see(self, so_far: series.Creations) -> None:
        """Judge the predictors by the creations since the last call; `so_far` contains all creations of the run."""
        if self._judged_to and len(so_far) > self._judged_to:
            block = [(self._judged_to, len(so_far))]
            for name, method in self._methods.items():
                self._own[name] = [*self._own[name], *on_rest(method, self.past, so_far, block)][-_OWN:]
            self._ranks = [*self._ranks, so_far.part(self._judged_to, len(so_far))][-_OWN:]
        self._judged_to = len(so_far)

    def see_all(self, so_far: series.Creations, parts: int = 4) -> None:
        """Judge the predictors by the creations so far, part by part."""
        step = max(1, len(so_far) // parts)
        for end in (*range(step, len(so_far), step), len(so_far)):
            self.see(so_far.first(end))

    def rest(self, so_far: series.Creations, count: int | None = None) -> Chosen:
        """Predict the creations after `so_far`, which `see` has seen; `count` None: until the end of the run."""
        scores = {name: self._score(name) for name in self._methods}
        accuracy = dict(sorted(scores.items(), key=lambda item: -item[1]))
        known = any(self._before.values()) or any(self._own.values())
        unjudged = "last_period" if "last_period" in self._methods else next(iter(self._methods))
        name = max(scores, key=lambda name: round(scores[name], 6)) if known else unjudged
        foreseen = self._methods[name].predict(self.past, so_far, count)
        if not known:
            return _untried(name, foreseen)
        outcomes = [*self._before[name], *self._own[name]]
        low, high = _interval(self._own[name] if len(self._own[name]) >= 3 else outcomes)
        probability = self._by_rank(name, foreseen, self._score(name, sceptical=True))
        return Chosen(name, foreseen, probability, low, high, accuracy, len(outcomes))

    def _score(self, name: str, *, sceptical: bool = False) -> float:
        """Accuracy in this run and, while it has only begun, in earlier runs."""
        before, own = self._before[name], self._own[name]
        prior = _mean(before) if before else 0.5
        if sceptical:
            prior = (sum(outcome.accuracy for outcome in before) + 0.5) / (len(before) + 1)
        return (sum(outcome.accuracy for outcome in own) + 2 * prior) / (len(own) + 2)

    def _by_rank(self, name: str, foreseen: series.Foreseen, prior: float) -> Floats:
        known = np.unique(foreseen.ranks)
        hits, seen = np.zeros(len(known)), np.zeros(len(known))
        for outcome, came in zip(self._own[name], self._ranks, strict=True):
            at = np.minimum(np.searchsorted(known, came.ranks), max(0, len(known) - 1))
            expected = np.isin(came.ranks, known)
            np.add.at(seen, at[expected], 1)
            np.add.at(hits, at[expected], outcome.right[expected])
        by_rank = (hits + 2 * prior) / (seen + 2)
        # A law that broke in some part of these runs may break in the next part, even for a rank for which it
        # was right.
        parts = [*self._parts_of_earlier_runs(name), *self._before[name], *self._own[name]]
        most = trust_in(sum(outcome.accuracy for outcome in parts), len(parts))
        probability = np.minimum(by_rank[np.searchsorted(known, foreseen.ranks)], most)
        return np.where(np.isfinite(foreseen.sizes), probability, 0.0)


def _split(names: Iterable[str] | None) -> tuple[dict[str, Predictor], dict[str, Predictor]]:
    candidates = {name: PREDICTORS[name] for name in (PREDICTORS if names is None else names)}
    plain = {name: method for name, method in candidates.items() if not method.costly}
    return plain, {name: method for name, method in candidates.items() if method.costly}


def _mean(outcomes: Sequence[ForecastOutcome]) -> float:
    return sum(outcome.accuracy for outcome in outcomes) / len(outcomes) if outcomes else 0.0


def _ranked(outcomes: Mapping[str, Sequence[ForecastOutcome]]) -> dict[str, float]:
    means = {name: _mean(own) for name, own in outcomes.items()}
    return dict(sorted(means.items(), key=lambda item: -item[1]))


def _best(outcomes: Mapping[str, Sequence[ForecastOutcome]]) -> str:
    """The best predictor on the runs on which all were judged; in ties, the plainest."""
    common = min(len(own) for own in outcomes.values())
    plain = [name for name, own in outcomes.items() if len(own) > common] or list(outcomes)
    best = max(plain, key=lambda name: round(_mean(outcomes[name]), 6))
    for name, own in outcomes.items():
        if len(own) == common and name not in plain and _mean(own) > _mean(outcomes[best][-common:]):
            best = name
    return best


def _walked(method: Predictor, past: Sequence[series.Creations], earlier: range) -> list[ForecastOutcome]:
    """Forecasts of the `earlier` past runs, each from the runs before it, the oldest first."""
    outcomes: list[ForecastOutcome] = []
    left = _MAX_WALKED
    for at in reversed(earlier[_KNOWN_FIRST:][-WALKED + _HELD_OUT :]):
        left -= len(past[at])
        if left < 0:
            break
        outcomes.insert(0, on_next_run(method, past[:at], past[at]))
    return outcomes


def trust_in(right: Floats | float, forecasts: float) -> Floats:
    """Probability that the next forecast is right, given the number of forecasts and how many were right."""
    return np.asarray((right + _RIGHT) / (forecasts + _RIGHT + _WRONG))


def _by_key(
    outcomes: Sequence[ForecastOutcome], came: Sequence[series.Creations], foreseen: series.Foreseen
) -> Floats:
    """Trust for the same creation of the same rank; a run without it counts with the average over all creations."""
    nth = series.nth_of_rank(foreseen.ranks)
    hits, seen = np.zeros(len(foreseen)), np.zeros(len(foreseen))
    for outcome, run in zip(outcomes, came, strict=True):
        at = run.find(foreseen.ranks, nth)
        created = at >= 0
        seen[created] += 1
        hits[created] += outcome.right[at[created]]
    hits += (len(outcomes) - seen) * _mean(outcomes)
    return np.where(np.isfinite(foreseen.sizes), trust_in(hits, len(outcomes)), 0.0)


def _interval(outcomes: Sequence[ForecastOutcome]) -> tuple[float, float]:
    ratios = np.concatenate([outcome.ratios for outcome in outcomes])
    ratios = np.sort(ratios[np.isfinite(ratios)])
    if not len(ratios):
        return np.nan, np.nan
    tail = (1 - NOMINAL) / 2
    below = max(0, int(np.floor(tail * (len(ratios) + 1))) - 1)
    return min(1.0, float(ratios[below])), max(1.0, float(ratios[len(ratios) - 1 - below]))


def _blocks(number: int) -> int:
    return BLOCKS if number < _LARGE else 4
