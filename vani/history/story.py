"""The story of one application: its trend, its spread, when its behaviour changed, its worst run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from vani.database.runs.run import Run
from vani.schema.history import Behaviour, Category, Month, Saved, Spread, Story, WorstRun

__all__ = ["CategoryRuns", "category_runs", "story"]

_LEAST_RUNS: Final = 5
"""On either side of a change."""
_LEAST_RATIO: Final = 1.5
"""Medians that differ by less are the same behaviour."""
_NOISE: Final = 3.0
"""Times the spread within either side that medians must differ by."""
Floats = NDArray[np.float64]
Figure = Literal["bytes", "in_io_s", "waiting_s"]


@dataclass(frozen=True)
class CategoryRuns:
    """Figures of runs of one user with one number of processes, the oldest first; what is not known is NaN.

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
        """When the last run began; -inf where no run's time is known."""
        return float(np.nanmax(self.submitted, initial=-np.inf))


def category_runs(user: str, processes: int, rows: Sequence[Sequence[float | None]]) -> CategoryRuns:
    """Arrays of the rows that `category_figures` reads."""
    columns = np.array(rows, np.float64).reshape(-1, 6).T
    submitted, runtime_s, in_io_s, waiting_s, read, written = columns
    moved = np.nan_to_num(read) + np.nan_to_num(written)
    return CategoryRuns(user, processes, submitted, runtime_s, in_io_s, waiting_s, moved)


def story(
    application: str,
    user: str | None,
    categories: Sequence[CategoryRuns],
    *,
    worst: Run | None,
    saved: Saved | None,
    lines: Sequence[str],
    paths: Sequence[str],
) -> Story:
    """Summarise the runs of an application.

    Parameters
    ----------
    worst
        The run that cost most.
    saved, lines
        What could be saved, and what to paste for it.
    paths
        Files of the run that cost most.
    """
    return Story(
        application=application,
        user=user,
        **_costs(categories),
        months=_months(categories),
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


def _sums(some: CategoryRuns) -> dict[str, Floats]:
    """Parts of each run in the costs."""
    return {
        "runs": np.ones(len(some.submitted)),
        "core_s": some.processes * np.nan_to_num(some.runtime_s),
        "in_io_s": np.nan_to_num(some.in_io_s),
        "waiting_s": np.nan_to_num(some.waiting_s),
    }


def _costs(categories: Sequence[CategoryRuns]) -> dict[str, Any]:
    sums = [_sums(some) for some in categories]
    costs = {name: sum(float(own[name].sum()) for own in sums) for name in ("core_s", "in_io_s", "waiting_s")}
    return {"runs": sum(len(some.submitted) for some in categories), **costs}


def _months(categories: Sequence[CategoryRuns]) -> list[Month]:
    if not categories:
        return []
    submitted = np.concatenate([some.submitted for some in categories])
    timed = ~np.isnan(submitted)
    months, places = np.unique(
        submitted[timed].astype("datetime64[s]").astype("datetime64[M]").astype(np.int64), return_inverse=True
    )
    sums = [_sums(some) for some in categories]
    totals = {
        name: np.bincount(places, np.concatenate([own[name] for own in sums])[timed], minlength=len(months)).tolist()
        for name in ("runs", "core_s", "in_io_s", "waiting_s")
    }
    return [
        Month(
            month=str(np.datetime64(month, "M")),
            runs=int(totals["runs"][at]),
            core_s=totals["core_s"][at],
            in_io_s=totals["in_io_s"][at],
            waiting_s=totals["waiting_s"][at],
        )
        for at, month in enumerate(months.tolist())
    ]


def _spread(values: Floats) -> Spread | None:
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    return Spread(least=float(known.min()), median=float(np.median(known)), most=float(known.max()))


def _changes(some: CategoryRuns) -> list[Behaviour]:
    timed = ~np.isnan(some.submitted)
    submitted = some.submitted[timed]
    figures: dict[Figure, Floats] = {"bytes": some.moved, "in_io_s": some.in_io_s, "waiting_s": some.waiting_s}
    changes = []
    for figure, values in figures.items():
        numbers = np.nan_to_num(values[timed])
        at = _change(numbers)
        if at is not None:
            changes.append(
                Behaviour(
                    user=some.user,
                    processes=some.processes,
                    at=float(submitted[at]),
                    figure=figure,
                    before=float(np.median(numbers[:at])),
                    after=float(np.median(numbers[at:])),
                )
            )
    return changes


def _change(values: Floats) -> int | None:
    """The place where the values before and after differ most for their spread; None where they do not."""
    if len(values) < 2 * _LEAST_RUNS:
        return None
    logs = np.log(np.maximum(values, 1e-9))
    places = np.arange(_LEAST_RUNS, len(logs) - _LEAST_RUNS + 1)
    # Means of both sides for every place at once; that place is then tested with medians.
    sums = np.concatenate([[0.0], np.cumsum(logs)])
    before, after = sums[places] / places, (sums[-1] - sums[places]) / (len(logs) - places)
    weight = places * (len(logs) - places) / len(logs)
    at = int(places[np.argmax(weight * (before - after) ** 2)])
    left, right = logs[:at], logs[at:]
    apart = abs(float(np.median(left) - np.median(right)))
    if apart < np.log(_LEAST_RATIO):
        return None
    return at if apart >= _NOISE * max(_deviation(left), _deviation(right)) else None


def _deviation(values: Floats) -> float:
    return float(np.median(np.abs(values - np.median(values))))
