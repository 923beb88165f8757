"""What a history holds, month by month."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from vani.database.runs import read
from vani.schema.history import Kept, KeptMonth

if TYPE_CHECKING:
    import sqlalchemy as sa

__all__ = ["kept"]


def kept(connection: sa.Connection, place: str, damaged: int) -> Kept:
    """Count what is there."""
    by_month: dict[str, tuple[int, set[str]]] = {}
    for submitted, user in read.moments(connection):
        month = "" if submitted is None else datetime.fromtimestamp(submitted, UTC).strftime("%Y-%m")
        runs, users = by_month.get(month, (0, set()))
        users.add(user)
        by_month[month] = (runs + 1, users)
    return Kept(
        place=place,
        runs=sum(runs for runs, _ in by_month.values()),
        profiles=read.count_profiles(connection),
        judged=len(read.verdicts(connection)),
        damaged=damaged,
        anonymised=read.fact(connection, "names") is not None,
        months=[
            KeptMonth(month=month or None, runs=runs, users=len(users))
            for month, (runs, users) in sorted(by_month.items())
        ],
    )
