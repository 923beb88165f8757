"""Follows a run file by file, and decides when to predict again as Tarazu does (sections 5.5.1 and 5.7).

Misses are files that are created without having been predicted. When misses reach a tenth of the predicted files,
the rest is predicted again. When that is needed more than three times in a row, the predictor is chosen again. When
more than half of all files are misses, the past is useless and everything starts over. The paper does not define
what the 10 % and 50 % refer to, or what ends a row. Here they refer to the predicted files (or the created ones, if
there are more), and a row ends after as many successive hits as the misses that cause a prediction.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from vani.centre.columns import Flags
from vani.centre.prediction.creations.choice import Follower, choose_next
from vani.centre.prediction.creations.predictors import PREDICTORS
from vani.centre.prediction.creations.series import Creations, Foreseen, is_right

_AGAIN: Final = 0.1
_IN_A_ROW: Final = 3
_OVER: Final = 0.5


class ToDo(Enum):
    """The action required after a creation."""

    NOTHING = "nothing"
    PREDICT = "predict again"
    RETRAIN = "retrain"
    START_OVER = "start over"


class Misses:
    """Counts hits and misses of a run.

    Parameters
    ----------
    foreseen
        Number of files predicted for the whole run.
    """

    def __init__(self, foreseen: int) -> None:
        self.foreseen = foreseen
        self.created = self.missed = 0
        self.predicted = 0
        """Number of predictions in a row."""
        self._since = self._hits = 0

    @property
    def tenth(self) -> int:
        """Number of misses after which the rest is predicted again."""
        return max(1, math.ceil(_AGAIN * max(self.foreseen, 1)))

    def saw(self, *, hit: bool) -> ToDo:
        """Count a created file, which was predicted (`hit`) or not, and return the required action."""
        self.created += 1
        if hit:
            self._hits += 1
            if self._hits >= self.tenth:
                self.predicted = 0
            return ToDo.NOTHING
        self._hits = 0
        self.missed += 1
        self._since += 1
        if self.missed > _OVER * max(self.foreseen, self.created):
            self.created = self.missed = self.predicted = self._since = 0
            return ToDo.START_OVER
        if self._since < self.tenth:
            return ToDo.NOTHING
        self._since = 0
        self.predicted += 1
        if self.predicted > _IN_A_ROW:
            self.predicted = 0
            return ToDo.RETRAIN
        return ToDo.PREDICT


@dataclass(frozen=True)
class Followed:
    """The outcome of following a run.

    Attributes
    ----------
    hits
        Whether each file had been predicted when it was created, with its size within 1 %; shape (files,).
    done
        Index of a file, and the action required after it.
    """

    hits: Flags
    done: tuple[tuple[int, ToDo], ...]

    def times(self, todo: ToDo) -> int:
        """Number of times that an action was required."""
        return sum(step is todo for _, step in self.done)


def follow(past: Sequence[Creations], came: Creations, names: Iterable[str] | None = None) -> Followed:
    """Predict a run before it begins, and again when misses require it.

    Predicting again gives the created files to the predictor that predicted the rest of past runs best. Retraining
    also judges all predictors by this run. Starting over forgets the past runs.

    Parameters
    ----------
    past
        At least one run.
    names
        Predictors to choose from; None: all except costly ones.
    """
    cheap = [name for name, predictor in PREDICTORS.items() if not predictor.costly]
    plain = cheap if names is None else list(names)
    chosen = choose_next(past, plain)
    runs, method = list(past), ""
    expected = len(chosen.foreseen)
    misses = Misses(expected)
    hits = _hits(chosen.foreseen, came, 0)
    done: list[tuple[int, ToDo]] = []
    for at in range(len(came)):
        todo = misses.saw(hit=bool(hits[at]))
        if todo is ToDo.NOTHING:
            continue
        done.append((at, todo))
        so_far = came.first(at + 1)
        count = max(expected - len(so_far), 2 * misses.tenth)
        if todo is ToDo.PREDICT and method:
            foreseen = PREDICTORS[method].predict(runs, so_far, count)
        else:
            runs = [] if todo is ToDo.START_OVER else runs
            follower = Follower(runs, plain)
            if todo is not ToDo.PREDICT:
                follower.see_all(so_far)
            anew = follower.rest(so_far, count)
            method, foreseen = anew.method, anew.foreseen
        hits[at + 1 :] = _hits(foreseen, came, at + 1)
    return Followed(hits, tuple(done))


def _hits(foreseen: Foreseen, came: Creations, begin: int) -> Flags:
    """Whether each file from `begin` on was predicted."""
    # Both are counted from the creations before.
    rest = came.part(begin, None)
    return is_right(foreseen.sizes_at(foreseen.find(rest)), rest.values)
