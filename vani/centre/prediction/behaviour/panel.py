"""All predictors side by side on the runs of many categories, and `auto`, which weights them by their past success.

`auto` sums the weighted probabilities of all predictors. A predictor's weight depends on how often it was right in
this category, with older runs counting less. A new category borrows from the predictor's success in other
categories when they were as new. The plainest predictor has a head start that others must beat to gain weight. So
the choice depends on earlier runs alone. The sum is then corrected by how often such sums were right so far.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from vani.centre.columns import Floats
from vani.centre.prediction.behaviour.predictors import Begin, Shares
from vani.centre.prediction.behaviour.runs import Runs

AUTO: Final = "auto"

_LASTS: Final = 0.98
"""Factor that discounts a run's hit with each later run of its category."""
_COMMONLY_LASTS: Final = 0.999
_BORROWED: Final = 30.0
"""Number of runs that the experience from all categories counts for."""
_SHARPNESS: Final = 40.0
"""Being right one more time in a hundred multiplies the weight by 1.5."""
_HEAD_START: Final = 0.03
"""Share of runs by which others must be right more often than the plainest predictor, which is the first."""
_IGNORED: Final = 1e-6
_BINS: Final = 10
"""Bins of probability in which predictions are compared with outcomes."""
_TRUSTED: Final = 100.0
"""Number of runs for which an uncorrected probability counts."""
_AGES: Final = 12
"""Age classes of categories: 1 run, 2 and 3, 4 to 7 and so on; experience is borrowed within a class."""



def most_likely(shares: Shares) -> tuple[int, float]:
    """The most likely id with its probability; the first one in ties. -1 if nothing is known."""
    best = max(shares, key=shares.__getitem__, default=-1)
    return best, shares.get(best, 0.0)


class _Record:
    """Number of hits of each predictor, with older ones discounted."""

    def __init__(self, number: int, lasts: float, *, runs: float) -> None:
        self.hits: Floats = np.full(number, runs / 2)
        self.runs = runs
        self._lasts = lasts

    def add(self, hits: Floats) -> None:
        self.hits = self._lasts * self.hits + hits
        self.runs = self._lasts * self.runs + 1


def _age(runs: int) -> int:
    return min(max(runs, 1).bit_length(), _AGES) - 1


def _bin(share: float) -> int:
    return min(int(share * _BINS), _BINS - 1)


@dataclass(frozen=True)
class Guesses:
    """A run's most likely behaviour according to each predictor, and according to all with its probability."""

    guesses: list[int]
    together: int
    share: float


class _Category:
    def __init__(self, begin: Iterable[Begin]) -> None:
        self.followers = [begin_follower() for begin_follower in begin]
        self.record = _Record(len(self.followers), _LASTS, runs=0.0)
        self.ahead: list[Shares] | None = None
        self.runs = 0
        self.seen: set[int] = set()


class Panel:
    """Follows all categories with all predictors.

    Parameters
    ----------
    begin
        Factory of a category's follower, by name.
    unweighed
        Names of predictors that `auto` ignores.
    """

    def __init__(self, begin: Mapping[str, Begin], unweighed: frozenset[str] = frozenset()) -> None:
        self.names = (*begin, AUTO)
        self._begin = list(begin.values())
        self._weighed = np.array([name not in unweighed for name in begin], np.float64)
        self._asked, self._missing = [0.0] * _BINS, [0.0] * _BINS
        self._categories: dict[int, _Category] = {}
        self._common = [_Record(len(self._begin), _COMMONLY_LASTS, runs=1.0) for _ in range(_AGES)]

    def predict(self, category: int) -> list[Shares]:
        """Probabilities from each predictor, with `auto` last; all empty for a new category."""
        known = self._categories.get(category)
        if known is None:
            return [{} for _ in self.names]
        ahead = self._ahead(known)
        return [*ahead, self._corrected(self._together(known, ahead))]

    def has_seen(self, category: int, behaviour: int) -> bool:
        """Whether a run of the category had this behaviour."""
        known = self._categories.get(category)
        return known is not None and behaviour in known.seen

    def guesses(self, category: int) -> Guesses | None:
        """The most likely behaviour according to each predictor; None for a new category."""
        known = self._categories.get(category)
        if known is None:
            return None
        ahead = self._ahead(known)
        return Guesses([most_likely(shares)[0] for shares in ahead], *most_likely(self._together(known, ahead)))

    def see(self, category: int, behaviour: int, guesses: Guesses | None = None) -> None:
        """Learn from a run that has ended.

        Parameters
        ----------
        guesses
            What predictors expected when it started, to score them; None if nothing was known then.
        """
        known = self._categories.get(category)
        if known is None:
            known = self._categories[category] = _Category(self._begin)
        if guesses is not None:
            hits = np.array([guess == behaviour for guess in guesses.guesses], np.float64)
            known.record.add(hits)
            self._common[_age(known.runs)].add(hits)
            bin = _bin(guesses.share)
            self._asked[bin] += 1
            self._missing[bin] += (guesses.together == behaviour) - guesses.share
        known.runs += 1
        known.seen.add(behaviour)
        for follower in known.followers:
            follower.see(behaviour)
        known.ahead = None

    def weights(self, category: int) -> dict[str, float]:
        """The weight of each predictor in `auto`; weights sum to 1."""
        known = self._categories.get(category)
        weights = self._weights(known if known is not None else _Category(self._begin))
        return dict(zip(self.names, weights.tolist(), strict=False))

    def _ahead(self, category: _Category) -> list[Shares]:
        if category.ahead is None:
            category.ahead = [follower.predict() for follower in category.followers]
        return category.ahead

    def _corrected(self, shares: Shares) -> Shares:
        """The probabilities with the most likely one replaced by how often such predictions were right so far."""
        best, share = most_likely(shares)
        if best < 0 or share >= 1:
            return shares
        bin = _bin(share)
        right = min(max(share + self._missing[bin] / (self._asked[bin] + _TRUSTED), 0.0), 1.0)
        others = (1 - right) / (1 - share)
        return {behaviour: others * other for behaviour, other in shares.items()} | {best: right}

    def _weights(self, category: _Category) -> Floats:
        record, common = category.record, self._common[_age(category.runs)]
        right = (record.hits + _BORROWED * common.hits / common.runs) / (record.runs + _BORROWED)
        right[0] += _HEAD_START
        weights: Floats = self._weighed * np.exp(_SHARPNESS * (right - right.max()))
        return weights / float(weights.sum())

    def _together(self, category: _Category, ahead: list[Shares]) -> Shares:
        total: Shares = {}
        for weight, shares in zip(self._weights(category).tolist(), ahead, strict=True):
            if weight > _IGNORED:
                for behaviour, share in shares.items():
                    total[behaviour] = total.get(behaviour, 0.0) + weight * share
        return total


def replay(runs: Runs, panel: Panel, places: Iterable[int], *, ended_only: bool) -> Iterator[int]:
    """Yield each run of `places` when the panel has seen exactly what was known at its start.

    After the last one, the panel has seen all runs.

    Parameters
    ----------
    ended_only
        The panel has seen only runs that had ended by then, in the order in which they ended; otherwise all that
        started before.
    """
    running: list[tuple[float, int, Guesses | None]] = []

    def see_first() -> None:
        _, place, guesses = heapq.heappop(running)
        panel.see(int(runs.category[place]), int(runs.ids[place]), guesses)

    for place in places:
        while running and running[0][0] <= runs.submitted[place]:
            see_first()
        yield place
        until = float(runs.ended[place]) if ended_only else -float("inf")
        heapq.heappush(running, (until, place, panel.guesses(int(runs.category[place]))))
    while running:
        see_first()
