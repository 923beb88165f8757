"""Predictors of the next behaviour in a sequence.

A follower sees the ids of one category's runs in order, and predicts the next one.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

Shares = dict[int, float]
"""Probability by id; the remainder to 1 is the probability of a new behaviour."""


class Follower(Protocol):
    """A predictor applied to the runs of one category."""

    def see(self, behaviour: int) -> None:
        """Learn the next id."""

    def predict(self) -> Shares:
        """Probabilities of the next id, in order of preference among equally likely ones; empty before any run."""


Begin = Callable[[], Follower]
"""Factory of a follower for one category; followers from one factory may learn from each other."""


_DECAY: Final = 0.8
_FORGOTTEN: Final = 1e-9
"""Weight below which a successor is dropped, to bound the memory."""


def begins() -> dict[str, Begin]:
    """A factory of followers for each predictor that needs no training, by name, the plain ones first."""
    return {
        "last value": _LastValue,
        "most frequent": partial(_Chain, 0, escape=1.0),
        "recent": partial(_Chain, 0, decay=_DECAY, escape=1.0),
        **{f"Markov {order}": partial(_Chain, order) for order in range(1, 6)},
        "longest match": _LongestMatch,
        "recent Markov": partial(_Chain, 3, decay=_DECAY, escape=0.5),
        "habits": partial(_Habits, {}),
    }


class _LastValue:
    """The same as the last run (DFRA)."""

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


class _Chain:
    """A Markov chain: the behaviour that followed the same last runs before; of order 0, the most frequent one.

    If the sequence of last runs is new, a shorter one decides. An order whose context has been seen n times has the
    weight n / (n + escape), and leaves the remainder to the order below.

    Parameters
    ----------
    decay
        Factor by which the successors of a context count less with each later one.
    escape
        None: the number of different successors (the escape of Witten and Bell).
    """

    def __init__(self, order: int, *, decay: float = 1.0, escape: float | None = None) -> None:
        self._order, self._decay, self._escape = order, decay, escape
        self._followed: dict[tuple[int, ...], dict[int, float]] = {}
        self._seen: tuple[int, ...] = ()

    def see(self, behaviour: int) -> None:
        for length in range(len(self._seen) + 1):
            context = self._seen[len(self._seen) - length :]
            counts = self._followed.setdefault(context, {})
            if self._decay < 1:
                counts = {known: count * self._decay for known, count in counts.items() if count > _FORGOTTEN}
                self._followed[context] = counts
            # Removed and inserted again, so that the latest of equally frequent behaviours is last.
            counts[behaviour] = counts.pop(behaviour, 0.0) + 1.0
        self._seen = (*self._seen, behaviour)[max(0, len(self._seen) + 1 - self._order) :]

    def predict(self) -> Shares:
        shares: Shares = {}
        left = 1.0
        for length in range(len(self._seen), -1, -1):
            counts = self._followed.get(self._seen[len(self._seen) - length :])
            if counts is None:
                continue
            escape = len(counts) if self._escape is None else self._escape
            total = sum(counts.values()) + escape
            for behaviour, count in reversed(counts.items()):
                shares[behaviour] = shares.get(behaviour, 0.0) + left * count / total
            left *= escape / total
        return shares


_LASTS: Final = 0.95
"""Factor that discounts a hit with each later query."""


class _LongestMatch:
    """The behaviour that followed the last occurrence of the longest matching sequence of runs."""

    def __init__(self) -> None:
        self._sequence: list[int] = []
        self._ends: dict[tuple[int, int], int] = {}
        self._at: int | None = None
        self._right = 1.0
        self._asked = 2.0

    def see(self, behaviour: int) -> None:
        sequence = self._sequence
        if self._at is not None:
            hit = sequence[self._at] == behaviour
            self._right, self._asked = _LASTS * self._right + hit, _LASTS * self._asked + 1
            self._at = self._at + 1 if hit else None
        sequence.append(behaviour)
        if len(sequence) < 2:
            return
        pair = (sequence[-2], behaviour)
        if self._at is None:
            self._at = self._ends.get(pair)
        self._ends[pair] = len(sequence)

    def predict(self) -> Shares:
        if self._at is None:
            return {self._sequence[-1]: 0.5} if self._sequence else {}
        return {self._sequence[self._at]: self._right / self._asked}


_ORDER: Final = 4
_LONG_AGO: Final = 4
_NEW: Final = 5
_AGES: Final = 6
_REMEMBERED: Final = 32
_TOLD: Final = 8

_Counts = dict[tuple[int, ...], list[float]]


def recency_of(latest_first: list[int], behaviour: int, most: int) -> int | None:
    """The number of others since a behaviour occurred, None if never; it becomes the first of the latest `most`."""
    place = latest_first.index(behaviour) if behaviour in latest_first else None
    if place is not None:
        del latest_first[place]
    latest_first.insert(0, behaviour)
    del latest_first[most:]
    return place


class _Habits:
    """Behaviours repeat and change as they did in other categories, which works in a new category, too.

    A run is described by the number of other behaviours since its own last occurred: 0 is the last one again, 1 the
    one before, and so on up to "long ago" and "never before". The successors of the last four such descriptions are
    counted over all categories, in `followed`, with back-off to fewer as in the Markov chains.
    """

    def __init__(self, followed: _Counts) -> None:
        self._followed = followed
        self._latest_first: list[int] = []
        self._habit: tuple[int, ...] = ()
        self._runs = 0

    def see(self, behaviour: int) -> None:
        contexts = self._contexts() if self._latest_first else []
        place = recency_of(self._latest_first, behaviour, _REMEMBERED)
        recency = _NEW if place is None else min(place, _LONG_AGO)
        for context in contexts:
            counts = self._followed.setdefault(context, [0.0] * (_NEW + 1))
            counts[recency] += 1.0
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
