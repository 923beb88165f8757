"""A Markov chain that forgets: what followed the last runs lately, with back-off."""

from __future__ import annotations

from typing import Final

from vani.history.behaviour.follower import Predictor, Shares, each_alone

__all__ = ["PREDICTORS"]

_ORDER: Final = 3
_DECAY: Final = 0.8
_GONE: Final = 1e-6


class _RecentMarkov:
    def __init__(self) -> None:
        self._followed: dict[tuple[int, ...], dict[int, float]] = {}
        self._seen: tuple[int, ...] = ()

    def see(self, behaviour: int) -> None:
        for length in range(len(self._seen) + 1):
            context = self._seen[len(self._seen) - length :]
            weights = self._followed.get(context, {})
            kept = {one: weight * _DECAY for one, weight in weights.items() if weight > _GONE}
            kept[behaviour] = kept.pop(behaviour, 0.0) + 1.0
            self._followed[context] = kept
        self._seen = (*self._seen, behaviour)[-_ORDER:]

    def predict(self) -> Shares:
        shares: Shares = {}
        left = 1.0
        for length in range(len(self._seen), -1, -1):
            weights = self._followed.get(self._seen[len(self._seen) - length :])
            if weights is None:
                continue
            whole = sum(weights.values()) + 0.5
            for one, weight in reversed(weights.items()):
                shares[one] = shares.get(one, 0.0) + left * weight / whole
            left *= 0.5 / whole
        return shares


PREDICTORS = (
    Predictor(
        "recent Markov", "the last 3 decide on the next, as lately (decay 0.8)", 9, each_alone(_RecentMarkov)
    ),
)
