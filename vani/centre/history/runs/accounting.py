"""Jobs from the batch system's accounting, in a store of runs: the account to which each run is charged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from vani.centre.history.runs import tables

_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class AccountedJob:
    """A job in the accounting; unknown values are None.

    Attributes
    ----------
    job
        The batch system's number, as in the environment of the job's tasks.
    state
        In capitals, as written by Slurm: COMPLETED, FAILED, TIMEOUT.
    started
        In seconds since 1970.
    """

    job: str
    user: str | None
    account: str | None
    qos: str | None
    partition: str | None
    nodes: int | None
    state: str | None
    started: float | None
    elapsed_s: float | None


_COLUMNS: Final = tuple(field.name for field in fields(AccountedJob))


def add_jobs(connection: sa.Connection, jobs: Sequence[AccountedJob]) -> int:
    """Store jobs, replacing existing ones. Returns the number of new ones."""
    of = tables.jobs.c
    rows = {job.job: {name: getattr(job, name) for name in _COLUMNS} for job in jobs}
    known: set[str] = set()
    for some in _pieces(rows):
        known.update(connection.execute(sa.select(of.job).where(of.job.in_(some))).scalars())
    if rows:
        insert: Any = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
        statement = insert(tables.jobs)
        new = {name: statement.excluded[name] for name in _COLUMNS if name != "job"}
        connection.execute(statement.on_conflict_do_update(index_elements=["job"], set_=new), list(rows.values()))
    return len(rows) - len(known)


def all_jobs(connection: sa.Connection) -> Iterator[AccountedJob]:
    """Every job, sorted by its number as text."""
    ordered = sa.select(*(tables.jobs.c[name] for name in _COLUMNS)).order_by(tables.jobs.c.job)
    for row in connection.execute(ordered.execution_options(yield_per=1000)):
        yield AccountedJob(*row)


def count_with_runs(connection: sa.Connection, jobs: Sequence[str]) -> int:
    """Number of these jobs that have runs."""
    of, number = tables.runs.c, 0
    for some in _pieces(dict.fromkeys(jobs)):
        number += connection.execute(
            sa.select(sa.func.count(sa.distinct(of.job))).where(of.job.in_(some))
        ).scalar_one()
    return number


def io_seconds_of(connection: sa.Connection, jobs: Sequence[str]) -> dict[str, float]:
    """Seconds of the slowest process in I/O calls by job, for jobs with runs; a job's launches are added up."""
    of, seconds = tables.runs.c, {}
    for some in _pieces(dict.fromkeys(jobs)):
        rows = connection.execute(
            sa.select(of.job, sa.func.sum(of.slowest_s))
            .where(of.job.in_(some) & of.slowest_s.is_not(None))
            .group_by(of.job)
        )
        seconds.update({row[0]: row[1] for row in rows})
    return seconds


def remove_jobs(connection: sa.Connection, user: str) -> None:
    """Delete the jobs of a user."""
    connection.execute(sa.delete(tables.jobs).where(tables.jobs.c.user == user))


def _pieces(names: Iterable[str]) -> Iterator[list[str]]:
    listed = list(names)
    return (listed[start : start + _AT_ONCE] for start in range(0, len(listed), _AT_ONCE))
