"""The story of one application: its trend, its spread, when its behaviour changed, its worst run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from vani.database.runs.run import Run
from vani.schema.history import Behaviour, Category, Month, Saved, Spread, Story, WorstRun

__all__ = ["story"]

_LEAST_RUNS: Final = 5
"""On either side of a change."""
_LEAST_RATIO: Final = 1.5
"""Medians that differ by less are the same behaviour."""
_NOISE: Final = 3.0
"""Times the spread within either side that medians must differ by."""
Floats = NDArray[np.float64]
Figure = Literal["bytes", "in_io_s", "waiting_s"]


def story(
    application: str,
    user: str | None,
    runs: Sequence[Run],
    *,
    saved: Saved | None,
    lines: Sequence[str],
    paths: Sequence[str],
) -> Story:
    """Summarise runs in order of time.

    Parameters
    ----------
    saved, lines
        What could be saved, and what to paste for it.
    paths
        Files of the run that cost most.
    """
    worst = worst_of(runs)
    categories: dict[tuple[str, int], list[Run]] = {}
    for run in runs:
        categories.setdefault((run.user, run.processes), []).append(run)
    return Story(
        application=application,
        user=user,
        **_costs(runs),
        months=_months(runs),
        categories=sorted(
            (
                Category(
                    user=whose,
                    processes=processes,
                    runs=len(some),
                    in_io_s=_spread([run.in_io_s for run in some]),
                    waiting_s=_spread([run.waiting_s for run in some]),
                )
                for (whose, processes), some in categories.items()
            ),
            key=lambda category: (-category.runs, category.user, category.processes),
        ),
        changes=sorted(
            (change for (whose, n), some in categories.items() for change in _changes(whose, n, some)),
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


def worst_of(runs: Sequence[Run]) -> Run | None:
    """The run that cost most."""
    return max(runs, key=lambda run: (run.waiting_s or 0.0, run.in_io_s or 0.0, run.digest), default=None)


def _costs(runs: Sequence[Run]) -> dict[str, Any]:
    return {
        "runs": len(runs),
        "core_s": sum(run.processes * (run.runtime_s or 0.0) for run in runs),
        "in_io_s": sum(run.in_io_s or 0.0 for run in runs),
        "waiting_s": sum(run.waiting_s or 0.0 for run in runs),
    }


def _months(runs: Sequence[Run]) -> list[Month]:
    by_month: dict[str, list[Run]] = {}
    for run in runs:
        if run.submitted is not None:
            month = datetime.fromtimestamp(run.submitted, UTC).strftime("%Y-%m")
            by_month.setdefault(month, []).append(run)
    return [Month(month=month, **_costs(some)) for month, some in sorted(by_month.items())]


def _spread(values: Sequence[float | None]) -> Spread | None:
    known = np.array([value for value in values if value is not None], np.float64)
    if not len(known):
        return None
    return Spread(least=float(known.min()), median=float(np.median(known)), most=float(known.max()))


def _changes(user: str, processes: int, runs: Sequence[Run]) -> list[Behaviour]:
    timed = [run for run in runs if run.submitted is not None]
    figures: dict[Figure, list[float | None]] = {
        "bytes": [(run.bytes_read or 0) + (run.bytes_written or 0) for run in timed],
        "in_io_s": [run.in_io_s for run in timed],
        "waiting_s": [run.waiting_s for run in timed],
    }
    changes = []
    for figure, values in figures.items():
        numbers = np.array([value or 0.0 for value in values], np.float64)
        at = _change(numbers)
        if at is not None:
            changes.append(
                Behaviour(
                    user=user,
                    processes=processes,
                    at=timed[at].submitted or 0.0,
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
    noise = max(_deviation(left), _deviation(right))
    return at if apart >= np.log(_LEAST_RATIO) and apart >= _NOISE * noise else None


def _deviation(values: Floats) -> float:
    return float(np.median(np.abs(values - np.median(values))))
