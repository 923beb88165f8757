"""The default place of a history, and its contents month by month."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from vani.database.runs import read
from vani.schema.history import HistoryContents, HistoryMonth
from vani.site import setting

if TYPE_CHECKING:
    import sqlalchemy as sa

__all__ = ["ENVIRONMENT", "contents_of", "default_place"]

ENVIRONMENT = "VANI_HISTORY"


def default_place() -> str:
    """The place that VANI_HISTORY or a file of settings names (`vani.site`), else a file in the user's data folder."""
    named = setting("history").value
    if named:
        return named
    data = os.environ.get("XDG_DATA_HOME")
    folder = Path(data) if data and Path(data).is_absolute() else Path.home() / ".local" / "share"
    return str(folder / "vani" / "history.sqlite")


def contents_of(connection: sa.Connection, place: str, damaged: int) -> HistoryContents:
    """Count what is there."""
    months = read.months(connection)
    return HistoryContents(
        place=place,
        runs=sum(runs for _, runs, _ in months),
        profiles=read.count_profiles(connection),
        judged=len(read.verdicts(connection)),
        damaged=damaged,
        anonymised=read.fact(connection, "names") is not None,
        months=[
            HistoryMonth(
                month=None if day is None else datetime.fromtimestamp(86400 * day, UTC).strftime("%Y-%m"),
                runs=runs,
                users=users,
            )
            for day, runs, users in months
        ],
    )
