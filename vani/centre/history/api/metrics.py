"""Implements `vani history metrics`."""

from __future__ import annotations

from vani.centre.history.metrics import metrics
from vani.centre.history.ranking import ranking
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.history.saved import shares
from vani.centre.history.targets import ranked_targets
from vani.errors import InputError
from vani.schema.settings import PathLike

_DAY_S = 86400


def history_metrics(*, db: PathLike | None = None, days: int = 30, limit: int = 20) -> str:
    """Format figures of a history as OpenMetrics text.

    Parameters
    ----------
    db
        As in `history_add`.
    days
        Number of days before the last run from which pairs and storage targets are included.
    limit
        Maximum number of application and user pairs, by possible savings, and of storage targets, by losses.

    Raises
    ------
    InputError
        There is no history, or the number of days is invalid.
    """
    if not 1 <= days <= 3650:
        raise InputError(f"is {days:,}", where="--days", todo="give 1 to 3650")
    with Store(db).reading() as connection:
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
