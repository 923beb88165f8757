"""Tests predictors on unseen runs: on the next run as a whole, or block by block on the rest of a run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from vani.centre.prediction.creations.predictors import Predictor
from vani.centre.prediction.creations.series import (
    Creations,
    Flags,
    Floats,
    Foreseen,
    Ints,
    is_right,
    nothing,
    nth_of_rank,
)

BLOCKS: Final = 10
"""Number of blocks in which a running run is followed; the first one is predicted from past runs alone."""


@dataclass(frozen=True)
class Outcome:
    """A forecast compared with the actual creations.

    Attributes
    ----------
    right
        Whether the size of each actual creation was predicted within 1 %, shape (came,).
    ratios
        Actual over predicted size, NaN without a prediction; shape (came,).
    accuracy
        Share of right sizes among the actual creations, or among the predicted ones if there are more.
    cost_s
        Seconds that the forecast took.
    at
        Index of each creation's prediction, or -1; shape (came,).
    """

    right: Flags
    ratios: Floats
    accuracy: float
    cost_s: float
    at: Ints


def on_next_run(method: Predictor, past: Sequence[Creations], came: Creations) -> Outcome:
    """Predict the run after `past`, and compare it with the actual one."""
    began = time.perf_counter()
    foreseen: Foreseen = method.predict(past, nothing(), None)
    return compare(foreseen, came, time.perf_counter() - began)


def blocks_of(number: int, blocks: int = BLOCKS) -> list[tuple[int, int]]:
    """Begin and end of each block of a run except the first."""
    edges = np.unique(np.linspace(0, number, blocks + 1).astype(int))
    return [(int(begin), int(end)) for begin, end in pairwise(edges[1:])]


def on_rest(
    method: Predictor, past: Sequence[Creations], came: Creations, blocks: Sequence[tuple[int, int]]
) -> Iterator[Outcome]:
    """Predict each block of a run from all creations before it."""
    for begin, end in blocks:
        began = time.perf_counter()
        so_far = came.first(begin)
        # Ranks may create in another order, so two more files of each rank are predicted.
        count = end - begin + 2 * len(np.unique(so_far.ranks))
        foreseen: Foreseen = method.predict(past, so_far, count)
        outcome = compare(foreseen, came.part(begin, end), time.perf_counter() - began)
        yield replace(outcome, accuracy=float(outcome.right.mean()))


def compare(foreseen: Foreseen, came: Creations, cost_s: float) -> Outcome:
    """Compare a forecast with the actual creations."""
    # Files are matched by rank, not by time: the nth creation of a rank is compared with the nth predicted
    # one.
    guess = _by_rank(foreseen).find(came.ranks, nth_of_rank(came.ranks))
    # Creations of unpredicted ranks are matched in order.
    strange = np.flatnonzero(guess < 0)
    free = np.ones(len(foreseen), dtype=np.bool_)
    free[guess[guess >= 0]] = False
    left = np.flatnonzero(free)[: len(strange)]
    guess[strange[: len(left)]] = left
    sizes = np.full(len(came), np.nan)
    sizes[guess >= 0] = foreseen.sizes[guess[guess >= 0]]
    right = is_right(sizes, came.values)
    with np.errstate(all="ignore"):
        ratios = np.where((sizes == 0) & (came.values == 0), 1.0, came.values / sizes)
    ratios[~np.isfinite(ratios)] = np.nan
    return Outcome(right, ratios, float(right.sum() / max(1, len(came), len(foreseen))), cost_s, guess)


def _by_rank(foreseen: Foreseen) -> Creations:
    none = np.zeros(len(foreseen), dtype=np.int64)
    return Creations(none, foreseen.ranks, none)
