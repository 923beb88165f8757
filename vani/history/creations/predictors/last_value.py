"""The size of the last file that was created."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from vani.history.creations.growth import expected_ranks
from vani.history.creations.series import Creations, Foreseen

NAME: Final = "last_value"
ABOUT: Final = "every file is as large as the last one"
ORDER: Final = 0
COSTLY: Final = False


def predict(past: Sequence[Creations], so_far: Creations, count: int | None) -> Foreseen:
    """Repeat it."""
    ranks = expected_ranks(past, so_far, count)
    last = next((run.values[-1] for run in (so_far, *reversed(past)) if len(run)), np.nan)
    return Foreseen(np.full(len(ranks), last), ranks)
