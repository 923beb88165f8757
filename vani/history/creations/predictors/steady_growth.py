"""Each rank's files grow by a constant factor or step within a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from vani.history.creations.continuation import continued, laws
from vani.history.creations.growth import expected_ranks
from vani.history.creations.series import Creations, Foreseen

NAME: Final = "steady_growth"
ABOUT: Final = "each rank's files grow by a constant factor or step"
ORDER: Final = 2
COSTLY: Final = False


def predict(past: Sequence[Creations], so_far: Creations, count: int | None) -> Foreseen:
    """Go on from what has begun; a run that has not begun yet goes on where the last one ended."""
    ranks = expected_ranks(past, so_far, count)
    known = so_far if len(so_far) or not past else past[-1]
    law = max(laws(known, ("factor", "step")), key=lambda one: one.share) if len(known) else None
    if law is None or law.share < 0:
        return Foreseen(np.full(len(ranks), np.nan), ranks)
    return Foreseen(continued(known, ranks, law), ranks, f"by a constant {law.kind}, period {law.lag}")
