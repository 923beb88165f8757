"""What most of the recent runs did: each run counts a fifth less than the one after it."""

from __future__ import annotations

from typing import Final

from vani.history.behaviour.follower import Predictor, Shares, each_alone

__all__ = ["PREDICTORS"]

_DECAY: Final = 0.8
_GONE: Final = 1e-9


class _Recent:
    def __init__(self) -> None:
        self._weights: dict[int, float] = {}

    def see(self, behaviour: int) -> None:
        # Kept within reach: a behaviour of a hundred runs ago weighs nothing.
        kept = {one: weight * _DECAY for one, weight in self._weights.items() if weight > _GONE}
        kept[behaviour] = kept.pop(behaviour, 0.0) + 1.0
        self._weights = kept

    def predict(self) -> Shares:
        whole = sum(self._weights.values()) + 1.0
        return {one: weight / whole for one, weight in reversed(self._weights.items())}


PREDICTORS = (
    Predictor("recent", "the next run does what most did lately (decay 0.8)", 2, each_alone(_Recent)),
)
