"""Planned jobs in a store of runs: expected and actual figures of each."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import sqlalchemy as sa

from vani.centre.history.runs import tables


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A job for which a plan was made, after it ended.

    Parameters
    ----------
    job
        The batch system's number.
    ended
        In seconds since 1970.
    name
        The job's name, as chosen by its user.
    digest, application, processes
        From the run in its log; None without a log.
    stripe_count, io_nodes
        Settings that it got; None if the plan left them unchanged.
    changed
        Whether the setting differed from earlier runs.
    before, expected, low, high, measured
        Seconds of the slowest process in I/O calls: without the change, as expected, its range, and as measured.
    method
        Method of the estimate.
    reason
        Reason why a figure is None; empty if none is.
    """

    job: str
    ended: float
    name: str
    user: str
    nodes: int
    digest: str | None
    application: str | None
    processes: int | None
    stripe_count: int | None
    io_nodes: int | None
    changed: bool
    before: float | None
    expected: float | None
    low: float | None
    high: float | None
    measured: float | None
    method: str
    reason: str


_COLUMNS: Final = tuple(field.name for field in fields(PlannedRun))


def add_planned(connection: sa.Connection, rows: list[PlannedRun]) -> None:
    """Store figures of planned jobs, replacing those of a job with the same number and end."""
    of = tables.planned.c
    for row in rows:
        connection.execute(sa.delete(tables.planned).where((of.job == row.job) & (of.ended == row.ended)))
    if rows:
        values = [{name: getattr(row, name) for name in _COLUMNS} for row in rows]
        connection.execute(sa.insert(tables.planned), values)


def remove_planned(connection: sa.Connection, user: str, application: str | None = None) -> None:
    """Delete planned jobs of a user, or those of one application."""
    whose = tables.planned.c.user == user
    if application is not None:
        whose &= tables.planned.c.application == application
    connection.execute(sa.delete(tables.planned).where(whose))


def planned_runs(connection: sa.Connection) -> list[PlannedRun]:
    """All planned jobs, ordered by end."""
    of = tables.planned.c
    rows = connection.execute(sa.select(*(of[name] for name in _COLUMNS)).order_by(of.ended, of.job))
    return [PlannedRun(*row) for row in rows]
