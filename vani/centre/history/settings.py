"""Options that commands of `vani history` share, and days and months as written by people, in UTC."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import click
from pydantic import Field

from vani.centre.history.runs.read import Period
from vani.errors import InputError, one_line
from vani.schema.model import Model
from vani.schema.settings import Option, Settings
from vani.schema.syntax.json_text import json_text

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
    try:
        if (match := _DAY.fullmatch(text)) is None:
            raise ValueError
        year, month = int(match[1]), int(match[2])
        begin = datetime(year, month, int(match[3] or 1), tzinfo=UTC)
        end = (begin + timedelta(days=1) if match[3] else datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC))
    except (ValueError, OverflowError):
        raise InputError(f"{one_line(text)!r} is not a day", where=option, todo="write YYYY-MM-DD or YYYY-MM") from None
    return begin.timestamp(), end.timestamp()


class HistorySettings(Settings):
    """The history that a command reads."""

    db: Annotated[str | Path | None, Option(("--database",), "FILE|URL")] = Field(
        None,
        description="The history: a file or postgresql://...; by default VANI_HISTORY, else a file in your home.",
    )


class PeriodSettings(HistorySettings):
    """A history, and the days of its runs."""

    since: Annotated[str | None, Option(metavar="DAY")] = Field(
        None, description="First day of the runs: YYYY-MM-DD or YYYY-MM, in UTC."
    )
    until: Annotated[str | None, Option(metavar="DAY")] = Field(None, description="Last day or month of the runs.")

    @property
    def period(self) -> Period:
        """The period of these days.

        Raises
        ------
        InputError
            A text is not a day or month, or the end is before the beginning.
        """
        return period_of(self.since, self.until)


db_option = click.option("--database", "db", metavar="FILE|URL", help=HistorySettings.model_fields["db"].description)


def json_list(rows: Sequence[Model]) -> str:
    """Documents as one JSON list."""
    return json_text([row.model_dump() for row in rows], indent=2) + "\n"


def user_options(help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the user who runs the job, given as USER or as `--user NAME`, to a command as the parameter `user`."""

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_user(*args: Any, user: str | None, named: str | None, **others: Any) -> Any:
            if user is not None and named is not None and user != named:
                raise click.UsageError(f"USER is {user!r} and --user is {named!r}: give one of them")
            return command(*args, user=user if user is not None else named, **others)

        option = click.option("--user", "named", metavar="NAME", help=help)
        wrapped: Callable[..., Any] = click.argument("user", required=False)(option(with_user))
        return wrapped

    return decorated
