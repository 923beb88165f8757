"""Whether a change helped: the waiting of runs before and after a letter or a change, per category.

A category is application, user and number of processes. The saving is the number of runs after the change times the
difference between the mean waiting per run before and after. Its interval is that of the difference of two means,
by bootstrap. Runs that move different amounts of data since the change are no evidence, and are not part of the
sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vani.centre.history.schema import CategoryOutcome, Outcome, Promise
from vani.centre.history.story import CategoryRuns

BEFORE_DAYS: Final = 90
"""Older runs say little about what would have happened without the change."""
_DAY_S: Final = 86400
_LEAST_RUNS: Final = 5
_OTHER_AMOUNTS: Final = 1.5
"""Ratio between medians of bytes beyond which amounts differ; the same as for a change of behaviour."""
_DRAWS: Final = 2000
_MANY: Final = 400
"""Number of runs above which the mean is practically normal, and is drawn from a normal distribution."""
_ENDS: Final = (5, 95)

Floats = NDArray[np.float64]


def outcome(
    application: str,
    user: str | None,
    categories: Sequence[CategoryRuns],
    at: float,
    *,
    until: float | None = None,
    promise: Promise | None = None,
) -> Outcome:
    """Compare runs before and after a point in time.

    Parameters
    ----------
    at
        Time of the letter or the change, in seconds since 1970.
    until
        End of the period after it, such as the next letter; None: no end.
    promise
        Promise of the letter.
    """
    random = np.random.default_rng(0)
    some, drawn = [], np.zeros(_DRAWS)
    for category in categories:
        entry, differences = _category(category, at, until, random)
        some.append(entry)
        drawn += differences
    known = [entry for entry in some if entry.saved_s is not None]
    low, high = np.percentile(drawn, _ENDS).tolist() if known else (None, None)
    return Outcome(
        application=application,
        user=user,
        at=at,
        promise=promise,
        categories=sorted(some, key=lambda entry: (-abs(entry.saved_s or 0.0), entry.user, entry.processes)),
        saved_s=sum(entry.saved_s or 0.0 for entry in known) if known else None,
        low_s=low,
        high_s=high,
        before_s=sum(entry.runs_after * (entry.before_s or 0.0) for entry in known) if known else None,
    )


def _category(
    runs: CategoryRuns, at: float, until: float | None, random: np.random.Generator
) -> tuple[CategoryOutcome, Floats]:
    """The comparison of one category, and draws of its saving, shape (draws,); zeros if it has none."""
    known = ~np.isnan(runs.waiting_s)
    before = known & (runs.submitted >= at - BEFORE_DAYS * _DAY_S) & (runs.submitted < at)
    after = known & (runs.submitted >= at) & (runs.submitted < (np.inf if until is None else until))
    old, new = runs.waiting_s[before], runs.waiting_s[after]
    few = min(len(old), len(new)) < _LEAST_RUNS
    if few or _is_other(runs.moved[before], runs.moved[after]):
        unknown = CategoryOutcome(
            user=runs.user, processes=runs.processes, runs_before=len(old), runs_after=len(new), before_s=_mean(old),
            after_s=_mean(new), saved_s=None, low_s=None, high_s=None,
            verdict="too_few_runs" if few else "other_amounts",
        )  # fmt: skip
        return unknown, np.zeros(_DRAWS)
    differences = len(new) * (_means(old, random) - _means(new, random))
    low, high = np.percentile(differences, _ENDS).tolist()
    saved = len(new) * (float(old.mean()) - float(new.mean()))
    entry = CategoryOutcome(
        user=runs.user, processes=runs.processes, runs_before=len(old), runs_after=len(new), before_s=_mean(old),
        after_s=_mean(new), saved_s=saved, low_s=low, high_s=high,
        verdict="less" if low > 0 else "more" if high < 0 else "no_difference",
    )  # fmt: skip
    return entry, differences


def _is_other(before: Floats, after: Floats) -> bool:
    """Whether runs move different amounts of data than before."""
    medians = float(np.median(before)), float(np.median(after))
    return max(medians) > _OTHER_AMOUNTS * max(min(medians), 1.0)


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


def _means(values: Floats, random: np.random.Generator) -> Floats:
    """Means of values drawn again from these, shape (draws,)."""
    if len(values) > _MANY:
        return random.normal(values.mean(), values.std(ddof=1) / np.sqrt(len(values)), _DRAWS)
    drawn: Floats = values[random.integers(len(values), size=(_DRAWS, len(values)))].mean(axis=1)
    return drawn
