"""Laws by which figures change from run to run, and from them the number and ranks of the next run's creations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from vani.centre.prediction.creations.series import Creations, Floats, Ints, is_right

_JUDGED: Final = 5
"""Number of latest runs by which laws are judged."""

Rows = Sequence[Floats]


@dataclass(frozen=True)
class RunLaw:
    """A law: its requirements, and its prediction for the run after rows of figures, one row per run."""

    name: str
    needs: int
    follow: Callable[[Rows], Floats]


def _factor(rows: Rows) -> Floats:
    with np.errstate(all="ignore"):
        return np.where(rows[-2] > 0, rows[-1] * (rows[-1] / rows[-2]), rows[-1])


LAWS: Final = (
    RunLaw("equal", 1, lambda rows: rows[-1]),
    RunLaw("two alternating", 2, lambda rows: rows[-2]),
    RunLaw("three in turn", 3, lambda rows: rows[-3]),
    RunLaw("four in turn", 4, lambda rows: rows[-4]),
    RunLaw("by a constant step", 2, lambda rows: np.maximum(0, 2 * rows[-1] - rows[-2])),
    RunLaw("by a constant factor", 2, _factor),
)


def best_law(rows: Rows, *, exact: bool = False) -> tuple[RunLaw, float, int]:
    """The law that was right most often for the last runs.

    Parameters
    ----------
    rows
        One row per run, all of the same shape; NaN if a run lacks the figure.
    exact
        Right means within 0.5, instead of within 1 %.

    Returns
    -------
    tuple
        The law, the share of figures that it got right, and the number of runs on which it was judged; the first
        law in ties. After a single run, an equal one is assumed, judged on no run.
    """
    best, highest, judged = LAWS[0], -1.0, 0
    for law in LAWS:
        tried = range(max(law.needs, len(rows) - _JUDGED), len(rows))
        if not tried:
            continue
        shares = []
        for at in tried:
            guess, came = law.follow(rows[:at]), rows[at]
            right = np.abs(guess - came) < 0.5 if exact else is_right(guess, came)
            there = np.isfinite(came)
            shares.append(float(right[there].mean()) if there.any() else 0.0)
        # A law judged on fewer runs may have been lucky.
        share = sum(shares) / (len(shares) + 0.5)
        if share > highest + 1e-9:
            best, highest, judged = law, share, len(shares)
    return best, highest, judged


def expected_count(past: Sequence[Creations]) -> tuple[int, str]:
    """The number of creations in the run after `past`, and the law that predicts it."""
    law, _, _ = best_law([np.array([float(len(run))]) for run in past], exact=True)
    return max(0, round(float(law.follow([np.array([float(len(run))]) for run in past])[0]))), law.name


def expected_ranks(past: Sequence[Creations], so_far: Creations, count: int | None) -> Ints:
    """Ranks of the creations after `so_far`.

    Parameters
    ----------
    count
        Number of creations; None: until the end of the run, judged by the length of earlier runs.

    Returns
    -------
    array
        Shape (creations,). Empty without past runs and without `count`.
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
    """Period after which the ranks repeat exactly; otherwise the number of ranks."""
    tail = ranks[-8192:]
    distinct = len(np.unique(tail))
    for period in (1, distinct, *range(2, min(len(tail) // 2, 1024) + 1)):
        if period < len(tail) and bool((tail[period:] == tail[:-period]).all()):
            return int(period)
    return min(distinct, len(tail))
