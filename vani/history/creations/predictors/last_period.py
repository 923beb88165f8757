"""The last period again: of each rank its last creation, or as many before as the period has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from vani.history.creations.continuation import continued, lag_of
from vani.history.creations.growth import expected_ranks
from vani.history.creations.series import Creations, Foreseen, joined

NAME: Final = "last_period"
ABOUT: Final = "each rank, or all together, repeats its last period"
ORDER: Final = 1
COSTLY: Final = False


def predict(past: Sequence[Creations], so_far: Creations, count: int | None) -> Foreseen:
    """Find the period in the last run and what has begun, and go on with it."""
    ranks = expected_ranks(past, so_far, count)
    known = joined([*past[-1:], so_far])
    if not len(known):
        return Foreseen(np.full(len(ranks), np.nan), ranks)
    law = lag_of(known)
    each = " by rank" if law.by_rank else ""
    return Foreseen(continued(known, ranks, law), ranks, f"period {law.lag}{each}")
