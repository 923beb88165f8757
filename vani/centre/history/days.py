"""Days and months as written by people, in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from vani.centre.history.runs.read import Period
from vani.errors import InputError, one_line

_DAY = re.compile(r"(\d{4})-(\d{2})(?:-(\d{2}))?")


def period_of(since: str | None, until: str | None) -> Period:
    """The period from the beginning of one day or month to the end of another; None leaves it open.

    Raises
    ------
    InputError
        A text is not a day or month, or the end is before the beginning.
    """
    begin = None if since is None else _day(since, "--since")[0]
    end = None if until is None else _day(until, "--until")[1]
    if begin is not None and end is not None and end <= begin:
        raise InputError(f"{until} is before --since {since}", where="--until", todo="name a later day")
    return Period(begin, end)


def begin_of(day: str, option: str) -> float:
    """Beginning of the day or month in an option, in seconds since 1970.

    Raises
    ------
    InputError
        The text is not a day or month.
    """
    return _day(day, option)[0]


def _day(text: str, option: str) -> tuple[float, float]:
    """Begin and end in seconds since 1970."""
    match = _DAY.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        year, month = int(match[1]), int(match[2])
        begin = datetime(year, month, int(match[3] or 1), tzinfo=UTC)
        end = (
            begin + timedelta(days=1)
            if match[3]
            else datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
        )
    except (ValueError, OverflowError):
        raise InputError(
            f"{one_line(text)!r} is not a day", where=option, todo="write YYYY-MM-DD or YYYY-MM"
        ) from None
    return begin.timestamp(), end.timestamp()
