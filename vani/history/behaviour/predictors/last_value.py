"""What the last run did, as DFRA takes it."""

from __future__ import annotations

from vani.history.behaviour.follower import Predictor, Shares, each_alone

__all__ = ["PREDICTORS"]


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


PREDICTORS = (
    Predictor("last value", "the next run does what the last one did (DFRA)", 0, each_alone(_LastValue)),
)
