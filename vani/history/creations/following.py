"""A run followed file by file, with what was foreseen of it, and predicted again where that misses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from vani.history.creations.choice import Chosen, Follower, choose_next
from vani.history.creations.misses import Misses, ToDo
from vani.history.creations.predictors import predictors
from vani.history.creations.series import Creations, Flags, Foreseen, is_right, nth_of_rank

__all__ = ["Followed", "follow"]


@dataclass(frozen=True)
class Followed:
    """How it went.

    Attributes
    ----------
    hits
        Whether each file was foreseen when it was created, its size within 1 %; shape (files,).
    done
        After which file what had to be done.
    """

    hits: Flags
    done: tuple[tuple[int, ToDo], ...]

    def times(self, todo: ToDo) -> int:
        """How often something had to be done."""
        return sum(one is todo for _, one in self.done)


def follow(past: Sequence[Creations], came: Creations, names: Iterable[str] | None = None) -> Followed:
    """Foresee a run before it begins, and again as misses make it necessary (`vani.history.creations.misses`).

    To predict again takes the predictor that foresaw the rest of past runs best and gives it what was created; to
    retrain chooses one by how all did in this run as well; to start over forgets the past runs.

    Parameters
    ----------
    past
        At least one run.
    names
        Predictors to choose from; None: all but costly ones.
    """
    plain = [name for name, one in predictors().items() if not one.COSTLY] if names is None else list(names)
    chosen: Chosen = choose_next(past, plain)
    runs, method = list(past), ""
    expected = len(chosen.foreseen)
    misses = Misses(expected)
    hits = np.zeros(len(came), dtype=np.bool_)
    hits[:] = _hits(chosen.foreseen, came, 0)
    done: list[tuple[int, ToDo]] = []
    for at in range(len(came)):
        todo = misses.saw(hit=bool(hits[at]))
        if todo is ToDo.NOTHING:
            continue
        done.append((at, todo))
        so_far = came.first(at + 1)
        count = max(expected - len(so_far), 2 * misses.tenth)
        if todo is ToDo.PREDICT and method:
            foreseen = predictors()[method].predict(runs, so_far, count)
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
    """Which files from `begin` on are among those that were foreseen."""
    none = np.zeros(len(foreseen), dtype=np.int64)
    table = Creations(none, foreseen.ranks, none)
    # Both count from what was created before.
    rest = came.part(begin, None)
    at = table.find(rest.ranks, nth_of_rank(rest.ranks))
    sizes = np.full(len(rest), np.nan)
    sizes[at >= 0] = foreseen.sizes[at[at >= 0]]
    return is_right(sizes, rest.values)
