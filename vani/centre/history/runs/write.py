"""Writing to a history; each function is part of its caller's transaction."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from vani.centre.history.rows import AccountedJob, AnyRow, Measurement, Source, StoredRun
from vani.centre.history.runs import tables
from vani.centre.history.runs.read import DAY_S, UNKNOWN_DAY, among, month_of, pieces, sum_of, whose

_SUMS_KEY: Final = ("unit", "day", "application", "user", "processes", "file_system", "mount")
_NAMES: Final = _SUMS_KEY[2:]
_COSTS: Final = ("runs", "core_s", "in_io_s", "waiting_s")


def place_of(path: str) -> str:
    """The key of a path."""
    return hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest()


def put(connection: sa.Connection, rows: Iterable[AnyRow]) -> None:
    """Store rows of one kind, replacing those with the same key."""
    items = list(rows)
    if not items:
        return
    values = [item.values() for item in items]
    if isinstance(items[0], Source):
        values = [{"place": place_of(row["path"]), **row} for row in values]
    _replace(connection, tables.OF_ROWS[type(items[0])], values)


def put_profiles(connection: sa.Connection, contents: Mapping[str, bytes]) -> None:
    """Store packed profiles by their runs' digests, replacing older ones."""
    rows = [{"digest": digest, "content": content} for digest, content in contents.items()]
    _replace(connection, tables.profiles, rows)


def put_creations(connection: sa.Connection, contents: Mapping[str, tuple[int, bytes]]) -> None:
    """Store the number of files that runs created, and these, packed, by the runs' digests; replaces older ones."""
    rows = [{"digest": digest, "files": files, "content": content} for digest, (files, content) in contents.items()]
    _replace(connection, tables.creations, rows)


def set_fact(connection: sa.Connection, name: str, value: str) -> None:
    """Store a fact about the whole store."""
    _replace(connection, tables.facts, [{"name": name, "value": value}])


def delete(connection: sa.Connection, table: sa.Table, key: str | None = None, values: Sequence[str] = ()) -> None:
    """Delete the rows in which a column has one of these values; without a column, all."""
    statement = sa.delete(table)
    connection.execute(statement if key is None else statement.where(table.c[key].in_(values)))


def _replace(connection: sa.Connection, table: sa.Table, rows: Iterable[dict[str, Any]]) -> None:
    """Store rows, replacing those with the same key; of several with the same key, the last one counts."""
    # The key of a run is its digest: its number only makes indices short.
    keys = ["digest"] if table is tables.runs else [column.name for column in table.primary_key]
    by_key = {itemgetter(*keys)(row): row for row in rows}
    if not by_key:
        return
    insert = _insert(connection, table)
    new = {column.name: insert.excluded[column.name] for column in table.columns if column.name not in (*keys, "id")}
    # In a fixed order, so that two writers of a server never wait for each other.
    connection.execute(
        insert.on_conflict_do_update(index_elements=keys, set_=new), [by_key[key] for key in sorted(by_key)]
    )


def _insert(connection: sa.Connection, table: sa.Table) -> Any:
    return (postgresql if connection.dialect.name == "postgresql" else sqlite).insert(table)


def add_runs(connection: sa.Connection, runs: Sequence[StoredRun]) -> set[str]:
    """Add the runs that are new; returns their digests."""
    of = tables.runs.c.digest
    known = {digest for (digest,) in among(connection, sa.select(of), of, [run.digest for run in runs])}
    new = {run.digest: run for run in runs if run.digest not in known}
    if not new:
        return set()
    statement = _insert(connection, tables.runs).on_conflict_do_nothing(index_elements=["digest"]).returning(of)
    rows = [run.values() for run in new.values()]
    # On a server, another writer may have been faster.
    added = set(connection.execute(statement, rows).scalars())
    _add_to_sums(connection, (new[digest] for digest in added))
    return added


def add_jobs(connection: sa.Connection, jobs: Sequence[AccountedJob]) -> int:
    """Store jobs, replacing existing ones; returns the number of new ones."""
    of, numbers = tables.jobs.c.job, {job.job for job in jobs}
    known = sum(1 for _ in among(connection, sa.select(of), of, numbers))
    put(connection, jobs)
    return len(numbers) - known


def add_measurements(connection: sa.Connection, items: Sequence[Measurement]) -> set[str]:
    """Store the measurements of sessions of `vani tune`, replacing a session's earlier ones.

    Returns the digests of the new ones.
    """
    digests, of = {item.digest for item in items}, tables.measured.c.digest
    known = {digest for (digest,) in among(connection, sa.select(of), of, digests)}
    for some in pieces(known):
        connection.execute(sa.delete(tables.measured).where(of.in_(some)))
    put(connection, items)
    return digests - known


def settle_users(connection: sa.Connection, runs: Sequence[StoredRun]) -> None:
    """Set the user of copies with several user names to the one with most runs of the same user number."""
    of = tables.runs.c
    named: dict[str, set[str]] = {}
    changed: set[tuple[str, str]] = set()
    for run in runs:
        named.setdefault(run.digest, set()).add(run.user)
    stored = sa.select(of.digest, of.user, of.uid, of.application)
    for digest, user, uid, application in list(among(connection, stored, of.digest, named)):
        rivals = named[digest] | {user}
        if uid is None or len(rivals) < 2:
            continue
        others = (of.uid == uid) & of.user.in_(rivals) & (of.digest != digest)
        counted = sa.select(of.user, sa.func.count()).where(others).group_by(of.user)
        often = {row[0]: row[1] for row in connection.execute(counted)}
        best = min(rivals, key=lambda name: (-often.get(name, 0), len(name), name))
        if best != user:
            connection.execute(sa.update(tables.runs).where(of.digest == digest).values(user=best))
            changed |= {(application, user), (application, best)}
    _remake_sums_of(connection, changed)


def forget_user(connection: sa.Connection, user: str, application: str | None = None) -> int:
    """Delete runs, everything stored with them, and records of the files from which they were read; returns their
    number.

    The user of files without a run is unknown: these are deleted, too, if their path contains the user's
    name. Each measurement of the user's sessions of `vani tune` counts as a run.
    """
    of_sessions, own = whose(tables.measured, application, user), whose(tables.runs, application, user)
    sources = tables.sources.c
    # Via the applications, since the index of runs begins with them.
    own &= tables.runs.c.application.in_(sa.select(tables.sums.c.application).where(tables.sums.c.user == user))
    digests = sa.select(tables.runs.c.digest).where(own)
    sessions = sa.select(tables.measured.c.digest).where(of_sessions)
    forgotten = len(set(connection.execute(sessions).scalars()))
    connection.execute(sa.delete(tables.sources).where(sources.digest.in_(sessions)))
    for table in (tables.sources, tables.profiles, tables.creations, tables.judged):
        connection.execute(sa.delete(table).where(table.c.digest.in_(digests)))
    if application is None:
        named = sources.path.contains(user, autoescape=True)
        connection.execute(sa.delete(tables.sources).where(sources.digest.is_(None) & named))
        connection.execute(sa.delete(tables.jobs).where(tables.jobs.c.user == user))
    removed = connection.execute(sa.delete(tables.runs).where(own)).rowcount
    for table in (tables.measured, tables.letters, tables.sums):
        connection.execute(sa.delete(table).where(whose(table, application, user)))
    return forgotten + removed


def _add_to_sums(connection: sa.Connection, runs: Iterable[Any]) -> None:
    """Add runs, whose attributes are named like the tables' columns, to the sums by month and by day."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for run in runs:
        day = UNKNOWN_DAY if run.submitted is None else int(run.submitted // DAY_S)
        names = tuple(getattr(run, name) for name in _NAMES)
        costs = (1, run.processes * (run.runtime_s or 0.0), run.in_io_s or 0.0, run.waiting_s or 0.0)
        for unit, first in (("day", day), ("month", month_of(day))):
            new = dict.fromkeys(_COSTS, 0) | {"first": run.submitted, "last": run.submitted}
            row = rows.setdefault((unit, first, *names), new)
            for cost, value in zip(_COSTS, costs, strict=True):
                row[cost] += value
            if run.submitted is not None:
                row["first"], row["last"] = min(row["first"], run.submitted), max(row["last"], run.submitted)
    if not rows:
        return
    insert = _insert(connection, tables.sums)
    new, old = insert.excluded, tables.sums.c
    merged = insert.on_conflict_do_update(
        index_elements=list(_SUMS_KEY),
        set_={name: old[name] + new[name] for name in _COSTS}
        | {
            "first": sa.case((new.first < old.first, new.first), else_=old.first),
            "last": sa.case((new.last > old.last, new.last), else_=old.last),
        },
    )
    # In a fixed order, so that two writers of a server never wait for each other.
    connection.execute(merged, [dict(zip(_SUMS_KEY, key, strict=True)) | rows[key] for key in sorted(rows)])


def _remake_sums_of(connection: sa.Connection, pairs: Iterable[tuple[str, str]]) -> None:
    """Compute the sums of some pairs of application and user again."""
    of = tables.runs.c
    columns = [of[name] for name in ("submitted", "runtime_s", "in_io_s", "waiting_s", *_NAMES)]
    for pair in sorted(set(pairs)):
        connection.execute(sa.delete(tables.sums).where(whose(tables.sums, *pair)))
        _add_to_sums(connection, connection.execute(sa.select(*columns).where(whose(tables.runs, *pair))))


def remake_sums(connection: sa.Connection) -> None:
    """Compute all sums again, within the database."""
    run, of = tables.runs.c, tables.sums.c
    connection.execute(sa.delete(tables.sums))
    days = run.submitted / DAY_S
    # SQLite's cast truncates, PostgreSQL's rounds.
    days = sa.cast(sa.func.floor(days) if connection.dialect.name == "postgresql" else days, sa.BigInteger)
    costs = (run.processes * run.runtime_s, run.in_io_s, run.waiting_s)
    ends = sa.func.min(run.submitted), sa.func.max(run.submitted)
    key = [sa.literal("day"), sa.func.coalesce(days, UNKNOWN_DAY).label("of_day"), *(run[name] for name in _NAMES)]
    by_day = sa.select(*key, sa.func.count(), *map(sum_of, costs), *ends).group_by(sa.text("of_day"), *key[2:])
    columns = [*_SUMS_KEY, *_COSTS, "first", "last"]
    connection.execute(sa.insert(tables.sums).from_select(columns, by_day))
    by_month: dict[int, list[int]] = {}
    for day in connection.execute(sa.select(of.day).distinct()).scalars():
        by_month.setdefault(month_of(day), []).append(day)
    for month, some in by_month.items():
        names = [of[name] for name in _NAMES]
        totals = [*(sa.func.sum(of[cost]) for cost in _COSTS), sa.func.min(of.first), sa.func.max(of.last)]
        summed = sa.select(sa.literal("month"), sa.literal(month), *names, *totals)
        summed = summed.where((of.unit == "day") & of.day.in_(some)).group_by(*names)
        connection.execute(sa.insert(tables.sums).from_select(columns, summed))
