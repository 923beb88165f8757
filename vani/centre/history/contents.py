"""The contents of a history: the runs of each month, and each measured setting."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from vani.centre.history.runs import read, tables
from vani.centre.history.schema import HistoryContents, HistoryMonth, MeasuredSetting
from vani.schema.tuned import Setting

if TYPE_CHECKING:
    import sqlalchemy as sa

def contents_of(connection: sa.Connection, place: str, damaged: int) -> HistoryContents:
    """Count the contents."""
    months = read.months(connection)
    return HistoryContents(
        place=place,
        runs=sum(runs for _, runs, _ in months),
        profiles=read.number_of(connection, tables.profiles),
        judged=read.number_of(connection, tables.judged),
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
        for row in read.measurements(connection)
    ]
