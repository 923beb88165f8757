"""News of a week: users with their first runs, and users with runs that wait longer than in the four weeks before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from vani.database.runs.read import Group

__all__ = ["WEEKS_BEFORE", "FreshPair", "News", "SlowerCategory", "last_monday", "news"]

WEEKS_BEFORE: Final = 4
_LEAST_RUNS: Final = 5
"""In either time; the same as of a change of behaviour."""
_LEAST_RATIO: Final = 1.5
_LITTLE: Final = 0.001
"""Share of all waiting since Monday: less is no news."""


@dataclass(frozen=True)
class FreshPair:
    """Application and user who ran for the first time; costs in seconds, as of `Costs`."""

    application: str
    user: str
    first: float
    runs: int
    in_io_s: float
    waiting_s: float


@dataclass(frozen=True)
class SlowerCategory:
    """Runs that wait longer: mean core-seconds of a run, in the four weeks before and since."""

    application: str
    user: str
    processes: int
    runs: int
    before_s: float
    after_s: float


@dataclass(frozen=True)
class News:
    """News since a moment.

    Attributes
    ----------
    since
        Seconds since 1970.
    runs
        That began since.
    last
        When the last run of all began; None where that is not known.
    """

    since: float
    runs: int
    last: float | None
    pairs: list[FreshPair]
    slower: list[SlowerCategory]


def last_monday(now: datetime) -> float:
    """The beginning of the last Monday before today (UTC): on a Monday, that of the week before."""
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
        Pairs with the moment of their first run.
    before, after
        Groups by category (application, user, processes) of the four weeks before, and since.
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
