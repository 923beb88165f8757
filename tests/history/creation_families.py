"""Families of applications that create files, used to measure predictors of creations.

Ten follow a known law in every run; six others break theirs, so that trust in a law has to be earned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from vani.centre.prediction.creations.series import Creations

__all__ = ["FAMILIES", "HARDER", "PAST", "category"]

PAST: Final = 8
"""Number of runs before the predicted one."""
_RANKS: Final = 8
_STEPS: Final = 20
_LARGE: Final = 64 * 2**20
_NOISE: Final = 0.001
"""Relative noise of computed sizes, such as compressed or adaptive ones."""

Random = np.random.Generator
Sizes = np.ndarray
"""Bytes by step and rank, shape (steps, ranks)."""


def _constant(random: Random, runs: int) -> list[Sizes]:
    return [np.full((_STEPS, _RANKS), _large(random))] * runs


def _by_rank(random: Random, runs: int) -> list[Sizes]:
    return [np.tile(_of_ranks(random), (_STEPS, 1))] * runs


def _growing(random: Random, runs: int) -> list[Sizes]:
    rate = random.uniform(0.02, 0.10)
    grown = _large(random) * (1 + rate) ** np.arange(_STEPS)[:, None] * np.ones(_RANKS)
    return [_noisy(random, grown) for _ in range(runs)]


def _plot_and_checkpoint(random: Random, runs: int) -> list[Sizes]:
    every, plot, checkpoint = int(random.integers(3, 7)), _large(random) // 16, _large(random)
    steps = np.where(np.arange(1, _STEPS + 1) % every == 0, checkpoint, plot)
    return [np.tile(steps[:, None], (1, _RANKS))] * runs


def _growing_by_rank(random: Random, runs: int) -> list[Sizes]:
    rates = random.uniform(0.02, 0.10, _RANKS)
    grown = _of_ranks(random) * (1 + rates) ** np.arange(_STEPS)[:, None]
    return [_noisy(random, grown) for _ in range(runs)]


def _random_walk(random: Random, runs: int) -> list[Sizes]:
    start = _large(random)
    return [start * np.exp(random.normal(0, 0.02, (_STEPS, _RANKS)).cumsum(axis=0)) for _ in range(runs)]


def _doubled(random: Random, runs: int) -> list[Sizes]:
    first = np.tile(_of_ranks(random) // 64, (_STEPS, 1))
    return [first * 2**run for run in range(runs)]


def _sweep(random: Random, runs: int) -> list[Sizes]:
    """Each run has its own unknown problem size, to which its files are proportional."""
    shape = np.tile(_of_ranks(random), (_STEPS, 1))
    return [shape * random.uniform(0.1, 10) for _ in range(runs)]


def _longer(random: Random, runs: int) -> list[Sizes]:
    ranks, more = _of_ranks(random), int(random.integers(1, 5))
    return [np.tile(ranks, (_STEPS + more * run, 1)) for run in range(runs)]


def _two_in_turn(random: Random, runs: int) -> list[Sizes]:
    variants = [np.tile(_of_ranks(random), (_STEPS - 5 * one, 1)) for one in range(2)]
    return [variants[run % 2] for run in range(runs)]


FAMILIES: Final[dict[str, Callable[[Random, int], list[Sizes]]]] = {
    "constant": _constant,
    "by rank": _by_rank,
    "growing": _growing,
    "plot and checkpoint": _plot_and_checkpoint,
    "growing by rank": _growing_by_rank,
    "random walk": _random_walk,
    "doubled": _doubled,
    "sweep": _sweep,
    "longer": _longer,
    "two alternating": _two_in_turn,
}


def _changed(random: Random, runs: int) -> list[Sizes]:
    """The input changes at some run."""
    before, after = (np.tile(_of_ranks(random), (_STEPS, 1)) for _ in range(2))
    at = int(random.integers(1, runs + 8))
    return [before if run < at else after for run in range(runs)]


def _other_at_times(random: Random, runs: int) -> list[Sizes]:
    usual = np.tile(_of_ranks(random), (_STEPS, 1))
    return [
        np.tile(_of_ranks(random), (_STEPS, 1)) if random.random() < 0.1 else usual for _ in range(runs)
    ]


def _one_of_three(random: Random, runs: int) -> list[Sizes]:
    inputs = [np.tile(_of_ranks(random), (_STEPS, 1)) for _ in range(3)]
    return [inputs[int(random.choice(3, p=[0.8, 0.15, 0.05]))] for _ in range(runs)]


def _drifting(random: Random, runs: int) -> list[Sizes]:
    """Nearly always within 1 % of the last run, but never of a much earlier one."""
    first, sigma = np.tile(_of_ranks(random), (_STEPS, 1)), random.uniform(0.002, 0.006)
    return [first * np.exp(walked) for walked in random.normal(0, sigma, runs).cumsum()]


def _stopped_early(random: Random, runs: int) -> list[Sizes]:
    """Sometimes the steps after some step are missing, and the last one is cut short."""
    sizes = np.tile(_of_ranks(random), (_STEPS, 1))
    return [
        sizes[: int(random.integers(3, _STEPS))] if random.random() < 0.15 else sizes for _ in range(runs)
    ]


def _refined(random: Random, runs: int) -> list[Sizes]:
    """Files are larger from some step on, which differs between runs."""
    sizes = np.tile(_of_ranks(random), (_STEPS, 1))
    after = np.arange(_STEPS)[:, None]
    return [np.where(after < random.integers(1, _STEPS), sizes, 2 * sizes) for _ in range(runs)]


HARDER: Final[dict[str, Callable[[Random, int], list[Sizes]]]] = {
    "changed": _changed,
    "other at times": _other_at_times,
    "one of three": _one_of_three,
    "drifting": _drifting,
    "stopped early": _stopped_early,
    "refined": _refined,
}


def category(family: str, seed: int, runs: int = PAST + 1) -> list[Creations]:
    """The runs of one application of one family, the oldest first; ranks come in a different order in each step."""
    families = FAMILIES | HARDER
    random = np.random.default_rng([list(families).index(family), seed])
    return [_in_order(random, sizes) for sizes in families[family](random, runs)]


def _in_order(random: Random, sizes: Sizes) -> Creations:
    steps, ranks = sizes.shape
    order = random.permuted(np.tile(np.arange(ranks), (steps, 1)), axis=1)
    flat = np.take_along_axis(sizes, order, axis=1).ravel()
    return Creations(
        np.rint(flat).astype(np.int64), order.ravel().astype(np.int64), np.full(steps * ranks, 4)
    )


def _large(random: Random) -> int:
    return int(_LARGE * random.uniform(0.5, 4))


def _of_ranks(random: Random) -> np.ndarray:
    return np.rint(_LARGE * random.uniform(0.5, 4, _RANKS))


def _noisy(random: Random, sizes: Sizes) -> Sizes:
    return sizes * (1 + random.normal(0, _NOISE, sizes.shape))
