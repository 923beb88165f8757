"""Markov chains of order 1 to 5: what followed the last runs before; where these are new, what followed fewer of them.

An order that has seen its context n times, with d different successors, takes part with n / (n + d), and leaves the
rest to the order below (the escape of Witten and Bell). The lowest order counts how often each behaviour was seen.
"""

from __future__ import annotations

from functools import partial

from vani.history.behaviour.follower import Predictor, Shares, each_alone

__all__ = ["PREDICTORS"]

_ORDERS = range(1, 6)


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
            whole = sum(counts.values()) + len(counts)
            for one, count in reversed(counts.items()):
                shares[one] = shares.get(one, 0.0) + left * count / whole
            left *= len(counts) / whole
        return shares


PREDICTORS = tuple(
    Predictor(
        f"Markov {order}",
        f"the last {order} decide on the next, with back-off",
        2 + order,
        each_alone(partial(_Markov, order)),
    )
    for order in _ORDERS
)
