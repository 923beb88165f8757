"""Which predictor, and how far to trust it: by what each foresaw of the last runs, which it had not seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Final

import numpy as np

from vani.history.creations.comparison import BLOCKS, Outcome, blocks_of, on_next_run, on_rest
from vani.history.creations.predictors import predictors
from vani.history.creations.series import Creations, Floats, Foreseen, nothing, nth_of_rank

__all__ = ["NOMINAL", "Chosen", "Follower", "choose_next", "remembered"]

NOMINAL: Final = 0.9
"""Of sizes, the share that an interval is to hold."""

_HELD_OUT: Final = 4
_BLOCKS_HELD_OUT: Final = 2
_GOOD_ENOUGH: Final = 0.9
"""Where a plain predictor is right so often, costly ones are not tried."""
_COSTLY_RUNS: Final = 2
_MOST_RUNS: Final = 64
_MOST_CREATIONS: Final = 2_000_000
_LARGE: Final = 20_000
"""From so many creations on, a run is followed in fewer blocks."""
_OWN: Final = 6
"""The last blocks of a run by which predictors are judged while it goes on."""


@dataclass(frozen=True)
class Chosen:
    """What the predictor that was chosen foresees.

    Attributes
    ----------
    probability
        Of each creation to be within 1 %, shape (creations,); NaN where nothing was there to compare with.
    low, high
        What comes over what is foreseen: nine of ten were between; NaN as `probability`.
    judged
        Accuracy of each predictor on what it had not seen, the best first.
    runs
        Runs that were held out.
    """

    method: str
    foreseen: Foreseen
    probability: Floats
    low: float
    high: float
    judged: Mapping[str, float]
    runs: int


def remembered(past: Sequence[Creations]) -> list[Creations]:
    """The latest runs, as many as are looked at."""
    kept: list[Creations] = []
    left = _MOST_CREATIONS
    for run in reversed(past[-_MOST_RUNS:]):
        if kept and len(run) > left:
            break
        kept.insert(0, run)
        left -= len(run)
    return kept


def choose_next(past: Sequence[Creations], names: Iterable[str] | None = None) -> Chosen:
    """Foresee the run after `past` by the predictor that foresaw the last of them best.

    Parameters
    ----------
    past
        At least one run, the oldest first.
    names
        Predictors to choose from; None: all, costly ones where the others do badly.
    """
    held = range(max(1, len(past) - _HELD_OUT), len(past))
    if len(held) > 2 and held[0] == 1:
        held = held[1:]  # After one run no law can be known.
    plain, costly = _split(names)
    outcomes = {
        name: [on_next_run(method, past[:at], past[at]) for at in held] for name, method in plain.items()
    }
    best = max((_mean(one) for one in outcomes.values()), default=0.0)
    if held and (best < _GOOD_ENOUGH or not plain):
        some = held if not plain else held[-_COSTLY_RUNS:]
        for name, method in costly.items():
            outcomes[name] = [on_next_run(method, past[:at], past[at]) for at in some]
    every = plain | (costly if not plain else {})
    if not held:
        name = "same_position" if "same_position" in every else next(iter(every))
        foreseen = every[name].predict(past, nothing(), None)
        unknown = np.full(len(foreseen), np.nan)
        return Chosen(name, foreseen, unknown, np.nan, np.nan, {}, 0)
    judged = _ranked(outcomes)
    name = _best(outcomes)
    foreseen = (plain | costly)[name].predict(past, nothing(), None)
    mine = outcomes[name]
    runs = [past[at] for at in held[-len(mine) :]]
    probability = _by_key(mine, runs, foreseen)
    return Chosen(name, foreseen, probability, *_interval(mine), judged, len(mine))


class Follower:
    """Foresees the rest of a run while it goes on; the predictor may change with each block.

    Parameters
    ----------
    past
        Runs before; may be empty.
    names
        As in `choose_next`; costly ones are tried where they are named.
    """

    def __init__(self, past: Sequence[Creations], names: Iterable[str] | None = None) -> None:
        self.past = list(past)
        plain, costly = _split(names)
        self._methods = plain if names is None else plain | costly
        self._before: dict[str, list[Outcome]] = {name: [] for name in self._methods}
        self._own: dict[str, list[Outcome]] = {name: [] for name in self._methods}
        self._ranks: list[Creations] = []
        self._judged_to = 0
        for at in range(max(0, len(past) - _BLOCKS_HELD_OUT), len(past)):
            blocks = blocks_of(len(past[at]), _blocks(len(past[at])))
            for name, method in self._methods.items():
                self._before[name] += on_rest(method, past[:at], past[at], blocks)

    def see(self, so_far: Creations) -> None:
        """Judge the predictors by what was created since they were judged last; `so_far` is all so far."""
        if self._judged_to and len(so_far) > self._judged_to:
            block = [(self._judged_to, len(so_far))]
            for name, method in self._methods.items():
                self._own[name] = [*self._own[name], *on_rest(method, self.past, so_far, block)][-_OWN:]
            self._ranks = [*self._ranks, so_far.part(self._judged_to, len(so_far))][-_OWN:]
        self._judged_to = len(so_far)

    def see_all(self, so_far: Creations, parts: int = 4) -> None:
        """Judge the predictors part by part by what was created so far."""
        step = max(1, len(so_far) // parts)
        for end in (*range(step, len(so_far), step), len(so_far)):
            self.see(so_far.first(end))

    def rest(self, so_far: Creations, count: int | None = None) -> Chosen:
        """Foresee what is created after `so_far`, of which `see` was told; `count` None: until the end."""
        scores = {name: self._score(name) for name in self._methods}
        judged = dict(sorted(scores.items(), key=lambda one: -one[1]))
        known = any(self._before.values()) or any(self._own.values())
        name = max(scores, key=lambda one: round(scores[one], 6)) if known else next(iter(self._unjudged()))
        foreseen = self._methods[name].predict(self.past, so_far, count)
        if not known:
            unknown = np.full(len(foreseen), np.nan)
            return Chosen(name, foreseen, unknown, np.nan, np.nan, {}, 0)
        every = [*self._before[name], *self._own[name]]
        low, high = _interval(self._own[name] if len(self._own[name]) >= 3 else every)
        sure = self._score(name, sceptical=True)
        return Chosen(name, foreseen, self._by_rank(name, foreseen, sure), low, high, judged, len(every))

    def _unjudged(self) -> list[str]:
        return [name for name in ("last_period", *self._methods) if name in self._methods]

    def _score(self, name: str, *, sceptical: bool = False) -> float:
        """How often right: in this run, and, as far as that has only begun, in those before."""
        before, own = self._before[name], self._own[name]
        if sceptical:
            prior = (sum(one.accuracy for one in before) + 0.5) / (len(before) + 1)
        else:
            prior = _mean(before) if before else 0.5
        return (sum(one.accuracy for one in own) + 2 * prior) / (len(own) + 2)

    def _by_rank(self, name: str, foreseen: Foreseen, sure: float) -> Floats:
        who = np.unique(foreseen.ranks)
        hits, seen = np.zeros(len(who)), np.zeros(len(who))
        for outcome, came in zip(self._own[name], self._ranks, strict=True):
            at = np.minimum(np.searchsorted(who, came.ranks), len(who) - 1) if len(who) else came.ranks[:0]
            mine = who[at] == came.ranks if len(who) else np.zeros(len(came), dtype=bool)
            if len(mine) == len(at):
                np.add.at(seen, at[mine], 1)
                np.add.at(hits, at[mine], outcome.right[mine])
        found = (hits + 2 * sure) / (seen + 2)
        sizes = np.asarray(found[np.searchsorted(who, foreseen.ranks)])
        return np.where(np.isfinite(foreseen.sizes), sizes, 0.0)


def _split(names: Iterable[str] | None) -> tuple[dict[str, ModuleType], dict[str, ModuleType]]:
    known = predictors()
    wanted = {name: known[name] for name in (known if names is None else names)}
    plain = {name: method for name, method in wanted.items() if not method.COSTLY}
    return plain, {name: method for name, method in wanted.items() if method.COSTLY}


def _mean(outcomes: Sequence[Outcome]) -> float:
    return sum(one.accuracy for one in outcomes) / len(outcomes) if outcomes else 0.0


def _ranked(outcomes: Mapping[str, Sequence[Outcome]]) -> dict[str, float]:
    means = {name: _mean(found) for name, found in outcomes.items()}
    return dict(sorted(means.items(), key=lambda one: -one[1]))


def _best(outcomes: Mapping[str, Sequence[Outcome]]) -> str:
    """Judged on the runs that all were judged on; of equally good ones the plain one."""
    common = min(len(found) for found in outcomes.values())
    plain = [name for name, found in outcomes.items() if len(found) > common] or list(outcomes)
    best = max(plain, key=lambda name: round(_mean(outcomes[name]), 6))
    for name, found in outcomes.items():
        if len(found) == common and name not in plain and _mean(found) > _mean(outcomes[best][-common:]):
            best = name
    return best


def _by_key(outcomes: Sequence[Outcome], came: Sequence[Creations], foreseen: Foreseen) -> Floats:
    """How often the same creation of the same rank was right, and, as far as it was seldom held out, all were."""
    nth = nth_of_rank(foreseen.ranks)
    hits, seen = np.zeros(len(foreseen)), np.zeros(len(foreseen))
    for outcome, run in zip(outcomes, came, strict=True):
        at = run.find(foreseen.ranks, nth)
        there = at >= 0
        seen[there] += 1
        hits[there] += outcome.right[at[there]]
    sure = (sum(one.accuracy for one in outcomes) + 0.5) / (len(outcomes) + 1)
    found = (hits + 2 * sure) / (seen + 2)
    return np.where(np.isfinite(foreseen.sizes), found, 0.0)


def _interval(outcomes: Sequence[Outcome]) -> tuple[float, float]:
    ratios = np.concatenate([one.ratios for one in outcomes])
    ratios = np.sort(ratios[np.isfinite(ratios)])
    if not len(ratios):
        return np.nan, np.nan
    tail = (1 - NOMINAL) / 2
    below = max(0, int(np.floor(tail * (len(ratios) + 1))) - 1)
    return min(1.0, float(ratios[below])), max(1.0, float(ratios[len(ratios) - 1 - below]))


def _blocks(number: int) -> int:
    return BLOCKS if number < _LARGE else 4
