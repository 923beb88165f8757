"""Implements `vani history daily`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.centre.history.api.show import nothing_found
from vani.centre.history.daily import COLUMNS, daily_runs
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.schema.settings import PathLike

if TYPE_CHECKING:
    from vani.centre.history.schema import Daily

def history_daily(application: str, user: str | None = None, *, db: PathLike | None = None) -> list[Daily]:
    """Compare the latest run of a repeated benchmark with the median of the seven before it.

    Parameters
    ----------
    user
        User who ran them; None: all users.
    db
        As in `history_add`.

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
    with Store(db).reading() as connection:
        rows = read.figures_of(connection, COLUMNS, application, user)
        if not rows:
            pairs = [group.pair for group in read.groups(connection, "pair", read.Period())]
            raise nothing_found(application, user, pairs)
    return daily_runs(rows)
