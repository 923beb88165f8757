"""Predictors that repeat or continue one run: the last size, the last period, steady growth, the previous run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vani.centre.prediction.creations.continuation import continued, lag_of, laws
from vani.centre.prediction.creations.growth import expected_ranks
from vani.centre.prediction.creations.predictors import Predictor
from vani.centre.prediction.creations.series import Creations, Foreseen, Ints, joined, nth_of_rank


def _unknown(ranks: Ints) -> Foreseen:
    return Foreseen(np.full(len(ranks), np.nan), ranks)


def _last_value(past: Sequence[Creations], so_far: Creations, count: int | None) -> Foreseen:
    ranks = expected_ranks(past, so_far, count)
    last = next((run.values[-1] for run in (so_far, *reversed(past)) if len(run)), np.nan)
    return Foreseen(np.full(len(ranks), last), ranks)


def _last_period(past: Sequence[Creations], so_far: Creations, count: int | None) -> Foreseen:
    """Find the period of the last run and of the current one, and continue it."""
    ranks = expected_ranks(past, so_far, count)
    known = joined([*past[-1:], so_far])
    if not len(known):
        return _unknown(ranks)
    law = lag_of(known)
    each = " by rank" if law.by_rank else ""
    return Foreseen(continued(known, ranks, law), ranks, f"period {law.lag}{each}")


def _steady_growth(past: Sequence[Creations], so_far: Creations, count: int | None) -> Foreseen:
    """Continue the current run; before its first creation, continue from the end of the last run."""
    ranks = expected_ranks(past, so_far, count)
    known = so_far if len(so_far) or not past else past[-1]
    law = max(laws(known, ("factor", "step")), key=lambda law: law.share) if len(known) else None
    if law is None or law.share < 0:
        return _unknown(ranks)
    return Foreseen(continued(known, ranks, law), ranks, f"by a constant {law.kind}, period {law.lag}")


def _same_position(past: Sequence[Creations], so_far: Creations, count: int | None) -> Foreseen:
    """Repeat the same creation of the same rank in the previous run; beyond its end, repeat its last period."""
    ranks = expected_ranks(past, so_far, count)
    if not past or not len(past[-1]):
        return _unknown(ranks)
    last = past[-1]
    sizes = last.at(ranks, nth_of_rank(ranks, so_far))
    beyond = np.isnan(sizes)
    if beyond.any():
        sizes[beyond] = continued(last, ranks[beyond], lag_of(last))
    return Foreseen(sizes, ranks)


PREDICTORS = (
    Predictor("last_value", "every file has the size of the last one", 0, _last_value),
    Predictor("last_period", "each rank, or all together, repeats the last period", 1, _last_period),
    Predictor("steady_growth", "each rank's files grow by a constant factor or step", 2, _steady_growth),
    Predictor("same_position", "the size in the previous run", 3, _same_position),
)
