"""Queries of a store of runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

import sqlalchemy as sa

from vani.centre.history.runs import tables
from vani.centre.history.runs.groups import (
    ALWAYS,
    GROUPS,
    Group,
    Whole,
    categories_of,
    groups,
    months,
    new_pairs,
    trend,
    users,
    whole,
)
from vani.centre.history.runs.run import Measurement, Run, Source, Verdict
from vani.centre.history.runs.sums import Period

__all__ = [
    "ALWAYS",
    "GROUPS",
    "Group",
    "Period",
    "Whole",
    "all_creations",
    "all_measurements",
    "all_profiles",
    "all_runs",
    "all_sources",
    "categories_of",
    "costliest_runs",
    "count_damaged",
    "count_profiles",
    "creations_of",
    "damaged",
    "fact",
    "figures_of",
    "file_system_of",
    "groups",
    "known_files",
    "latest_digests",
    "measurements_on",
    "months",
    "new_pairs",
    "pages",
    "paths_of",
    "profile_content",
    "run_of",
    "runs_of",
    "runs_with",
    "target_times",
    "telling_runs",
    "trend",
    "users",
    "verdicts",
    "verdicts_of",
    "whole",
]


def known_files(connection: sa.Connection) -> dict[str, tuple[int, int]]:
    """Size and modification time of each examined file, by its key."""
    of = tables.sources.c
    return {
        place: (size, changed)
        for place, size, changed in connection.execute(sa.select(of.place, of.size, of.changed_ns))
    }


def run_of(connection: sa.Connection, digest: str) -> Run | None:
    """A run by its digest; None if there is none."""
    row = connection.execute(sa.select(tables.runs).where(tables.runs.c.digest == digest)).mappings().first()
    return None if row is None else _run(row)


def telling_runs(connection: sa.Connection, pairs: Sequence[tuple[str, str]]) -> list[Run]:
    """For each pair (application, user), the most expensive run, and those at the quartiles of its costs."""
    of = tables.runs.c
    by_digest: dict[str, Run] = {}
    for application, user in pairs:
        whose = (of.user == user) & (of.application == application) & (of.waiting_s > 0)
        number = connection.execute(sa.select(sa.func.count()).where(whose)).scalar_one()
        ordered = sa.select(tables.runs).where(whose).order_by(of.waiting_s.desc(), of.digest)
        for place in {0, number // 4, number // 2, 3 * number // 4} if number else ():
            row = connection.execute(ordered.limit(1).offset(place)).mappings().one()
            by_digest[row["digest"]] = _run(row)
    return list(by_digest.values())


def costliest_runs(
    connection: sa.Connection, application: str, user: str | None, period: Period, most: int
) -> list[Run]:
    """The runs of an application that waited longest, the most expensive first."""
    of = tables.runs.c
    whose = of.application == application
    if user is not None:
        whose &= of.user == user
    costs = (sa.func.coalesce(of.waiting_s, 0.0).desc(), sa.func.coalesce(of.in_io_s, 0.0).desc())
    # Selected from the index alone, which is a tenth of the runs' own rows.
    chosen = sa.select(of.id).where(whose & period.of(of.submitted)).order_by(*costs, of.id).limit(most)
    rows = connection.execute(
        sa.select(tables.runs).where(of.id.in_(chosen)).order_by(*costs, of.digest.desc())
    )
    return [_run(row) for row in rows.mappings()]


def runs_of(connection: sa.Connection, application: str, user: str | None, period: Period) -> list[Run]:
    """Runs of an application, the oldest first."""
    of = tables.runs.c
    whose = of.application == application
    if user is not None:
        whose &= of.user == user
    rows = connection.execute(
        sa.select(tables.runs).where(whose & period.of(of.submitted)).order_by(of.submitted, of.digest)
    )
    return [_run(row) for row in rows.mappings()]


def runs_with(connection: sa.Connection, digests: Sequence[str]) -> list[Run]:
    """Runs by their digests, the oldest first; those of unknown time precede all others."""
    of, runs = tables.runs.c, []
    for start in range(0, len(digests), 500):
        some = digests[start : start + 500]
        rows = connection.execute(sa.select(tables.runs).where(of.digest.in_(some)))
        runs += [_run(row) for row in rows.mappings()]
    return sorted(runs, key=lambda run: (run.submitted or 0.0, run.digest))


def figures_of(
    connection: sa.Connection, names: Sequence[str], application: str | None = None, user: str | None = None
) -> list[tuple[Any, ...]]:
    """Columns of an application's runs, or of all, that have a start time; the oldest first."""
    of = tables.runs.c
    whose: sa.ColumnElement[bool] = of.submitted.is_not(None)
    if application is not None:
        whose &= of.application == application
    if user is not None:
        whose &= of.user == user
    rows = connection.execute(
        sa.select(*(of[name] for name in names)).where(whose).order_by(of.submitted, of.digest)
    )
    return [tuple(row) for row in rows]


def target_times(
    connection: sa.Connection, period: Period
) -> Iterator[tuple[str, str, str, int, str | None, str]]:
    """Mount, application, user, processes, job and times on storage targets, for each run that has these times."""
    of = tables.runs.c
    columns = (of.mount, of.application, of.user, of.processes, of.job, of.target_times)
    known = of.target_times.is_not(None) & period.of(of.submitted)
    for row in connection.execute(sa.select(*columns).where(known).order_by(of.digest)):
        yield row[0], row[1], row[2], row[3], row[4], row[5]


def all_runs(connection: sa.Connection) -> Iterator[Run]:
    """Every run, ordered by digest."""
    ordered = sa.select(tables.runs).order_by(tables.runs.c.digest)
    rows = connection.execute(ordered.execution_options(yield_per=1000))
    for row in rows.mappings():
        yield _run(row)


def pages(connection: sa.Connection, table: sa.Table, key: str, most: int) -> Iterator[list[dict[str, Any]]]:
    """All rows of a table ordered by a key, `most` at a time; they may change meanwhile, but not their keys."""
    of = table.c[key]
    last: Any = None
    while True:
        more: sa.ColumnElement[bool] = sa.true() if last is None else of > last
        rows = connection.execute(sa.select(table).where(more).order_by(of).limit(most)).mappings().all()
        if not rows:
            return
        last = rows[-1][key]
        yield [dict(row) for row in rows]


def count_profiles(connection: sa.Connection) -> int:
    """The number of complete profiles."""
    return int(connection.execute(sa.select(sa.func.count()).select_from(tables.profiles)).scalar_one())


def damaged(connection: sa.Connection) -> list[Source]:
    """Files that could not be read, ordered by path."""
    of = tables.sources.c
    rows = connection.execute(sa.select(tables.sources).where(of.reason.is_not(None)).order_by(of.path))
    return [_source(row) for row in rows.mappings()]


def count_damaged(connection: sa.Connection) -> int:
    """The number of files that could not be read."""
    of = tables.sources.c
    return int(connection.execute(sa.select(sa.func.count()).where(of.reason.is_not(None))).scalar_one())


def all_sources(connection: sa.Connection) -> Iterator[Source]:
    """Every examined file."""
    ordered = sa.select(tables.sources).order_by(tables.sources.c.path)
    rows = connection.execute(ordered.execution_options(yield_per=1000))
    for row in rows.mappings():
        yield _source(row)


def paths_of(connection: sa.Connection, digests: Sequence[str]) -> dict[str, list[str]]:
    """The files of runs by digest; a copied run has several."""
    paths: dict[str, list[str]] = {digest: [] for digest in digests}
    of = tables.sources.c
    for start in range(0, len(digests), 500):
        some = digests[start : start + 500]
        for digest, path in connection.execute(
            sa.select(of.digest, of.path).where(of.digest.in_(some)).order_by(of.path)
        ):
            paths[digest].append(path)
    return paths


def verdicts(connection: sa.Connection) -> list[tuple[Verdict, Run]]:
    """The possible saving of each judged run."""
    of = tables.judged.c
    rows = connection.execute(
        sa.select(tables.runs, *(of[name] for name in _VERDICT if name != "digest"))
        .join(tables.judged, of.digest == tables.runs.c.digest)
        .order_by(of.digest)
    )
    return [(_verdict(row), _run(row)) for row in rows.mappings()]


def verdicts_of(connection: sa.Connection, digests: Sequence[str]) -> dict[str, Verdict]:
    """The possible saving of these runs by digest, if judged."""
    by_digest: dict[str, Verdict] = {}
    for start in range(0, len(digests), 500):
        some = digests[start : start + 500]
        rows = connection.execute(sa.select(tables.judged).where(tables.judged.c.digest.in_(some)))
        by_digest |= {row["digest"]: _verdict(row) for row in rows.mappings()}
    return by_digest


def profile_content(connection: sa.Connection, digest: str) -> bytes | None:
    """The packed profile of a run; None if none was made."""
    of = tables.profiles.c
    content = connection.execute(sa.select(of.content).where(of.digest == digest)).scalar()
    return None if content is None else bytes(content)


def file_system_of(connection: sa.Connection, digest: str) -> str:
    """The type of the file system with most of a run's I/O time; empty if unknown."""
    of = tables.runs.c
    return str(connection.execute(sa.select(of.file_system).where(of.digest == digest)).scalar() or "")


def all_profiles(connection: sa.Connection) -> Iterator[tuple[str, bytes]]:
    """Every packed profile, with its run's digest."""
    for digest, content in connection.execute(sa.select(tables.profiles).order_by(tables.profiles.c.digest)):
        yield digest, bytes(content)


def latest_digests(
    connection: sa.Connection, application: str, user: str, processes: int, most: int
) -> list[str]:
    """The last runs of a category, the oldest of them first; those of unknown time precede all others."""
    of = tables.runs.c
    rows = connection.execute(
        sa.select(of.digest)
        .where((of.application == application) & (of.user == user) & (of.processes == processes))
        .order_by(of.submitted.is_(None), of.submitted.desc(), of.digest.desc())
        .limit(most)
    )
    return list(rows.scalars())[::-1]


def creations_of(connection: sa.Connection, digests: Sequence[str]) -> dict[str, bytes]:
    """The packed creations of runs by digest, if known."""
    of, by_digest = tables.creations.c, {}
    for start in range(0, len(digests), 500):
        some = digests[start : start + 500]
        for digest, content in connection.execute(
            sa.select(of.digest, of.content).where(of.digest.in_(some))
        ):
            by_digest[digest] = bytes(content)
    return by_digest


def all_creations(connection: sa.Connection) -> Iterator[tuple[str, int, bytes]]:
    """The packed creations of every run: its digest, their number, and the creations."""
    rows = connection.execute(sa.select(tables.creations).order_by(tables.creations.c.digest))
    for digest, files, content in rows:
        yield digest, files, bytes(content)


def all_measurements(connection: sa.Connection) -> list[Measurement]:
    """Measurements of all sessions of `vani tune`."""
    of = tables.measured.c
    rows = connection.execute(sa.select(tables.measured).order_by(of.digest, of.position))
    return [_measurement(row) for row in rows.mappings()]


def measurements_on(connection: sa.Connection, machine: str) -> list[Measurement]:
    """Measurements of all sessions of `vani tune` on a machine, the latest first."""
    of = tables.measured.c
    rows = connection.execute(
        sa.select(tables.measured)
        .where(of.machine == machine)
        .order_by(of.ended.desc(), of.digest, of.position)
    )
    return [_measurement(row) for row in rows.mappings()]


def fact(connection: sa.Connection, name: str) -> str | None:
    """A fact about the whole store; None if unknown."""
    of = tables.facts.c
    return connection.execute(sa.select(of.value).where(of.name == name)).scalar()


_RUN = tuple(field.name for field in fields(Run))
_VERDICT = tuple(field.name for field in fields(Verdict))
_MEASUREMENT = tuple(field.name for field in fields(Measurement))
_SOURCE = tuple(field.name for field in fields(Source))


def _run(row: Any) -> Run:
    return Run(**{name: row[name] for name in _RUN})


def _source(row: Any) -> Source:
    return Source(**{name: row[name] for name in _SOURCE})


def _verdict(row: Any) -> Verdict:
    values = {name: row[name] for name in _VERDICT}
    return Verdict(**values | {"lines": tuple(json.loads(values["lines"]))})


def _measurement(row: Any) -> Measurement:
    values = {name: row[name] for name in _MEASUREMENT}
    return Measurement(**values | {"rules": tuple(json.loads(values["rules"]))})
