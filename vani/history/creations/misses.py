"""When to predict again while a run goes on, as Tarazu does (sections 5.5.1 and 5.7).

Misses are files that are created and were not foreseen. When a tenth of the files that were foreseen missed, it is
predicted again; when that was needed more than three times in a row, the predictor is chosen anew; when more than half
of all files missed, what was learned is of no use and everything starts over. The paper leaves open of what 10 % and
50 % are shares, and what ends a row: here of the files foreseen (or created, where those are more), and as many hits in
succession as misses make it predict again.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Final

__all__ = ["Misses", "ToDo"]

_AGAIN: Final = 0.1
_IN_A_ROW: Final = 3
_OVER: Final = 0.5


class ToDo(Enum):
    """What a creation makes necessary."""

    NOTHING = "nothing"
    PREDICT = "predict again"
    RETRAIN = "retrain"
    START_OVER = "start over"


class Misses:
    """Counts hits and misses of a run.

    Parameters
    ----------
    foreseen
        Files that were foreseen for the whole run.
    """

    def __init__(self, foreseen: int) -> None:
        self.foreseen = foreseen
        self.created = self.missed = 0
        self.predicted = 0
        """Times in a row."""
        self._since = self._hits = 0

    @property
    def tenth(self) -> int:
        """Misses after which it is predicted again."""
        return max(1, math.ceil(_AGAIN * max(self.foreseen, 1)))

    def saw(self, *, hit: bool) -> ToDo:
        """A file was created, and it was foreseen or not."""
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
            self._forget()
            return ToDo.START_OVER
        if self._since < self.tenth:
            return ToDo.NOTHING
        self._since = 0
        self.predicted += 1
        if self.predicted > _IN_A_ROW:
            self.predicted = 0
            return ToDo.RETRAIN
        return ToDo.PREDICT

    def _forget(self) -> None:
        self.created = self.missed = self.predicted = self._since = 0
