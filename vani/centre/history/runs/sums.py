"""Sums of runs by month and by day, so that rankings read no runs: stored with the runs, in the same transaction.

A row is one unit of time (`month` or `day`), application, user, number of processes and file system. All code that
writes runs calls a function of this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from vani.centre.history.runs import tables

_DAY_S: Final = 86400
_UNKNOWN: Final = -1
"""The day of runs with an unknown start."""
_EPOCH: Final = date(1970, 1, 1).toordinal()
_KEY: Final = ("unit", "day", "application", "user", "processes", "file_system", "mount")
_NAMES: Final = _KEY[2:]
_COSTS: Final = ("runs", "core_s", "in_io_s", "waiting_s")


@dataclass(frozen=True)
class Period:
    """Runs that began at `since` or later and before `until`: starts of days in seconds since 1970; None: no limit."""

    since: float | None = None
    until: float | None = None

    def of(self, column: sa.ColumnElement[float | None]) -> sa.ColumnElement[bool]:
        """The condition for runs."""
        condition: sa.ColumnElement[bool] = sa.true()
        if self.since is not None:
            condition &= column >= self.since
        if self.until is not None:
            condition &= column < self.until
        return condition

    def of_sums(self) -> sa.ColumnElement[bool]:
        """The condition for sums: whole months, and the days of incomplete ones."""
        of = tables.sums.c
        months, days = of.unit == "month", of.unit == "day"
        if self.since is None and self.until is None:
            return months
        first = 0 if self.since is None else int(self.since // _DAY_S)
        begin = _month_of(first) if _month_of(first) == first else _month_after(first)
        if self.until is None:
            return (months & (of.day >= begin)) | (days & of.day.between(first, begin - 1))
        last = int(self.until // _DAY_S)
        end = _month_of(last)
        if begin > end:
            return days & of.day.between(first, last - 1)
        return (months & of.day.between(begin, end - 1)) | (
            days & (of.day.between(first, begin - 1) | of.day.between(end, last - 1))
        )


def add_to_sums(connection: sa.Connection, runs: Iterable[Any]) -> None:
    """Add runs, whose attributes are named like the tables' columns."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for run in runs:
        day = _UNKNOWN if run.submitted is None else int(run.submitted // _DAY_S)
        names = tuple(getattr(run, name) for name in _NAMES)
        costs = (1, run.processes * (run.runtime_s or 0.0), run.in_io_s or 0.0, run.waiting_s or 0.0)
        for unit, first in (("day", day), ("month", _month_of(day))):
            new = dict.fromkeys(_COSTS, 0) | {"first": run.submitted, "last": run.submitted}
            row = rows.setdefault((unit, first, *names), new)
            for cost, value in zip(_COSTS, costs, strict=True):
                row[cost] += value
            if run.submitted is not None:
                row["first"], row["last"] = min(row["first"], run.submitted), max(row["last"], run.submitted)
    if not rows:
        return
    insert: Any = (postgresql if connection.dialect.name == "postgresql" else sqlite).insert(tables.sums)
    new, old = insert.excluded, tables.sums.c
    merged = insert.on_conflict_do_update(
        index_elements=list(_KEY),
        set_={name: old[name] + new[name] for name in _COSTS}
        | {
            "first": sa.case((new.first < old.first, new.first), else_=old.first),
            "last": sa.case((new.last > old.last, new.last), else_=old.last),
        },
    )
    # In a fixed order, so that two writers of a server never wait for each other.
    connection.execute(merged, [dict(zip(_KEY, key, strict=True)) | rows[key] for key in sorted(rows)])


def remove_sums(connection: sa.Connection, user: str, application: str | None = None) -> None:
    """Delete the sums of a user, or of one application."""
    whose = tables.sums.c.user == user
    if application is not None:
        whose &= tables.sums.c.application == application
    connection.execute(sa.delete(tables.sums).where(whose))


def remake_sums_of(connection: sa.Connection, pairs: Iterable[tuple[str, str]]) -> None:
    """Recompute the sums of these pairs of application and user."""
    of = tables.runs.c
    columns = [of[name] for name in ("submitted", "runtime_s", "in_io_s", "waiting_s", *_NAMES)]
    for application, user in sorted(set(pairs)):
        remove_sums(connection, user, application)
        rows = connection.execute(
            sa.select(*columns).where((of.application == application) & (of.user == user))
        )
        add_to_sums(connection, rows)


def remake_sums(connection: sa.Connection) -> None:
    """Recompute all sums."""
    connection.execute(sa.delete(tables.sums))
    days = "floor(submitted / 86400)" if connection.dialect.name == "postgresql" else "submitted / 86400"
    names = ", ".join(f'"{name}"' for name in _NAMES)
    into = f'INSERT INTO history_sums (unit, day, {names}, runs, core_s, in_io_s, waiting_s, "first", "last") '
    connection.exec_driver_sql(
        f"{into}SELECT 'day', coalesce(CAST({days} AS BIGINT), {_UNKNOWN}) AS of_day, {names}, count(*), "
        "coalesce(sum(processes * runtime_s), 0), coalesce(sum(in_io_s), 0), coalesce(sum(waiting_s), 0), "
        f"min(submitted), max(submitted) FROM history_runs GROUP BY of_day, {names}"
    )
    of = tables.sums.c
    known = connection.execute(sa.select(of.day).distinct().where(of.unit == "day").order_by(of.day)).scalars()
    for month in _months(list(known)):
        connection.exec_driver_sql(
            f"{into}SELECT 'month', {month}, {names}, sum(runs), sum(core_s), sum(in_io_s), sum(waiting_s), "
            f"min(\"first\"), max(\"last\") FROM history_sums WHERE unit = 'day' AND day >= {month} "
            f"AND day < {_month_after(month)} GROUP BY {names}"
        )


def _months(days: Sequence[int]) -> list[int]:
    return sorted({_month_of(day) for day in days})


def _month_of(day: int) -> int:
    """The first day of a day's month, in days since 1970."""
    if day == _UNKNOWN:
        return day
    return date.fromordinal(day + _EPOCH).replace(day=1).toordinal() - _EPOCH


def _month_after(day: int) -> int:
    """The first day of the next month."""
    if day == _UNKNOWN:
        return 0
    of = date.fromordinal(day + _EPOCH)
    if (of.year, of.month) == (date.max.year, date.max.month):
        return date.max.toordinal() + 1 - _EPOCH
    return date(of.year + of.month // 12, of.month % 12 + 1, 1).toordinal() - _EPOCH
