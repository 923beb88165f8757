"""Predicts the behaviour that followed the last occurrence of the longest matching sequence of runs."""

from __future__ import annotations

from typing import Final

from vani.centre.prediction.behaviour.predictors import Predictor, Shares, each_alone

_LASTS: Final = 0.95
"""Factor that discounts a hit with each later query."""


class _LongestMatch:
    def __init__(self) -> None:
        self._sequence: list[int] = []
        self._ends: dict[tuple[int, int], int] = {}
        self._at: int | None = None
        self._length = 0
        self._right = 1.0
        self._asked = 2.0

    def see(self, behaviour: int) -> None:
        sequence = self._sequence
        if self._at is not None:
            hit = sequence[self._at] == behaviour
            self._right, self._asked = _LASTS * self._right + hit, _LASTS * self._asked + 1
            self._at, self._length = (self._at + 1, self._length + 1) if hit else (None, 0)
        sequence.append(behaviour)
        if len(sequence) < 2:
            return
        pair = (sequence[-2], behaviour)
        if self._at is None:
            self._at = self._ends.get(pair)
            self._length = 2
        self._ends[pair] = len(sequence)

    def predict(self) -> Shares:
        if self._at is None:
            return {self._sequence[-1]: 0.5} if self._sequence else {}
        return {self._sequence[self._at]: self._right / self._asked}


PREDICTORS = (
    Predictor(
        "longest match", "what followed the same runs last time", 8, each_alone(_LongestMatch)
    ),
)
