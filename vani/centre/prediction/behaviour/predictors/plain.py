"""Predictors that count: the last behaviour, the most frequent one, and the recently most frequent one."""

from __future__ import annotations

from typing import Final

from vani.centre.prediction.behaviour.predictors import Predictor, Shares, each_alone

_DECAY: Final = 0.8
_FORGOTTEN: Final = 1e-9
"""Weight below which a behaviour is dropped, to bound the memory."""


class _LastValue:
    def __init__(self) -> None:
        self._last: int | None = None
        self._repeated = 1.0
        self._steps = 2.0

    def see(self, behaviour: int) -> None:
        if self._last is not None:
            self._repeated += behaviour == self._last
            self._steps += 1
        self._last = behaviour

    def predict(self) -> Shares:
        return {} if self._last is None else {self._last: self._repeated / self._steps}


class _MostFrequent:
    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._runs = 0

    def see(self, behaviour: int) -> None:
        # Remove and insert it again, so that the latest of equally frequent behaviours is last in the
        # dictionary.
        self._counts[behaviour] = self._counts.pop(behaviour, 0) + 1
        self._runs += 1

    def predict(self) -> Shares:
        return {behaviour: count / (self._runs + 1) for behaviour, count in reversed(self._counts.items())}


class _Recent:
    def __init__(self) -> None:
        self._weights: dict[int, float] = {}

    def see(self, behaviour: int) -> None:
        weights = {known: weight * _DECAY for known, weight in self._weights.items() if weight > _FORGOTTEN}
        weights[behaviour] = weights.pop(behaviour, 0.0) + 1.0
        self._weights = weights

    def predict(self) -> Shares:
        total = sum(self._weights.values()) + 1.0
        return {behaviour: weight / total for behaviour, weight in reversed(self._weights.items())}


PREDICTORS = (
    Predictor("last value", "the same as the last run (DFRA)", 0, each_alone(_LastValue)),
    Predictor("most frequent", "the most common behaviour", 1, each_alone(_MostFrequent)),
    Predictor("recent", "the most common recent behaviour (decay 0.8)", 2, each_alone(_Recent)),
)
