"""`vani history metrics` for programs."""

from __future__ import annotations

from vani.api.arguments import PathLike
from vani.database.runs import read
from vani.database.runs.connect import Store
from vani.errors import InputError
from vani.history.contents import default_place
from vani.history.metrics import metrics
from vani.history.ranking import ranking
from vani.history.saved import shares
from vani.history.targets import ranked_targets

__all__ = ["history_metrics"]

_DAY_S = 86400


def history_metrics(*, db: PathLike | None = None, days: int = 30, limit: int = 20) -> str:
    """Write figures of a history in OpenMetrics' text format.

    Parameters
    ----------
    db
        As in `history_add`.
    days
        The last days before the last run, whose pairs and storage targets are written.
    limit
        Pairs of application and user, those that could save most first; and storage targets, those that lose most.

    Raises
    ------
    InputError
        There is no history, or no such number of days.
    """
    if not 1 <= days <= 3650:
        raise InputError(f"is {days:,}", where="--days", todo="give 1 to 3650")
    with Store(db if db is not None else default_place()).reading() as connection:
        whole = read.whole(connection, read.ALWAYS)
        last = 0.0 if whole.last is None else whole.last
        period = read.Period((last // _DAY_S + 1 - days) * _DAY_S, None)
        known, damaged = shares(read.verdicts(connection)), read.count_damaged(connection)
        recent = ranking(
            read.groups(connection, "pair", period), read.whole(connection, period), known,
            by="pair", period=period, limit=limit, damaged=damaged,
        )  # fmt: skip
        always = ranking([], whole, known, by="pair", period=read.ALWAYS, limit=1, damaged=damaged)
        targets = ranked_targets(read.target_times(connection, period))
    return metrics(always, recent, targets[:limit])
