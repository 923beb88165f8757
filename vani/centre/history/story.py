"""The story of one application: its trend, its spread, changes in its behaviour, and its worst run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from vani.centre.history.rows import StoredRun
from vani.centre.history.schema import Behaviour, Category, Month, Saved, Spread, Story, WorstRun

_LEAST_RUNS: Final = 5
"""Minimum number of runs on either side of a change."""
_LEAST_RATIO: Final = 1.5
"""Ratio of medians below which the behaviour is the same."""
_NOISE: Final = 3.0
"""Number of times the spread on either side by which medians must differ."""
Floats = NDArray[np.float64]
Figure = Literal["bytes", "in_io_s", "waiting_s"]


@dataclass(frozen=True)
class CategoryRuns:
    """Figures of one user's runs with one number of processes, the oldest first; unknown values are NaN.

    Attributes
    ----------
    submitted
        Seconds since 1970. All arrays have shape (runs,).
    runtime_s, in_io_s, waiting_s
        Seconds.
    moved
        Bytes.
    """

    user: str
    processes: int
    submitted: Floats
    runtime_s: Floats
    in_io_s: Floats
    waiting_s: Floats
    moved: Floats

    @property
    def latest(self) -> float:
        """Start of the last run; -inf if no start is known."""
        return float(np.nanmax(self.submitted, initial=-np.inf))


def story(
    application: str,
    user: str | None,
    categories: Sequence[CategoryRuns],
    *,
    worst: StoredRun | None,
    saved: Saved | None,
    lines: Sequence[str],
    paths: Sequence[str],
) -> Story:
    """Summarise the runs of an application.

    Parameters
    ----------
    worst
        The costliest run.
    saved, lines
        The possible saving, and the lines to paste for it.
    paths
        Files of the costliest run.
    """
    submitted, costs = np.concatenate([some.submitted for some in categories]), _costs(categories)
    return Story(
        application=application,
        user=user,
        runs=len(submitted),
        **{name: float(cost.sum()) for name, cost in costs.items()},
        months=_months(submitted, costs),
        categories=sorted(
            (
                Category(
                    user=some.user,
                    processes=some.processes,
                    runs=len(some.submitted),
                    in_io_s=_spread(some.in_io_s),
                    waiting_s=_spread(some.waiting_s),
                )
                for some in categories
            ),
            key=lambda category: (-category.runs, category.user, category.processes),
        ),
        changes=sorted(
            (change for some in categories for change in _changes(some)),
            key=lambda change: (change.at, change.figure),
        ),
        worst=None if worst is None else WorstRun(
            user=worst.user,
            processes=worst.processes,
            submitted=worst.submitted,
            runtime_s=worst.runtime_s,
            in_io_s=worst.in_io_s,
            waiting_s=worst.waiting_s,
            bytes_read=worst.bytes_read,
            bytes_written=worst.bytes_written,
            paths=list(paths),
        ),
        saved=saved,
        lines=list(lines),
    )  # fmt: skip


def _costs(categories: Sequence[CategoryRuns]) -> dict[str, Floats]:
    """Contributions of all categories' runs to the costs."""
    processes = np.repeat([some.processes for some in categories], [len(some.submitted) for some in categories])
    costs = {
        "core_s": processes * np.concatenate([some.runtime_s for some in categories]),
        "in_io_s": np.concatenate([some.in_io_s for some in categories]),
        "waiting_s": np.concatenate([some.waiting_s for some in categories]),
    }
    return {name: np.where(np.isnan(cost), 0.0, cost) for name, cost in costs.items()}


def _months(submitted: Floats, costs: dict[str, Floats]) -> list[Month]:
    timed = ~np.isnan(submitted)
    months, places = np.unique(
        submitted[timed].astype("datetime64[s]").astype("datetime64[M]").astype(np.int64), return_inverse=True
    )
    totals = {
        name: np.bincount(places, cost[timed], minlength=len(months)).tolist() for name, cost in costs.items()
    }
    return [
        Month(
            month=str(np.datetime64(month, "M")),
            runs=runs,
            core_s=totals["core_s"][at],
            in_io_s=totals["in_io_s"][at],
            waiting_s=totals["waiting_s"][at],
        )
        for at, (month, runs) in enumerate(zip(months.tolist(), np.bincount(places).tolist(), strict=True))
    ]


def _spread(values: Floats) -> Spread | None:
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    return Spread(least=float(known.min()), median=_median(known), most=float(known.max()))


def _median(values: Floats) -> float:
    """Median of known values, without the checks of numpy's median, which dominate for short arrays."""
    middle = len(values) // 2
    if len(values) % 2:
        return float(np.partition(values, middle)[middle])
    low, high = np.partition(values, (middle - 1, middle))[middle - 1 : middle + 1].tolist()
    return float((low + high) / 2)


def _changes(some: CategoryRuns) -> list[Behaviour]:
    timed = ~np.isnan(some.submitted)
    submitted = some.submitted[timed]
    if len(submitted) < 2 * _LEAST_RUNS:
        return []
    figures: dict[Figure, Floats] = {"bytes": some.moved, "in_io_s": some.in_io_s, "waiting_s": some.waiting_s}
    changes = []
    for figure, values in figures.items():
        numbers = values[timed]
        numbers[np.isnan(numbers)] = 0.0
        at = _change(numbers)
        if at is not None:
            changes.append(
                Behaviour(
                    user=some.user,
                    processes=some.processes,
                    at=float(submitted[at]),
                    figure=figure,
                    before=_median(numbers[:at]),
                    after=_median(numbers[at:]),
                )
            )
    return changes


def _change(values: Floats) -> int | None:
    """Index at which values before and after differ most relative to their spread; None if they do not differ."""
    logs = np.log(np.maximum(values, 1e-9))
    places = np.arange(_LEAST_RUNS, len(logs) - _LEAST_RUNS + 1)
    # Means on both sides for every index at once; the best index is then tested with medians.
    sums = np.concatenate([[0.0], np.cumsum(logs)])
    before, after = sums[places] / places, (sums[-1] - sums[places]) / (len(logs) - places)
    weight = places * (len(logs) - places) / len(logs)
    at = int(places[np.argmax(weight * (before - after) ** 2)])
    left, right = logs[:at], logs[at:]
    apart = abs(_median(left) - _median(right))
    if apart < np.log(_LEAST_RATIO):
        return None
    return at if apart >= _NOISE * max(_deviation(left), _deviation(right)) else None


def _deviation(values: Floats) -> float:
    return _median(np.abs(values - _median(values)))
