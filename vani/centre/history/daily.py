"""Runs that are repeated daily: the next one is expected to take the median of the last seven.

A series contains one user's runs with one number of processes on one file system, whose bytes and metadata
operations agree within a factor of 1.2. So the writes and the reads of a nightly benchmark are two series.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vani.centre.history.schema import Daily
from vani.centre.prediction.behaviour.clustering import behaviour_ids
from vani.centre.write_time.interval import ENOUGH, nine_of_ten

LAST: Final = 7
"""Number of runs in the median: a week of a daily benchmark."""
COLUMNS: Final = (
    "user", "processes", "mount", "submitted", "slowest_s", "bytes_read", "bytes_written", "metadata",
)  # fmt: skip
"""Columns of each run; times are the slowest process's seconds in I/O calls."""

Floats = NDArray[np.float64]


def ratios_to_last(seconds: Floats) -> Floats:
    """Each run's time divided by the median of the `LAST` runs before it; shape (runs - LAST,)."""
    return np.array([seconds[n] / np.median(seconds[n - LAST : n]) for n in range(LAST, len(seconds))])


def usual_range(seconds: Floats) -> tuple[float, float]:
    """Range of the next run's time over the median of the last seven, with a probability of 0.9.

    The range is how much earlier runs differed from the median of the seven before them; with fewer than 19 of
    these, how much the last seven differ from their own median.

    Parameters
    ----------
    seconds
        At least seven positive times, the oldest first, shape (runs,).
    """
    ratios = ratios_to_last(seconds)
    if len(ratios) < ENOUGH:
        ratios = seconds[-LAST:] / np.median(seconds[-LAST:])
    low, high = np.exp(nine_of_ten(np.log(ratios))).tolist()
    return min(low, 1.0), max(high, 1.0)


def daily_runs(rows: Sequence[Sequence[Any]]) -> list[Daily]:
    """Compare the latest run of each series with the seven before it, and predict the next.

    Parameters
    ----------
    rows
        The `COLUMNS` of each run, the oldest first.

    Returns
    -------
    list of Daily
        One for each series of more than seven runs, the longest series first.
    """
    timed = [row for row in rows if row[4]]
    places: dict[tuple[Any, ...], int] = {}
    category = np.array([places.setdefault(tuple(row[:3]), len(places)) for row in timed], np.int64)
    totals = np.array([[total or 0 for total in row[5:8]] for row in timed], np.float64).reshape(-1, 3)
    series: dict[tuple[int, int], list[Sequence[Any]]] = {}
    for place, kind, row in zip(category.tolist(), behaviour_ids(category, totals).tolist(), timed, strict=True):
        series.setdefault((place, kind), []).append(row)
    known = [_of(runs) for runs in series.values() if len(runs) > LAST]
    return sorted(known, key=lambda daily: (-daily.runs, daily.user, daily.processes, daily.mount))


def _of(runs: Sequence[Sequence[Any]]) -> Daily:
    user, processes, mount, at, last_s, read, written, _ = runs[-1]
    seconds = np.array([row[4] for row in runs], np.float64)
    usual_s = float(np.median(seconds[-1 - LAST : -1]))
    low, high = usual_range(seconds[:-1])
    ratio = last_s / usual_s
    return Daily(
        user=user,
        processes=processes,
        mount=mount,
        bytes_read=read or 0,
        bytes_written=written or 0,
        runs=len(runs),
        at=at,
        last_s=last_s,
        usual_s=usual_s,
        low=low,
        high=high,
        verdict="slower" if ratio > high else "faster" if ratio < low else "usual",
        next_s=float(np.median(seconds[-LAST:])),
    )
