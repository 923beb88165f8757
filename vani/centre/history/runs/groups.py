"""Queries of the sums of runs: they read no runs, and so are as fast for ten years as for one.

Only sums by account or QOS read the runs, because accounting jobs arrive and change after them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from vani.centre.history.runs import tables
from vani.centre.history.runs.sums import Period

ALWAYS: Final = Period()

GROUPS: Final = {
    "pair": ("application", "user"),
    "user": ("user",),
    "app": ("application",),
    "category": ("application", "user", "processes"),
    "file-system": ("file_system", "mount"),
    "account": ("account",),
    "qos": ("qos",),
}
"""The ways to group runs, each with the columns that distinguish its groups."""


@dataclass(frozen=True)
class Group:
    """Sums over the runs of a pair; times are seconds.

    Attributes
    ----------
    names
        Name of the group: a value for each column in `GROUPS`.
    pair
        Application and user.
    """

    names: tuple[str | int, ...]
    pair: tuple[str, str]
    runs: int
    core_s: float
    in_io_s: float
    waiting_s: float


@dataclass(frozen=True)
class Whole:
    """Sums over all runs of a period; times are seconds."""

    runs: int
    users: int
    core_s: float
    in_io_s: float
    waiting_s: float
    first: float | None
    last: float | None


def groups(connection: sa.Connection, by: str, period: Period) -> list[Group]:
    """Sums over a period's runs by a row of `GROUPS`, separately for each pair of application and user."""
    if by in ("account", "qos"):
        return _of_jobs(connection, by, period)
    of = tables.sums.c
    columns = [of[name] for name in GROUPS[by]]
    pair = [of.application, of.user]
    rows = connection.execute(
        sa.select(*columns, *pair, *_costs())
        .where(period.of_sums())
        .group_by(*dict.fromkeys([*columns, *pair]))
    )
    wide = len(columns)
    return [Group(tuple(row[:wide]), (row[wide], row[wide + 1]), *row[wide + 2 :]) for row in rows]


def _of_jobs(connection: sa.Connection, by: str, period: Period) -> list[Group]:
    """Sums by a column of the accounting, which reads every run. Runs whose job is missing there have no name."""
    of = tables.runs.c
    name = sa.func.coalesce(tables.jobs.c[by], "")
    costs = (of.processes * sa.func.coalesce(of.runtime_s, 0.0), of.in_io_s, of.waiting_s)
    rows = connection.execute(
        sa.select(
            name,
            of.application,
            of.user,
            sa.func.count(),
            *(sa.func.coalesce(sa.func.sum(cost), 0.0) for cost in costs),
        )
        .select_from(tables.runs.outerjoin(tables.jobs, tables.jobs.c.job == of.job))
        .where(period.of(of.submitted))
        .group_by(name, of.application, of.user)
    )
    return [Group((row[0],), (row[1], row[2]), *row[3:]) for row in rows]


def _costs() -> list[sa.ColumnElement[Any]]:
    """Runs, core-seconds, seconds in I/O and waiting."""
    of = tables.sums.c
    # In PostgreSQL, sums of integers are decimals.
    runs = sa.cast(sa.func.coalesce(sa.func.sum(of.runs), 0), sa.BigInteger)
    return [runs, *(sa.func.coalesce(sa.func.sum(cost), 0.0) for cost in (of.core_s, of.in_io_s, of.waiting_s))]


def whole(connection: sa.Connection, period: Period) -> Whole:
    """Sums over all runs of a period."""
    of = tables.sums.c
    row = connection.execute(
        sa.select(
            sa.func.count(sa.distinct(of.user)), *_costs(), sa.func.min(of.first), sa.func.max(of.last)
        ).where(period.of_sums())
    ).one()
    users, runs, *costs = row
    return Whole(runs, users, *costs)


def months(connection: sa.Connection) -> list[tuple[int | None, int, int]]:
    """First day (since 1970), runs and users of each month; the day is None for runs with an unknown start."""
    of = tables.sums.c
    rows = connection.execute(
        sa.select(of.day, _costs()[0], sa.func.count(sa.distinct(of.user)))
        .where(of.unit == "month")
        .group_by(of.day)
        .order_by(of.day)
    )
    return [(day if day >= 0 else None, runs, users) for day, runs, users in rows]


def trend(
    connection: sa.Connection, unit: str, period: Period = ALWAYS
) -> list[tuple[int, int, float, float, float]]:
    """First day (since 1970), runs, core-seconds, seconds in I/O and waiting of each `month` or `day` with runs."""
    of = tables.sums.c
    begin = 0 if period.since is None else int(period.since // 86400)
    chosen = (of.unit == unit) & (of.day >= begin)
    if period.until is not None:
        chosen &= of.day < int(period.until // 86400)
    rows = connection.execute(sa.select(of.day, *_costs()).where(chosen).group_by(of.day).order_by(of.day))
    return [tuple(row) for row in rows]


def new_pairs(connection: sa.Connection, since: float) -> list[tuple[Group, float]]:
    """Pairs of application and user whose first run began at `since` or later, with its time."""
    of = tables.sums.c
    first = sa.func.min(of.first)
    rows = connection.execute(
        sa.select(of.application, of.user, first, *_costs())
        .where(of.unit == "month")
        .group_by(of.application, of.user)
        .having(first >= since)
    )
    return [(Group((row[0], row[1]), (row[0], row[1]), *row[3:]), row[2]) for row in rows]


def categories_of(
    connection: sa.Connection,
    application: str,
    user: str | None = None,
    processes: int | None = None,
    *,
    period: Period = ALWAYS,
) -> list[tuple[str, int, int, float | None]]:
    """User, processes, runs and last time of each category of an application; the latest first."""
    of = tables.sums.c
    whose = (of.application == application) & period.of_sums()
    if user is not None:
        whose &= of.user == user
    if processes is not None:
        whose &= of.processes == processes
    last = sa.func.max(of.last)
    rows = connection.execute(
        sa.select(of.user, of.processes, _costs()[0], last).where(whose).group_by(of.user, of.processes)
    )
    categories = [(row[0], row[1], row[2], row[3]) for row in rows]
    return sorted(
        categories,
        key=lambda category: (
            -(category[3] if category[3] is not None else -1e300),
            category[0],
            category[1],
        ),
    )


def users(connection: sa.Connection) -> set[str]:
    """All users with runs."""
    return set(connection.execute(sa.select(tables.sums.c.user).distinct()).scalars())
