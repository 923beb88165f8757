"""Writing to a store of runs; each function is part of its caller's transaction."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from vani.centre.history.runs import tables
from vani.centre.history.runs.accounting import remove_jobs
from vani.centre.history.runs.letters import remove_letters
from vani.centre.history.runs.planned import remove_planned
from vani.centre.history.runs.run import Measurement, Run, Source, Verdict
from vani.centre.history.runs.sums import add_to_sums, remake_sums_of, remove_sums

_AT_ONCE = 500
Item = TypeVar("Item")


def place_of(path: str) -> str:
    """The key of a path."""
    return hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest()


def add_runs(connection: sa.Connection, runs: Sequence[Run]) -> set[str]:
    """Add the runs that are new; returns their digests."""
    known: set[str] = set()
    for some in _pieces([run.digest for run in runs]):
        already_there = connection.execute(
            sa.select(tables.runs.c.digest).where(tables.runs.c.digest.in_(some))
        )
        known.update(already_there.scalars())
    new = {run.digest: run for run in runs if run.digest not in known}
    if not new:
        return set()
    insert: Any = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = insert(tables.runs).on_conflict_do_nothing(index_elements=["digest"]).returning(tables.runs.c.digest)
    # On a server, another writer may have been faster.
    added = set(connection.execute(statement, [_row(run) for run in new.values()]).scalars())
    add_to_sums(connection, (new[digest] for digest in added))
    return added


def settle_users(connection: sa.Connection, runs: Sequence[Run]) -> None:
    """Set the user of copies with several user names to the one with most runs of the same user number."""
    of = tables.runs.c
    named: dict[str, set[str]] = {}
    changed: set[tuple[str, str]] = set()
    for run in runs:
        named.setdefault(run.digest, set()).add(run.user)
    for some in _pieces(named):
        columns = (of.digest, of.user, of.uid, of.application)
        rows = connection.execute(sa.select(*columns).where(of.digest.in_(some))).all()
        for digest, user, uid, application in rows:
            rivals = named[digest] | {user}
            if uid is None or len(rivals) < 2:
                continue
            often = dict.fromkeys(rivals, 0)
            others = (of.uid == uid) & of.user.in_(rivals) & (of.digest != digest)
            counted = sa.select(of.user, sa.func.count()).where(others).group_by(of.user)
            for name, number in connection.execute(counted):
                often[name] = number
            best = min(rivals, key=lambda name: (-often[name], len(name), name))
            if best != user:
                connection.execute(sa.update(tables.runs).where(of.digest == digest).values(user=best))
                changed |= {(application, user), (application, best)}
    remake_sums_of(connection, changed)


def add_sources(connection: sa.Connection, sources: Iterable[Source]) -> None:
    """Record the files that were read; a changed file's record is replaced."""
    rows = {place_of(source.path): _row(source) for source in sources}
    _delete(connection, tables.sources.c.place, rows)
    if rows:
        _insert(connection, tables.sources, [{"place": place, **row} for place, row in rows.items()], "place")


@contextmanager
def new_sources(connection: sa.Connection) -> Iterator[Callable[[Iterable[Source]], None]]:
    """Yield a function that adds files to a new list, which replaces the existing one when the block ends."""
    # Written next to the existing list, which is read meanwhile.
    new_table = sa.Table(
        "history_sources_new",
        sa.MetaData(),
        *(sa.Column(column.name, column.type) for column in tables.sources.columns),
        prefixes=["TEMPORARY"],
    )
    new_table.create(connection)

    def put(sources: Iterable[Source]) -> None:
        rows = [{"place": place_of(source.path), **_row(source)} for source in sources]
        if rows:
            connection.execute(sa.insert(new_table), rows)

    yield put
    connection.execute(sa.delete(tables.sources))
    insert: Any = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    every = sa.select(new_table).where(sa.true())
    statement = insert(tables.sources).from_select([column.name for column in new_table.columns], every)
    connection.execute(statement.on_conflict_do_nothing(index_elements=["place"]))
    new_table.drop(connection)


def add_profiles(connection: sa.Connection, contents: Mapping[str, bytes]) -> None:
    """Store packed profiles by their runs' digests, replacing older ones."""
    _delete(connection, tables.profiles.c.digest, contents)
    if contents:
        rows = [{"digest": digest, "content": content} for digest, content in contents.items()]
        _insert(connection, tables.profiles, rows, "digest")


def add_creations(connection: sa.Connection, contents: Mapping[str, tuple[int, bytes]]) -> None:
    """Store the number of files that runs created, and these, packed, by the runs' digests; replaces older ones."""
    _delete(connection, tables.creations.c.digest, contents)
    if contents:
        rows = [
            {"digest": digest, "files": files, "content": content}
            for digest, (files, content) in contents.items()
        ]
        _insert(connection, tables.creations, rows, "digest")


def add_verdicts(connection: sa.Connection, verdicts: Sequence[Verdict]) -> None:
    """Store the possible savings of runs, replacing older ones."""
    rows = [_row(verdict) | {"lines": json.dumps(verdict.lines)} for verdict in verdicts]
    _delete(connection, tables.judged.c.digest, [verdict.digest for verdict in verdicts])
    if rows:
        _insert(connection, tables.judged, rows, "digest")


def add_measurements(connection: sa.Connection, items: Sequence[Measurement]) -> set[str]:
    """Store the measurements of sessions of `vani tune`, replacing a session's earlier ones.

    Returns the digests of the new ones.
    """
    digests = {item.digest for item in items}
    of = tables.measured.c.digest
    known: set[str] = set()
    for some in _pieces(digests):
        known.update(connection.execute(sa.select(of).where(of.in_(some))).scalars())
    _delete(connection, of, digests)
    # The last of several files of one session counts.
    rows = {
        (item.digest, item.position): _row(item) | {"rules": json.dumps(item.rules)} for item in items
    }
    if rows:
        _insert(connection, tables.measured, [*rows.values()], "digest", "position")
    return digests - known


def set_fact(connection: sa.Connection, name: str, value: str) -> None:
    """Store a fact about the whole store."""
    connection.execute(sa.delete(tables.facts).where(tables.facts.c.name == name))
    connection.execute(sa.insert(tables.facts), [{"name": name, "value": value}])


def forget_user(connection: sa.Connection, user: str, application: str | None = None) -> int:
    """Delete runs, everything stored with them, and records of the files from which they were read; returns their
    number.

    The user of files without a run is unknown: these are deleted, too, if their path contains the user's
    name. Each measurement of the user's sessions of `vani tune` counts as a run.
    """
    of_user = sa.select(tables.sums.c.application).where(tables.sums.c.user == user)
    whose = (tables.runs.c.user == user) & tables.runs.c.application.in_(of_user)
    of_sessions = tables.measured.c.user == user
    if application is not None:
        whose &= tables.runs.c.application == application
        of_sessions &= tables.measured.c.application == application
    digests = sa.select(tables.runs.c.digest).where(whose)
    sessions = sa.select(tables.measured.c.digest).where(of_sessions)
    forgotten = len(set(connection.execute(sessions).scalars()))
    connection.execute(sa.delete(tables.sources).where(tables.sources.c.digest.in_(sessions)))
    connection.execute(sa.delete(tables.measured).where(of_sessions))
    for table in (tables.sources, tables.profiles, tables.creations, tables.judged):
        connection.execute(sa.delete(table).where(table.c.digest.in_(digests)))
    if application is None:
        named = tables.sources.c.path.contains(user, autoescape=True)
        connection.execute(sa.delete(tables.sources).where(tables.sources.c.digest.is_(None) & named))
    remove_letters(connection, user, application)
    remove_planned(connection, user, application)
    if application is None:
        remove_jobs(connection, user)
    removed = connection.execute(sa.delete(tables.runs).where(whose)).rowcount
    remove_sums(connection, user, application)
    return forgotten + removed


def replace_texts(
    connection: sa.Connection, table: sa.Table, key: str, rows: Sequence[dict[str, Any]]
) -> None:
    """Replace columns of the rows identified by `key`."""
    if not rows:
        return
    columns: dict[str, Any] = {name: sa.bindparam(f"new_{name}") for name in rows[0] if name != key}
    statement = sa.update(table).where(table.c[key] == sa.bindparam("the_key")).values(columns)
    connection.execute(
        statement,
        [{"the_key": row[key]} | {f"new_{name}": row[name] for name in row if name != key} for row in rows],
    )


def _row(item: Measurement | Verdict | Run | Source) -> dict[str, Any]:
    # `asdict` copies deeply, which takes longer than the database.
    return {name: getattr(item, name) for name in item.__slots__}


def _insert(connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]], *key: str) -> None:
    """Insert rows except those with existing keys: on a server, another writer may have been faster."""
    insert: Any = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    connection.execute(insert(table).on_conflict_do_nothing(index_elements=key), rows)


def _delete(connection: sa.Connection, column: sa.Column[str], keys: Iterable[str]) -> None:
    for some in _pieces(keys):
        connection.execute(sa.delete(column.table).where(column.in_(some)))


def _pieces(items: Iterable[Item]) -> Iterator[list[Item]]:
    rest = iter(items)
    while piece := list(islice(rest, _AT_ONCE)):
        yield piece
