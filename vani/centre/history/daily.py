"""Runs that are repeated daily: the next one is expected to take the median of the last seven.

A series contains one user's runs with one number of processes on one file system, whose bytes and metadata
operations agree within a factor of 1.2. So the writes and the reads of a nightly benchmark are two series.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import click
import numpy as np

from vani.centre.columns import Floats
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.history.schema import Daily
from vani.centre.history.settings import HistorySettings
from vani.centre.history.story import unknown_runs
from vani.centre.prediction.behaviour.clustering import behaviour_ids
from vani.centre.write_time.samples import ENOUGH, nine_of_ten
from vani.cli.options import settings_options
from vani.errors import one_line
from vani.render.table import table
from vani.units import format_seconds

LAST: Final = 7
"""Number of runs in the median: a week of a daily benchmark."""
COLUMNS: Final = (
    "user", "processes", "mount", "submitted", "slowest_s", "bytes_read", "bytes_written", "metadata",
)  # fmt: skip
"""Columns of each run; times are the slowest process's seconds in I/O calls."""



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
        user=user, processes=processes, mount=mount, bytes_read=read or 0, bytes_written=written or 0,
        runs=len(runs), at=at, last_s=last_s, usual_s=usual_s, low=low, high=high,
        verdict="slower" if ratio > high else "faster" if ratio < low else "usual",
        next_s=float(np.median(seconds[-LAST:])),
    )  # fmt: skip


def daily_text(application: str, series: Sequence[Daily]) -> str:
    """Write a row for each series."""
    if not series:
        return f"{one_line(application)}: no combination of user, processes and file system has eight runs or more\n"
    head = ("user", "processes", "mount", "runs", "latest", "took", "seven before", "usual is", "", "next")
    rows = [
        (
            one_line(daily.user), f"{daily.processes:,}", one_line(daily.mount), f"{daily.runs:,}",
            f"{datetime.fromtimestamp(daily.at, UTC):%Y-%m-%d}", format_seconds(daily.last_s),
            format_seconds(daily.usual_s), "unknown" if daily.low is None or daily.high is None
            else f"{format_seconds(daily.low * daily.usual_s)} to {format_seconds(daily.high * daily.usual_s)}",
            daily.verdict.upper() if daily.verdict == "slower" else daily.verdict, format_seconds(daily.next_s),
        )
        for daily in series
    ]
    title = one_line(application)
    return "\n".join([title, *table(head, rows, left=(), all_rows=True)]) + "\n"


def history_daily(
    application: str, user: str | None = None, settings: HistorySettings | None = None, **fields: Any
) -> list[Daily]:
    """Compare the latest run of a repeated benchmark with the median of the seven before it.

    Parameters
    ----------
    user
        User who ran them; None: all users.

    Returns
    -------
    list of Daily
        One for each combination of user, number of processes, file system and amount with more than seven runs, the
        longest series first.

    Raises
    ------
    InputError
        There is no history, or it contains no such run.
    """
    with Store(HistorySettings.of(settings, **fields).db).reading() as connection:
        rows = read.figures_of(connection, COLUMNS, application, user)
        if not rows:
            raise unknown_runs(connection, application, user)
    return daily_runs(rows)


@click.command("daily")
@click.argument("application", metavar="APP")
@click.argument("user", required=False)
@settings_options(HistorySettings)
@click.pass_context
def command(ctx: click.Context, application: str, user: str | None, settings: HistorySettings) -> None:
    """Compare the latest run of a daily benchmark with the median of the seven before it.

    APP runs repeatedly with the same input; runs that move other amounts are a separate series. Times are the
    slowest process's time in I/O calls. The usual range covers nine of ten earlier runs, each relative to the median
    of the seven before it. The expected time of the next run is the median of the last seven. Exit status: 0 no
    series is slower than usual, 1 a series is slower, 2 no series has eight runs, or bad input.
    """
    series = history_daily(application, user, settings)
    click.echo(daily_text(application, series), nl=False)
    ctx.exit(1 if any(runs.verdict == "slower" for runs in series) else 0 if series else 2)
