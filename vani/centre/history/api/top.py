"""Implements `vani history top`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from vani.centre.history.days import period_of
from vani.centre.history.ranking import ranking
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.history.saved import shares
from vani.errors import InputError
from vani.schema.settings import PathLike

if TYPE_CHECKING:
    from vani.centre.history.schema import Ranking

def history_top(
    *,
    db: PathLike | None = None,
    by: Literal["pair", "user", "app", "category", "file-system", "account", "qos"] = "pair",
    since: str | None = None,
    until: str | None = None,
    limit: int = 20,
    settings: bool = False,
) -> Ranking:
    """Rank users and applications by lost time, with the setting that would save most, without reading logs.

    Parameters
    ----------
    db
        As in `history_add`.
    by
        What to rank; `account` and `qos` come from jobs that `history_import` read.
    since, until
        The first and the last day of the runs, as YYYY-MM-DD or YYYY-MM, in UTC.
    limit
        Maximum number of rows.
    settings
        Also list settings, and the users each would help.

    Raises
    ------
    InputError
        There is no history, or a day is invalid.
    """
    if not 1 <= limit <= 1_000_000:
        raise InputError(f"is {limit:,}", where="--limit", todo="give 1 or more")
    period = period_of(since, until)
    with Store(db).reading() as connection:
        return ranking(
            read.groups(connection, by, period),
            read.whole(connection, period),
            shares(read.verdicts(connection)),
            by=by,
            period=period,
            limit=limit,
            damaged=read.count_damaged(connection),
            settings=settings,
        )
