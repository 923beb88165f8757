"""Runs that are repeated day by day: the next one takes the median of the last seven."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vani.schema.history import Daily

__all__ = ["LAST", "daily_runs", "ratios_to_last"]

LAST: Final = 7
"""Runs of which the median is taken: a week of a daily benchmark."""
_LEAST_RATIOS: Final = 10
"""Fewer say nothing about nine of ten (ours)."""
_INTERVAL: Final = (0.05, 0.95)

Floats = NDArray[np.float64]


def ratios_to_last(seconds: Floats) -> Floats:
    """Each run's time over the median of the `LAST` before it; shape (runs - LAST,)."""
    return np.array([seconds[n] / np.median(seconds[n - LAST : n]) for n in range(LAST, len(seconds))])


def daily_runs(rows: Iterable[tuple[str, int, str, float, float | None]]) -> list[Daily]:
    """Hold the latest run of each series against the seven before it, and predict the next.

    Parameters
    ----------
    rows
        User, processes, mount, start, and seconds of the slowest process in I/O calls; the oldest first.

    Returns
    -------
    list of Daily
        Of series of more than seven runs, the longest first.
    """
    series: dict[tuple[str, int, str], list[tuple[float, float]]] = {}
    for user, processes, mount, start, seconds in rows:
        if seconds:
            series.setdefault((user, processes, mount), []).append((start, seconds))
    known = [_of(*key, runs) for key, runs in series.items() if len(runs) > LAST]
    return sorted(known, key=lambda daily: (-daily.runs, daily.user, daily.processes, daily.mount))


def _of(user: str, processes: int, mount: str, runs: list[tuple[float, float]]) -> Daily:
    seconds = np.array([time for _, time in runs])
    *before, last = ratios_to_last(seconds).tolist()
    low, high = np.quantile(before, _INTERVAL).tolist() if len(before) >= _LEAST_RATIOS else (None, None)
    return Daily(
        user=user,
        processes=processes,
        mount=mount,
        runs=len(runs),
        at=runs[-1][0],
        last_s=float(seconds[-1]),
        usual_s=float(np.median(seconds[-1 - LAST : -1])),
        low=low,
        high=high,
        verdict="unknown" if low is None else "slower" if last > high else "faster" if last < low else "usual",
        next_s=float(np.median(seconds[-LAST:])),
    )
