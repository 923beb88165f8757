"""A history's default location, and its contents: the runs of each month, and each measured setting."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from vani.centre.history.runs import read
from vani.centre.history.schema import HistoryContents, HistoryMonth, MeasuredSetting
from vani.schema.tuned import Setting
from vani.site import setting

if TYPE_CHECKING:
    import sqlalchemy as sa

ENVIRONMENT = "VANI_HISTORY"


def default_place() -> str:
    """The location in VANI_HISTORY or in a settings file (`vani.site`); by default in the user's data folder."""
    named = setting("history").value
    if named:
        return named
    data = os.environ.get("XDG_DATA_HOME")
    folder = Path(data) if data and Path(data).is_absolute() else Path.home() / ".local" / "share"
    return str(folder / "vani" / "history.sqlite")


def contents_of(connection: sa.Connection, place: str, damaged: int) -> HistoryContents:
    """Count the contents."""
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
        settings=measured_settings(connection),
    )


def measured_settings(connection: sa.Connection) -> list[MeasuredSetting]:
    """Settings of all `vani tune` sessions, the latest first."""
    rows = sorted(read.all_measurements(connection), key=lambda row: (-row.ended, row.digest, row.position))
    return [
        MeasuredSetting(
            application=row.application,
            user=row.user,
            machine=row.machine,
            processes=row.processes,
            nodes=row.nodes,
            setting=Setting.model_validate_json(row.setting).label,
            rules=list(row.rules),
            verdict=row.verdict,
            speedup=row.speedup,
            low=row.low,
            high=row.high,
            runs=row.runs,
            day=datetime.fromtimestamp(row.ended, UTC).date().isoformat(),
        )
        for row in rows
    ]
