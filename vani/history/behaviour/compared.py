"""All predictors in one table, with all earlier runs known and with those that had ended."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from vani.errors import InputError
from vani.history.behaviour.evaluation import Tested, begins, judge, learnt, score
from vani.history.behaviour.panel import AUTO
from vani.history.behaviour.runs import Bools, Floats, Runs
from vani.models.behaviour.scores import Comparison, Mode, Reliability
from vani.units import counted

__all__ = ["compare_predictors"]

_MOST: Final = 100_000
_EDGES: Final = (0.0, 0.5, 0.7, 0.9, 0.97, 1.0)


def compare_predictors(runs: Runs, last: float) -> Comparison:
    """Predict the last runs, a share `last` of all.

    Raises
    ------
    InputError
        There is no run to predict whose category is known before.
    """
    notes = list(runs.notes)
    if len(runs) > _MOST:
        notes.append(f"of {counted(len(runs), 'run')}, the last {_MOST:,} are looked at")
        runs = runs.only(np.arange(len(runs)) >= len(runs) - _MOST)
    first = int((1 - last) * len(runs))
    more, lose = learnt(runs, first)
    notes += [f"auto does without {name}, which won nothing before" for name in sorted(lose)]
    modes = []
    for ended_only in (False, True):
        tested = judge(runs, first, ended_only=ended_only, begin=begins() | more, beside=lose)
        if not len(tested.place):
            raise InputError(
                f"{counted(len(runs), 'run')}: of the last {last:.0%} none is of a category that was known before",
                where="runs",
                todo="add more runs (vani history add)",
            )
        modes.append(_mode(runs, tested, ended_only=ended_only))
    together = np.column_stack([runs.category, runs.ids])
    return Comparison(
        len(runs),
        len(np.unique(runs.category)),
        len(np.unique(together, axis=0)),
        float(runs.submitted[first]),
        (modes[0], modes[1]),
        tuple(notes),
    )


def _mode(runs: Runs, tested: Tested, *, ended_only: bool) -> Mode:
    category = runs.category[tested.place]
    return Mode(
        ended_only,
        len(tested.place),
        tested.unknown,
        len(np.unique(category)),
        float(tested.seen.mean()),
        tuple(score(tested, category, name) for name in tested.guesses),
        _reliability(tested.probabilities[AUTO], tested.guesses[AUTO] == tested.actual),
    )


def _reliability(said: Floats, right: Bools) -> tuple[Reliability, ...]:
    found = []
    for low, high in pairwise(_EDGES):
        among = (said >= low) & ((said < high) | (high == _EDGES[-1]))
        if among.any():
            found.append(
                Reliability(
                    low, high, int(among.sum()), float(said[among].mean()), float(right[among].mean())
                )
            )
    return tuple(found)
