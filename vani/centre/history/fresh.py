"""News of the week: users with their first runs, and users whose runs wait longer than in the four weeks before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from vani.centre.history.runs.read import Group

WEEKS_BEFORE: Final = 4
_LEAST_RUNS: Final = 5
"""Minimum number of runs in either period; the same as for a change of behaviour."""
_LEAST_RATIO: Final = 1.5
_LITTLE: Final = 0.001
"""Share of all waiting since Monday below which there is no news."""


@dataclass(frozen=True)
class FreshPair:
    """A pair of application and user that ran for the first time; costs in seconds, as in `Costs`."""

    application: str
    user: str
    first: float
    runs: int
    in_io_s: float
    waiting_s: float


@dataclass(frozen=True)
class SlowerCategory:
    """Runs that wait longer: mean core-seconds per run, in the four weeks before and since."""

    application: str
    user: str
    processes: int
    runs: int
    before_s: float
    after_s: float


@dataclass(frozen=True)
class News:
    """News since a point in time.

    Attributes
    ----------
    since
        Seconds since 1970.
    runs
        Number of runs that started since.
    last
        Start of the very last run; None if unknown.
    """

    since: float
    runs: int
    last: float | None
    pairs: list[FreshPair]
    slower: list[SlowerCategory]


def last_monday(now: datetime) -> float:
    """Beginning of the last Monday before today (UTC); on a Monday, that of the week before."""
    today = datetime(now.year, now.month, now.day, tzinfo=UTC)
    return (today - timedelta(days=(today.weekday() - 1) % 7 + 1)).timestamp()


def news(
    since: float,
    last: float | None,
    new_pairs: Sequence[tuple[Group, float]],
    before: Sequence[Group],
    after: Sequence[Group],
) -> News:
    """Compare the runs since a Monday with those before.

    Parameters
    ----------
    new_pairs
        Pairs with the time of their first run.
    before, after
        Groups by category (application, user, processes), in the four weeks before and since.
    """
    pairs = [
        FreshPair(*group.pair, first, group.runs, group.in_io_s, group.waiting_s) for group, first in new_pairs
    ]
    earlier = {group.names: group for group in before}
    least = _LITTLE * sum(group.waiting_s for group in after)
    slower = []
    for group in after:
        old = earlier.get(group.names)
        if old is None or min(old.runs, group.runs) < _LEAST_RUNS:
            continue
        before_s, after_s = old.waiting_s / old.runs, group.waiting_s / group.runs
        lost = group.runs * (after_s - before_s)
        if after_s >= _LEAST_RATIO * before_s and lost > least:
            slower.append((lost, SlowerCategory(*group.pair, int(group.names[2]), group.runs, before_s, after_s)))
    return News(
        since=since,
        runs=sum(group.runs for group in after),
        last=last,
        pairs=sorted(pairs, key=lambda pair: (-pair.waiting_s, pair.application, pair.user)),
        slower=[
            category
            for _, category in sorted(slower, key=lambda entry: (-entry[0], entry[1].application, entry[1].user))
        ],
    )
