"""Planned jobs in a store of runs: what each was expected to take, and what it took."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import sqlalchemy as sa

from vani.database.runs import tables

__all__ = ["PlannedRun", "add_planned", "planned_runs", "remove_planned"]


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A job that a plan was made for, after it ended.

    Parameters
    ----------
    job
        The batch system's number.
    ended
        In seconds since 1970.
    name
        The job's name, as its user chose it.
    digest, application, processes
        From the run in its log; None without a log.
    stripe_count, io_nodes
        What it got; None where the plan left that as it is.
    changed
        It was another setting than that of earlier runs.
    before, expected, low, high, measured
        Seconds of the slowest process in I/O calls: without the change, as expected, its range, and as measured.
    method
        How it was expected.
    reason
        Why a figure is None; empty where none is.
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
    """Keep what planned jobs took; a job of the same number and end replaces what was kept of it."""
    of = tables.planned.c
    for row in rows:
        connection.execute(sa.delete(tables.planned).where((of.job == row.job) & (of.ended == row.ended)))
    if rows:
        values = [{name: getattr(row, name) for name in _COLUMNS} for row in rows]
        connection.execute(sa.insert(tables.planned), values)


def remove_planned(connection: sa.Connection, user: str, application: str | None = None) -> None:
    """Forget planned jobs of a user, or those of one application."""
    whose = tables.planned.c.user == user
    if application is not None:
        whose &= tables.planned.c.application == application
    connection.execute(sa.delete(tables.planned).where(whose))


def planned_runs(connection: sa.Connection) -> list[PlannedRun]:
    """All planned jobs, those that ended first in front."""
    of = tables.planned.c
    rows = connection.execute(sa.select(*(of[name] for name in _COLUMNS)).order_by(of.ended, of.job))
    return [PlannedRun(*row) for row in rows]
