"""What most runs did."""

from __future__ import annotations

from vani.history.behaviour.follower import Predictor, Shares, each_alone

__all__ = ["PREDICTORS"]


class _MostFrequent:
    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._runs = 0

    def see(self, behaviour: int) -> None:
        # Popped and put back: of equally frequent ones, the last seen is the last of the dictionary.
        self._counts[behaviour] = self._counts.pop(behaviour, 0) + 1
        self._runs += 1

    def predict(self) -> Shares:
        return {one: count / (self._runs + 1) for one, count in reversed(self._counts.items())}


PREDICTORS = (Predictor("most frequent", "the next run does what most did", 1, each_alone(_MostFrequent)),)
