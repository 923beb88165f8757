"""Predicts that behaviours repeat and change as they did in other categories, which works in a new category, too.

A run is described by the number of other behaviours since its own last occurred: 0 is the last one again, 1 the one
before, and so on up to "long ago" and "never before". The successors of the last four such descriptions are counted
over all categories, with back-off to fewer as in the Markov chains.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from vani.centre.prediction.behaviour.predictors import Begin, Predictor, Shares

_ORDER: Final = 4
_LONG_AGO: Final = 4
_NEW: Final = 5
_AGES: Final = 6
_REMEMBERED: Final = 32
_TOLD: Final = 8

_Counts = dict[tuple[int, ...], list[float]]


class _Habits:
    def __init__(self, followed: _Counts) -> None:
        self._followed = followed
        self._latest_first: list[int] = []
        self._habit: tuple[int, ...] = ()
        self._runs = 0

    def see(self, behaviour: int) -> None:
        known = behaviour in self._latest_first
        place = self._latest_first.index(behaviour) if known else _NEW
        recency = min(place, _LONG_AGO) if known else _NEW
        if self._latest_first:
            for context in self._contexts():
                counts = self._followed.setdefault(context, [0.0] * (_NEW + 1))
                counts[recency] += 1.0
        if known:
            del self._latest_first[place]
        self._latest_first.insert(0, behaviour)
        del self._latest_first[_REMEMBERED:]
        self._habit = (*self._habit, recency)[-_ORDER:]
        self._runs += 1

    def predict(self) -> Shares:
        if not self._latest_first:
            return {}
        by_recency = [0.0] * (_NEW + 1)
        left = 1.0
        for context in reversed(self._contexts()):
            counts = self._followed.get(context)
            if counts is None:
                continue
            distinct = sum(count > 0 for count in counts)
            whole = sum(counts) + distinct
            for kind, count in enumerate(counts):
                by_recency[kind] += left * count / whole
            left *= distinct / whole
        shares = dict(zip(self._latest_first, by_recency[:_LONG_AGO], strict=False))
        long_ago = self._latest_first[_LONG_AGO:]
        # The ids of long ago share their probability, the latest first; beyond a few, the shares are
        # negligible.
        rest = by_recency[_LONG_AGO]
        for behaviour in long_ago[:_TOLD]:
            shares[behaviour] = rest / 2
            rest /= 2
        return shares

    def _contexts(self) -> list[tuple[int, ...]]:
        """Contexts from no to all last habits, with the number of runs and of behaviours."""
        age = min(self._runs.bit_length(), _AGES)
        kinds = min(len(self._latest_first), _LONG_AGO)
        return [
            (), (age,), (age, kinds),
            *((age, kinds, *self._habit[-length:]) for length in range(1, len(self._habit) + 1)),
        ]  # fmt: skip


def _prepare(sequences: Sequence[Sequence[int]]) -> Begin:
    del sequences  # it learns while it follows
    followed: _Counts = {}
    return lambda: _Habits(followed)


PREDICTORS = (
    Predictor("habits", "behaviour of any category after similar repeats and changes", 10, _prepare),
)
