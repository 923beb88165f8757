"""Laws by which a run continues: a creation equals an earlier one, or is larger by a constant factor or step.

The earlier one is of the same rank (so that the order of ranks does not matter), or of any rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from vani.centre.prediction.creations.series import NO_RANK, Creations, Floats, Ints, is_right, nth_of_rank

_MOST_LAG: Final = 64
_JUDGED: Final = 2048
"""Number of latest creations by which laws are judged."""
_BETTER: Final = 0.02
"""Amount by which a longer period must be right more often."""


@dataclass(frozen=True)
class Law:
    """A creation follows from the one `lag` before it and, unless `kind` is `equal`, from the one `lag` before that.

    With `by_rank`, the lag counts creations of the same rank, otherwise of all; `share` is the share it got right.
    """

    kind: str
    lag: int
    by_rank: bool
    share: float


def laws(run: Creations, kinds: tuple[str, ...] = ("equal", "factor", "step")) -> Iterator[Law]:
    """Each kind of law with its best lag, by rank and over all; simple ones first."""
    sides = (True, False) if len(np.unique(run.ranks[-_JUDGED:])) > 1 else (True,)
    for kind in kinds:
        for by_rank in sides:
            yield _fitted(run, kind, by_rank=by_rank)


def lag_of(run: Creations) -> Law:
    """The period of a run."""
    return max(laws(run, ("equal",)), key=lambda law: law.share)


def continued(run: Creations, ranks: Ints, law: Law) -> Floats:
    """Sizes that continue a run by a law, shape of `ranks`; NaN if a rank has too few creations for the law."""
    who, nth, known = _seen(run, ranks, by_rank=law.by_rank)
    had = _created_by_rank(known, who)
    # The last complete period, and the number of periods from it to the wanted creation.
    ahead = np.maximum(0, (nth - had) // law.lag + 1)
    last = known.at(who, nth - ahead * law.lag)
    short = np.isnan(last)
    if short.any():
        # A rank without a complete period repeats its last creation.
        last[short] = known.at(who[short], had[short] - 1)
    if law.kind == "equal":
        return last
    before = known.at(who, nth - (ahead + 1) * law.lag)
    with np.errstate(all="ignore"):
        if law.kind == "factor":
            return np.where(before > 0, last * (last / before) ** ahead, np.nan)
        return np.asarray(np.maximum(0, last + (last - before) * ahead))


def _fitted(run: Creations, kind: str, *, by_rank: bool) -> Law:
    tail = max(0, len(run) - _JUDGED)
    ranks, came = run.ranks[tail:], run.values[tail:]
    known = run if by_rank else _one_rank(run)
    who = ranks if by_rank else np.full(len(ranks), NO_RANK)
    nth = known.nth[tail:]
    steps = 1 if kind == "equal" else 2
    longest = min(_MOST_LAG, max(1, int(nth.max(initial=0)) // steps))
    best = Law(kind, 1, by_rank, -1.0)
    for lag in range(1, longest + 1):
        last = known.at(who, nth - lag)
        guess = last
        if kind != "equal":
            before = known.at(who, nth - 2 * lag)
            with np.errstate(all="ignore"):
                guess = last * (last / before) if kind == "factor" else last + (last - before)
        there = np.isfinite(guess)
        number = int(there.sum())
        # A period that was repeated only by half does not count.
        if number < max(2, lag // 2):
            continue
        share = float(is_right(guess[there], came[there]).mean()) * (1 - 1 / (number + 2))
        if share > best.share + (_BETTER if best.share >= 0 else 0):
            best = Law(kind, lag, by_rank, share)
    return best


def _seen(run: Creations, ranks: Ints, *, by_rank: bool) -> tuple[Ints, Ints, Creations]:
    if by_rank:
        return ranks, nth_of_rank(ranks, run), run
    who = np.full(len(ranks), NO_RANK)
    return who, np.arange(len(ranks)) + len(run), _one_rank(run)


def _one_rank(run: Creations) -> Creations:
    return Creations(run.sizes, np.full(len(run), NO_RANK), run.stripes)


def _created_by_rank(run: Creations, ranks: Ints) -> Ints:
    who, created = np.unique(run.ranks, return_counts=True)
    if not len(who):
        return np.zeros(len(ranks), dtype=np.int64)
    at = np.minimum(np.searchsorted(who, ranks), len(who) - 1)
    return np.where(who[at] == ranks, created[at], 0)
