"""How runs follow one another: equal, in turn, by a constant factor or step, longer.

Of a run that has so_far, the beginning tells which of the runs before, or which law, it follows, and by which factor it
is larger.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from vani.history.creations.continuation import continued, laws
from vani.history.creations.growth import expected_count, expected_ranks
from vani.history.creations.run_laws import best_law
from vani.history.creations.series import Creations, Floats, Foreseen, Ints, is_right, nth_of_rank

NAME: Final = "run_law"
ABOUT: Final = "runs are equal, come in turn, grow by a factor or step, get longer"
ORDER: Final = 4
COSTLY: Final = False

_RUNS: Final = 8
"""The last runs, among which the law is looked for."""
_SEEN: Final = 4096
"""The last creations of a beginning, by which it is recognised."""


def predict(past: Sequence[Creations], so_far: Creations, count: int | None) -> Foreseen:
    """Take the law that held best among the last runs, or that fits what has begun."""
    ranks = expected_ranks(past, so_far, count)
    runs = [run for run in past[-_RUNS:] if len(run)]
    if not runs:
        return Foreseen(np.full(len(ranks), np.nan), ranks)
    nth = nth_of_rank(ranks, so_far)
    law, _, _ = best_law(_rows(runs, runs[-1].ranks, runs[-1].nth))
    if not len(so_far):
        sizes = law.follow(_rows(runs, ranks, nth))
        told = law.name
    else:
        sizes, told = _recognised(runs, so_far, ranks, nth)
    sizes = _beyond(sizes, runs, so_far, ranks)
    longer = "" if count is not None or len(past) < 2 else expected_count(past)[1]
    return Foreseen(sizes, ranks, told + (f", number {longer}" if longer not in ("", "equal") else ""))


def _rows(runs: Sequence[Creations], ranks: Ints, nth: Ints) -> list[Floats]:
    return [run.at(ranks, nth) for run in runs]


def _recognised(runs: Sequence[Creations], so_far: Creations, ranks: Ints, nth: Ints) -> tuple[Floats, str]:
    """Sizes by what fits the beginning best: a run of the past, or the law, as it is or by a factor."""
    cut = max(0, len(so_far) - _SEEN)
    seen, came = so_far.ranks[cut:], so_far.values[cut:]
    best, fits = (np.full(len(ranks), np.nan), ""), -1.0
    for name, there, ahead in _models(runs, (seen, so_far.nth[cut:]), (ranks, nth)):
        with np.errstate(all="ignore"):
            ratios = came / there
        ratios = ratios[np.isfinite(ratios) & (ratios > 0)]
        factor = float(np.median(ratios[-64:])) if len(ratios) else 1.0
        for scaled, words in ((1.0, name), (factor, f"{name} x {factor:.4g}")):
            fit = float(is_right(there * scaled, came).mean())
            if fit > fits + 1e-9:
                best, fits = (ahead * scaled, words), fit
    return best


def _models(
    runs: Sequence[Creations], seen: tuple[Ints, Ints], asked: tuple[Ints, Ints]
) -> Iterator[tuple[str, Floats, Floats]]:
    behind, ahead = _rows(runs, *seen), _rows(runs, *asked)
    law, _, _ = best_law(behind)
    yield law.name, law.follow(behind), law.follow(ahead)
    for back in range(1, len(runs) + 1):
        yield f"as {back} runs before" if back > 1 else "as the run before", behind[-back], ahead[-back]


def _beyond(sizes: Floats, runs: Sequence[Creations], so_far: Creations, ranks: Ints) -> Floats:
    """Fill what no run before had: the longest one, or what has begun where that is longer, goes on by its own law."""
    gaps = np.isnan(sizes)
    if not gaps.any():
        return sizes
    known = max(runs[-2:], key=len)
    filled = sizes.copy()
    law = max(laws(known), key=lambda one: one.share)
    if law.share < 0:
        return sizes
    before = known if len(so_far) <= len(known) else so_far
    going_on = continued(before, ranks[gaps], law)
    # Where this run is larger than that one by a factor, so is what follows.
    last = np.flatnonzero(~gaps)
    if len(last) and len(so_far) <= len(known):
        mine, theirs = sizes[last], known.at(ranks[last], nth_of_rank(ranks, so_far)[last])
        with np.errstate(all="ignore"):
            ratios = mine / theirs
        ratios = ratios[np.isfinite(ratios) & (ratios > 0)]
        going_on = going_on * (np.median(ratios) if len(ratios) else 1.0)
    filled[gaps] = going_on
    return filled
