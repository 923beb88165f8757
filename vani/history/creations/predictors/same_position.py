"""What the same creation of the same rank was in the run before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from vani.history.creations.continuation import continued, lag_of
from vani.history.creations.growth import expected_ranks
from vani.history.creations.series import Creations, Foreseen, nth_of_rank

NAME: Final = "same_position"
ABOUT: Final = "as large as in the run before"
ORDER: Final = 3
COSTLY: Final = False


def predict(past: Sequence[Creations], so_far: Creations, count: int | None) -> Foreseen:
    """Look it up; beyond the end of that run, its last period goes on."""
    ranks = expected_ranks(past, so_far, count)
    if not past or not len(past[-1]):
        return Foreseen(np.full(len(ranks), np.nan), ranks)
    last = past[-1]
    sizes = last.at(ranks, nth_of_rank(ranks, so_far))
    beyond = np.isnan(sizes)
    if beyond.any():
        sizes[beyond] = continued(last, ranks[beyond], lag_of(last))
    return Foreseen(sizes, ranks)
