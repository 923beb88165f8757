"""Predictors on runs that they have not seen: the next run as a whole, or the rest of a run block by block."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import ModuleType
from typing import Final

import numpy as np

from vani.history.creations.series import (
    Creations,
    Flags,
    Floats,
    Foreseen,
    Ints,
    is_right,
    nothing,
    nth_of_rank,
)

__all__ = ["BLOCKS", "Outcome", "blocks_of", "held_against", "on_next_run", "on_rest"]

BLOCKS: Final = 10
"""In so many parts a run is followed while it goes on; of the first nobody knows anything but from past runs."""


@dataclass(frozen=True)
class Outcome:
    """What was foreseen, beside what came.

    Attributes
    ----------
    right
        Of each creation that came, whether its size was foreseen within 1 %; shape (came,).
    ratios
        What came over what was foreseen, NaN where nothing was; shape (came,).
    accuracy
        Share of right ones; of the creations that came, or that were foreseen if those are more.
    cost_s
        How long it took.
    at
        Which of those foreseen each creation is, -1 for none; shape (came,).
    """

    right: Flags
    ratios: Floats
    accuracy: float
    cost_s: float
    at: Ints


def on_next_run(method: ModuleType, past: Sequence[Creations], came: Creations) -> Outcome:
    """Foresee the run after `past`, and hold it against the one that came."""
    began = time.perf_counter()
    foreseen: Foreseen = method.predict(past, nothing(), None)
    return held_against(foreseen, came, time.perf_counter() - began)


def blocks_of(number: int, blocks: int = BLOCKS) -> list[tuple[int, int]]:
    """Where blocks of a run begin and end, but for the first one."""
    edges = np.unique(np.linspace(0, number, blocks + 1).astype(int))
    return [(int(begin), int(end)) for begin, end in pairwise(edges[1:])]


def on_rest(
    method: ModuleType, past: Sequence[Creations], came: Creations, blocks: Sequence[tuple[int, int]]
) -> Iterator[Outcome]:
    """Foresee each block of a run from all that was created before it."""
    for begin, end in blocks:
        began = time.perf_counter()
        so_far = came.first(begin)
        # In which order ranks come does not matter: two more files of each are asked for.
        count = end - begin + 2 * len(np.unique(so_far.ranks))
        foreseen: Foreseen = method.predict(past, so_far, count)
        found = held_against(foreseen, came.part(begin, end), time.perf_counter() - began)
        yield replace(found, accuracy=float(found.right.mean()))


def held_against(foreseen: Foreseen, came: Creations, cost_s: float) -> Outcome:
    """What was foreseen beside what came."""
    # A file is found by its name, not by when it is made: the nth one of a rank is the nth one.
    guess = _by_rank(foreseen).find(came.ranks, nth_of_rank(came.ranks))
    # Of ranks that nobody expected, the order tells which file is which.
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
