"""Laws by which sizes continue within a run, and by which figures change from run to run."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from vani.centre.columns import Floats, Ints
from vani.centre.prediction.creations import series

# Laws by which a run continues: a creation equals an earlier one, or is larger by a constant factor or step.
#
# The earlier one is of the same rank (so that the order of ranks does not matter), or of any rank.

_MAX_LAG: Final = 64
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


def laws(run: series.Creations, kinds: tuple[str, ...] = ("equal", "factor", "step")) -> Iterator[Law]:
    """Each kind of law with its best lag, by rank and over all; simple ones first."""
    sides = (True, False) if len(np.unique(run.ranks[-_JUDGED:])) > 1 else (True,)
    for kind in kinds:
        for by_rank in sides:
            yield _fitted(run, kind, by_rank=by_rank)


def lag_of(run: series.Creations) -> Law:
    """The period of a run."""
    return max(laws(run, ("equal",)), key=lambda law: law.share)


def continued(run: series.Creations, ranks: Ints, law: Law) -> Floats:
    """Sizes that continue a run by a law, shape of `ranks`; NaN if a rank has too few creations for the law."""
    who, nth, known = _seen(run, ranks, by_rank=law.by_rank)
    had = series.count_by_rank(known, who)
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


def _fitted(run: series.Creations, kind: str, *, by_rank: bool) -> Law:
    tail = max(0, len(run) - _JUDGED)
    ranks, came = run.ranks[tail:], run.values[tail:]
    known = run if by_rank else _one_rank(run)
    who = ranks if by_rank else np.full(len(ranks), series.NO_RANK)
    nth = known.nth[tail:]
    steps = 1 if kind == "equal" else 2
    longest = min(_MAX_LAG, max(1, int(nth.max(initial=0)) // steps))
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
        share = float(series.is_right(guess[there], came[there]).mean()) * (1 - 1 / (number + 2))
        if share > best.share + (_BETTER if best.share >= 0 else 0):
            best = Law(kind, lag, by_rank, share)
    return best


def _seen(
    run: series.Creations, ranks: Ints, *, by_rank: bool
) -> tuple[Ints, Ints, series.Creations]:
    if by_rank:
        return ranks, series.nth_of_rank(ranks, run), run
    who = np.full(len(ranks), series.NO_RANK)
    return who, np.arange(len(ranks)) + len(run), _one_rank(run)


def _one_rank(run: series.Creations) -> series.Creations:
    return series.Creations(run.sizes, np.full(len(run), series.NO_RANK), run.stripes)


_JUDGED_RUNS: Final = 5
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
        tried = range(max(law.needs, len(rows) - _JUDGED_RUNS), len(rows))
        if not tried:
            continue
        shares = []
        for at in tried:
            guess, came = law.follow(rows[:at]), rows[at]
            right = np.abs(guess - came) < 0.5 if exact else series.is_right(guess, came)
            there = np.isfinite(came)
            shares.append(float(right[there].mean()) if there.any() else 0.0)
        # A law judged on fewer runs may have been lucky.
        share = sum(shares) / (len(shares) + 0.5)
        if share > highest + 1e-9:
            best, highest, judged = law, share, len(shares)
    return best, highest, judged


def expected_count(past: Sequence[series.Creations]) -> tuple[int, str]:
    """The number of creations in the run after `past`, and the law that predicts it."""
    law, _, _ = best_law([np.array([float(len(run))]) for run in past], exact=True)
    return max(0, round(float(law.follow([np.array([float(len(run))]) for run in past])[0]))), law.name


def expected_ranks(past: Sequence[series.Creations], so_far: series.Creations, count: int | None) -> Ints:
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
