"""Laws between successive runs: equal, alternating, larger by a constant factor or step, longer.

The beginning of a run that has started shows which earlier run or which law it follows, and by which factor it is
larger.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from vani.centre.prediction.creations.continuation import continued, laws
from vani.centre.prediction.creations.growth import best_law, expected_count, expected_ranks
from vani.centre.prediction.creations.predictors import Predictor
from vani.centre.prediction.creations.series import Creations, Floats, Foreseen, Ints, is_right, nth_of_rank

_RUNS: Final = 8
"""Number of latest runs in which a law is sought."""
_SEEN: Final = 4096
"""Number of latest creations by which the beginning of a run is recognised."""


def _predict(past: Sequence[Creations], so_far: Creations, count: int | None) -> Foreseen:
    """Apply the law that fitted the last runs best, or that fits the run that has started."""
    ranks = expected_ranks(past, so_far, count)
    runs = [run for run in past[-_RUNS:] if len(run)]
    if not runs:
        return Foreseen(np.full(len(ranks), np.nan), ranks)
    nth = nth_of_rank(ranks, so_far)
    law, _, _ = best_law(_rows(runs, runs[-1].ranks, runs[-1].nth))
    if not len(so_far):
        sizes = law.follow(_rows(runs, ranks, nth))
        words = law.name
    else:
        sizes, words = _recognised(runs, so_far, ranks, nth)
    sizes = _beyond(sizes, runs, so_far, ranks)
    longer = "" if count is not None or len(past) < 2 else expected_count(past)[1]
    return Foreseen(sizes, ranks, words + (f", number {longer}" if longer not in ("", "equal") else ""))


def _rows(runs: Sequence[Creations], ranks: Ints, nth: Ints) -> list[Floats]:
    return [run.at(ranks, nth) for run in runs]


def _recognised(runs: Sequence[Creations], so_far: Creations, ranks: Ints, nth: Ints) -> tuple[Floats, str]:
    """Sizes according to the best match of the beginning: a past run or the law, as it is or scaled by a factor."""
    cut = max(0, len(so_far) - _SEEN)
    seen, came = so_far.ranks[cut:], so_far.values[cut:]
    best, best_fit = (np.full(len(ranks), np.nan), ""), -1.0
    for name, behind, ahead in _models(runs, (seen, so_far.nth[cut:]), (ranks, nth)):
        with np.errstate(all="ignore"):
            ratios = came / behind
        ratios = ratios[np.isfinite(ratios) & (ratios > 0)]
        factor = float(np.median(ratios[-64:])) if len(ratios) else 1.0
        for scale, words in ((1.0, name), (factor, f"{name} x {factor:.4g}")):
            fit = float(is_right(behind * scale, came).mean())
            if fit > best_fit + 1e-9:
                best, best_fit = (ahead * scale, words), fit
    return best


def _models(
    runs: Sequence[Creations], seen: tuple[Ints, Ints], wanted: tuple[Ints, Ints]
) -> Iterator[tuple[str, Floats, Floats]]:
    behind, ahead = _rows(runs, *seen), _rows(runs, *wanted)
    law, _, _ = best_law(behind)
    yield law.name, law.follow(behind), law.follow(ahead)
    for back in range(1, len(runs) + 1):
        yield f"as {back} runs before" if back > 1 else "as in the previous run", behind[-back], ahead[-back]


def _beyond(sizes: Floats, runs: Sequence[Creations], so_far: Creations, ranks: Ints) -> Floats:
    """Fill in what no earlier run had: the longest run, which may be the current one, continues by its own law."""
    gaps = np.isnan(sizes)
    if not gaps.any():
        return sizes
    known = max(runs[-2:], key=len)
    filled = sizes.copy()
    law = max(laws(known), key=lambda law: law.share)
    if law.share < 0:
        return sizes
    longest = known if len(so_far) <= len(known) else so_far
    going_on = continued(longest, ranks[gaps], law)
    # If this run is larger than that one by a factor, so are its later creations.
    last = np.flatnonzero(~gaps)
    if len(last) and len(so_far) <= len(known):
        before = known.at(ranks[last], nth_of_rank(ranks, so_far)[last])
        with np.errstate(all="ignore"):
            ratios = sizes[last] / before
        ratios = ratios[np.isfinite(ratios) & (ratios > 0)]
        going_on = going_on * (np.median(ratios) if len(ratios) else 1.0)
    filled[gaps] = going_on
    return filled


PREDICTORS = (
    Predictor("run_law", "runs are equal, alternate, grow by a factor or step, or get longer", 4, _predict),
)
