"""How many files a run is going to create, and by which ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vani.history.creations.run_laws import best_law
from vani.history.creations.series import Creations, Ints

__all__ = ["expected_count", "expected_ranks"]


def expected_count(past: Sequence[Creations]) -> tuple[int, str]:
    """How many creations the run after `past` is going to have, and by which law."""
    law, _, _ = best_law([np.array([float(len(run))]) for run in past], exact=True)
    return max(0, round(float(law.follow([np.array([float(len(run))]) for run in past])[0]))), law.name


def expected_ranks(past: Sequence[Creations], so_far: Creations, count: int | None) -> Ints:
    """Ranks of what is created after `so_far`.

    Parameters
    ----------
    count
        How many; None: until the end of the run, by how long runs were.

    Returns
    -------
    array
        Shape (creations,). Without past runs and a `count` none.
    """
    if count is None:
        count = max(0, expected_count(past)[0] - len(so_far)) if past else 0
    wanted = len(so_far) + count
    model = max(past[-4:], key=len) if past else so_far
    if past and len(past[-1]) >= min(wanted, len(model)):
        model = past[-1]
    if not len(model):
        return np.full(count, -1, dtype=np.int64)
    ranks = model.ranks
    if len(ranks) < wanted:
        period = _period(ranks)
        more = np.arange(len(ranks), wanted)
        ranks = np.r_[ranks, ranks[len(ranks) - period + (more - len(ranks)) % period]]
    return np.asarray(ranks[len(so_far) : wanted])


def _period(ranks: Ints) -> int:
    """After how many creations the ranks come again: exactly where they do, else as many as there are ranks."""
    tail = ranks[-8192:]
    distinct = len(np.unique(tail))
    for period in (1, distinct, *range(2, min(len(tail) // 2, 1024) + 1)):
        if period < len(tail) and bool((tail[period:] == tail[:-period]).all()):
            return int(period)
    return min(distinct, len(tail))
