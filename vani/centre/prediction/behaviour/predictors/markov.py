"""Markov chains of order 1 to 5, and one that forgets: predict the behaviour that followed the same last runs before.

If the sequence of last runs is new, a shorter one decides.

An order that has seen its context n times, with d different successors, has the weight n / (n + d), and leaves the
remainder to the order below (the escape of Witten and Bell). The lowest order counts how often each behaviour was
seen.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from vani.centre.prediction.behaviour.predictors import Predictor, Shares, each_alone

_ORDERS: Final = range(1, 6)
_RECENT_ORDER: Final = 3
_DECAY: Final = 0.8
_FORGOTTEN: Final = 1e-6
"""Weight below which a successor is dropped, to bound the memory."""


class _Markov:
    def __init__(self, order: int) -> None:
        self._order = order
        self._followed: dict[tuple[int, ...], dict[int, int]] = {}
        self._seen: tuple[int, ...] = ()

    def see(self, behaviour: int) -> None:
        for length in range(len(self._seen) + 1):
            counts = self._followed.setdefault(self._seen[len(self._seen) - length :], {})
            counts[behaviour] = counts.pop(behaviour, 0) + 1
        self._seen = (*self._seen, behaviour)[-self._order :]

    def predict(self) -> Shares:
        shares: Shares = {}
        left = 1.0
        for length in range(len(self._seen), -1, -1):
            counts = self._followed.get(self._seen[len(self._seen) - length :])
            if counts is None:
                continue
            total = sum(counts.values()) + len(counts)
            for behaviour, count in reversed(counts.items()):
                shares[behaviour] = shares.get(behaviour, 0.0) + left * count / total
            left *= len(counts) / total
        return shares


class _RecentMarkov:
    """A chain that forgets: counts recent successors of the last runs, with back-off."""

    def __init__(self) -> None:
        self._followed: dict[tuple[int, ...], dict[int, float]] = {}
        self._seen: tuple[int, ...] = ()

    def see(self, behaviour: int) -> None:
        for length in range(len(self._seen) + 1):
            context = self._seen[len(self._seen) - length :]
            weights = self._followed.get(context, {})
            counts = {known: weight * _DECAY for known, weight in weights.items() if weight > _FORGOTTEN}
            counts[behaviour] = counts.pop(behaviour, 0.0) + 1.0
            self._followed[context] = counts
        self._seen = (*self._seen, behaviour)[-_RECENT_ORDER:]

    def predict(self) -> Shares:
        shares: Shares = {}
        left = 1.0
        for length in range(len(self._seen), -1, -1):
            weights = self._followed.get(self._seen[len(self._seen) - length :])
            if weights is None:
                continue
            total = sum(weights.values()) + 0.5
            for behaviour, weight in reversed(weights.items()):
                shares[behaviour] = shares.get(behaviour, 0.0) + left * weight / total
            left *= 0.5 / total
        return shares


PREDICTORS = (
    *(
        Predictor(
            f"Markov {order}",
            f"the last {order} runs decide, with back-off",
            2 + order,
            each_alone(partial(_Markov, order)),
        )
        for order in _ORDERS
    ),
    Predictor(
        "recent Markov", "the last 3 runs decide, weighted to recent runs (decay 0.8)", 9, each_alone(_RecentMarkov)
    ),
)
