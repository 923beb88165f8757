"""Queries of a history.

Rankings read the sums of runs, not the runs, and so are as fast for ten years as for one. Only sums by account or QOS
read the runs, because accounting jobs arrive and change after them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain, islice
from typing import Any, Final, TypeVar

import numpy as np
import sqlalchemy as sa

from vani.centre.columns import Floats
from vani.centre.history.rows import AccountedJob, AnyRow, Letter, Measurement, Source, StoredRun, Verdict
from vani.centre.history.runs import tables

DAY_S: Final = 86400
UNKNOWN_DAY: Final = -1
"""The day of runs with an unknown start."""
_EPOCH: Final = date(1970, 1, 1).toordinal()
_IN_A_QUERY: Final = 500
"""Number of keys in one query."""

GROUPS: Final = {
    "pair": ("application", "user"), "user": ("user",), "app": ("application",),
    "category": ("application", "user", "processes"), "file-system": ("file_system", "mount"),
    "account": ("account",), "qos": ("qos",),
}
"""The ways to group runs, each with the columns that distinguish its groups."""

Condition = sa.ColumnElement[bool]
Item = TypeVar("Item")
Row = TypeVar("Row", bound=AnyRow)


@dataclass(frozen=True)
class Period:
    """Runs that began at `since` or later and before `until`: starts of days in seconds since 1970; None: no limit."""

    since: float | None = None
    until: float | None = None

    def of(self, column: sa.ColumnElement[float | None]) -> Condition:
        """The condition for runs."""
        condition: Condition = sa.true()
        if self.since is not None:
            condition &= column >= self.since
        if self.until is not None:
            condition &= column < self.until
        return condition

    def of_sums(self) -> Condition:
        """The condition for sums: whole months, and the days of incomplete ones."""
        of = tables.sums.c
        months, days = of.unit == "month", of.unit == "day"
        if self.since is None and self.until is None:
            return months
        first = 0 if self.since is None else int(self.since // DAY_S)
        begin = month_of(first) if month_of(first) == first else _month_after(first)
        if self.until is None:
            return (months & (of.day >= begin)) | (days & of.day.between(first, begin - 1))
        last = int(self.until // DAY_S)
        end = month_of(last)
        if begin > end:
            return days & of.day.between(first, last - 1)
        return (months & of.day.between(begin, end - 1)) | (
            days & (of.day.between(first, begin - 1) | of.day.between(end, last - 1))
        )


ALWAYS: Final = Period()


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

    users: int
    runs: int
    core_s: float
    in_io_s: float
    waiting_s: float
    first: float | None
    last: float | None


def month_of(day: int) -> int:
    """The first day of a day's month, in days since 1970."""
    if day == UNKNOWN_DAY:
        return day
    return date.fromordinal(day + _EPOCH).replace(day=1).toordinal() - _EPOCH


def _month_after(day: int) -> int:
    """The first day of the next month."""
    of = date.fromordinal(day + _EPOCH)
    if (of.year, of.month) == (date.max.year, date.max.month):
        return date.max.toordinal() + 1 - _EPOCH
    return date(of.year + of.month // 12, of.month % 12 + 1, 1).toordinal() - _EPOCH


def pieces(items: Iterable[Item], most: int = _IN_A_QUERY) -> Iterator[list[Item]]:
    """The items, at most so many at a time."""
    rest = iter(items)
    while piece := list(islice(rest, most)):
        yield piece


def whose(
    table: sa.Table, application: str | None = None, user: str | None = None, processes: int | None = None
) -> Condition:
    """The condition for rows of an application, a user and a number of processes; None: of all."""
    condition: Condition = sa.true()
    for name, value in (("application", application), ("user", user), ("processes", processes)):
        if value is not None:
            condition &= table.c[name] == value
    return condition


_ORDER: Final[Mapping[type, tuple[str, ...]]] = {
    AccountedJob: ("job",), Letter: ("written", "application", "user"), Measurement: ("digest", "position"),
    Source: ("path",), StoredRun: ("digest",), Verdict: ("digest",),
}


def rows(
    connection: sa.Connection, kind: type[Row], where: Condition | None = None, order: Sequence[Any] = ()
) -> Iterator[Row]:
    """The rows of a kind that fulfil a condition, by default all; in the order of their keys if none is given."""
    of = tables.OF_ROWS[kind].c
    query = _select(kind, where, order or [of[name] for name in _ORDER[kind]])
    return (kind.of(row) for row in connection.execute(query.execution_options(yield_per=1000)))


def rows_with(connection: sa.Connection, kind: type[Row], digests: Iterable[str]) -> Iterator[Row]:
    """The rows of a kind about these runs, in any order."""
    return (kind.of(row) for row in among(connection, _select(kind), tables.OF_ROWS[kind].c.digest, digests))


def among(
    connection: sa.Connection, query: sa.Select[Any], column: sa.ColumnElement[Any], values: Iterable[str]
) -> Iterator[Any]:
    """The results of a query for rows in which a column has one of many values."""
    for some in pieces(values):
        yield from connection.execute(query.where(column.in_(some)))


def _select(kind: type[AnyRow], where: Condition | None = None, order: Sequence[Any] = ()) -> sa.Select[Any]:
    columns = tables.OF_ROWS[kind].c
    query = sa.select(*(columns[name] for name in kind.__slots__))
    return (query if where is None else query.where(where)).order_by(*order)


def known_files(connection: sa.Connection) -> dict[str, tuple[int, int]]:
    """Size and modification time of each examined file, by its key."""
    of = tables.sources.c
    known = connection.execute(sa.select(of.place, of.size, of.changed_ns))
    return {place: (size, changed) for place, size, changed in known}


def telling_runs(connection: sa.Connection, pairs: Sequence[tuple[str, str]]) -> list[StoredRun]:
    """For each pair (application, user), the most expensive run, and those at the quartiles of its costs."""
    of = tables.runs.c
    by_digest: dict[str, StoredRun] = {}
    for application, user in pairs:
        own = whose(tables.runs, application, user) & (of.waiting_s > 0)
        number = connection.execute(sa.select(sa.func.count()).where(own)).scalar_one()
        ordered = _select(StoredRun, own, (of.waiting_s.desc(), of.digest))
        for place in {0, number // 4, number // 2, 3 * number // 4} if number else ():
            run = StoredRun.of(connection.execute(ordered.limit(1).offset(place)).one())
            by_digest[run.digest] = run
    return list(by_digest.values())


def costliest_runs(
    connection: sa.Connection, application: str, user: str | None, period: Period, most: int
) -> list[StoredRun]:
    """The runs of an application that waited longest, the most expensive first."""
    of = tables.runs.c
    costs = (sa.func.coalesce(of.waiting_s, 0.0).desc(), sa.func.coalesce(of.in_io_s, 0.0).desc())
    # Selected from the index alone, which is a tenth of the runs' own rows.
    chosen = sa.select(of.id).where(whose(tables.runs, application, user) & period.of(of.submitted))
    chosen = chosen.order_by(*costs, of.id).limit(most)
    return list(rows(connection, StoredRun, of.id.in_(chosen), (*costs, of.digest.desc())))


def figures_of(
    connection: sa.Connection, names: Sequence[str], application: str | None = None, user: str | None = None
) -> list[tuple[Any, ...]]:
    """Columns of an application's runs, or of all, that have a start time; the oldest first."""
    of = tables.runs.c
    own = whose(tables.runs, application, user) & of.submitted.is_not(None)
    query = sa.select(*(of[name] for name in names)).where(own).order_by(of.submitted, of.digest)
    return list(map(tuple, connection.execute(query)))


_ROWS_AT_ONCE: Final = 10_000
_FIGURES: Final = 5
_UNKNOWN: Final = -1e308
"""A number in place of null, which numpy does not accept in rows."""


def category_figures(
    connection: sa.Connection, application: str, user: str | None, period: Period
) -> Iterator[tuple[str, int, Floats]]:
    """User, processes, and figures of each category's runs, the oldest first, shape (5, runs).

    Figures are `submitted`, `runtime_s`, `in_io_s`, `waiting_s` and bytes moved. Unknown ones are NaN, unknown bytes 0.
    They are arrays, because objects would be too slow for millions of runs.
    """
    of = tables.runs.c
    key = (of.user, of.processes)
    own = whose(tables.runs, application, user) & period.of(of.submitted)
    categories = connection.execute(sa.select(*key, sa.func.count()).where(own).group_by(*key).order_by(*key)).all()
    known = [sa.func.coalesce(column, _UNKNOWN) for column in (of.submitted, of.runtime_s, of.in_io_s, of.waiting_s)]
    read, written = (sa.func.coalesce(sa.cast(column, sa.Double), 0.0) for column in (of.bytes_read, of.bytes_written))
    # Two queries in the order of an index with all these columns: reading names with each run takes twice as long.
    ordered = sa.select(*known, read + written).where(own).order_by(*key, of.submitted)
    figures = np.empty((_FIGURES, sum(runs for *_, runs in categories)))
    # The driver's own tuples, because numpy takes ten times as long for SQLAlchemy's rows.
    cursor: Any = connection.execute(ordered).cursor
    fetched = iter(cursor)
    for begin in range(0, figures.shape[1], _ROWS_AT_ONCE):
        some = np.fromiter(chain.from_iterable(islice(fetched, _ROWS_AT_ONCE)), np.float64)
        figures[:, begin : begin + _ROWS_AT_ONCE] = some.reshape(-1, _FIGURES).T
    figures[figures == _UNKNOWN] = np.nan
    end = 0
    for name, processes, runs in categories:
        begin, end = end, end + runs
        yield name, processes, figures[:, begin:end]


def target_times(connection: sa.Connection, period: Period) -> Iterator[tuple[str, str, str, int, str | None, str]]:
    """Mount, application, user, processes, job and times on storage targets, for each run that has these times."""
    of = tables.runs.c
    columns = (of.mount, of.application, of.user, of.processes, of.job, of.target_times)
    known = of.target_times.is_not(None) & period.of(of.submitted)
    yield from map(tuple, connection.execute(sa.select(*columns).where(known).order_by(of.digest)))


def replayable(connection: sa.Connection, period: Period, mount: str | None) -> list[str]:
    """Digests of the runs that have a start and an I/O time, on a file system or on all; the oldest first."""
    of = tables.runs.c
    known = of.submitted.is_not(None) & (of.slowest_s > 0) & (of.runtime_s > 0) & period.of(of.submitted)
    own = sa.true() if mount is None else of.mount == mount
    return list(connection.execute(sa.select(of.digest).where(known & own).order_by(of.submitted, of.digest)).scalars())


def target_numbers(connection: sa.Connection, digests: Sequence[str]) -> set[int]:
    """Numbers of the storage targets that files of these runs are on."""
    of = tables.runs.c
    texts = among(connection, sa.select(of.target_times).where(of.target_times.is_not(None)), of.digest, digests)
    return {target for (text,) in texts for target, *_ in json.loads(text)}


def pages(connection: sa.Connection, table: sa.Table, key: str, most: int) -> Iterator[list[dict[str, Any]]]:
    """All rows of a table ordered by a key, `most` at a time; they may change meanwhile, but not their keys."""
    of = table.c[key]
    last: Any = None
    while True:
        more: Condition = sa.true() if last is None else of > last
        some = connection.execute(sa.select(table).where(more).order_by(of).limit(most)).mappings().all()
        if not some:
            return
        last = some[-1][key]
        yield [dict(row) for row in some]


def number_of(connection: sa.Connection, table: sa.Table) -> int:
    """The number of rows of a table."""
    return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


def damaged(connection: sa.Connection) -> list[Source]:
    """Files that could not be read, ordered by path."""
    of = tables.sources.c
    return list(rows(connection, Source, of.reason.is_not(None), (of.path,)))


def count_damaged(connection: sa.Connection) -> int:
    """The number of files that could not be read."""
    return connection.execute(sa.select(sa.func.count()).where(tables.sources.c.reason.is_not(None))).scalar_one()


def paths_of(connection: sa.Connection, digests: Sequence[str]) -> dict[str, list[str]]:
    """The files of runs by digest, ordered by path; a copied run has several."""
    paths: dict[str, list[str]] = {digest: [] for digest in digests}
    of = tables.sources.c
    for digest, path in among(connection, sa.select(of.digest, of.path).order_by(of.path), of.digest, digests):
        paths[digest].append(path)
    return paths


def verdicts(connection: sa.Connection) -> list[tuple[Verdict, StoredRun]]:
    """The possible saving of each judged run."""
    judged, of = tables.judged.c, tables.runs.c
    names = len(Verdict.__slots__)
    columns = [*(judged[name] for name in Verdict.__slots__), *(of[name] for name in StoredRun.__slots__)]
    query = sa.select(*columns).join(tables.runs, of.digest == judged.digest).order_by(judged.digest)
    return [(Verdict.of(row[:names]), StoredRun.of(row[names:])) for row in connection.execute(query)]


def verdicts_of(connection: sa.Connection, digests: Sequence[str]) -> dict[str, Verdict]:
    """The possible saving of these runs by digest, if judged."""
    return {verdict.digest: verdict for verdict in rows_with(connection, Verdict, digests)}


def profile_content(connection: sa.Connection, digest: str) -> bytes | None:
    """The packed profile of a run; None if none was made."""
    of = tables.profiles.c
    content = connection.execute(sa.select(of.content).where(of.digest == digest)).scalar()
    return None if content is None else bytes(content)


def file_system_of(connection: sa.Connection, digest: str) -> str:
    """The type of the file system with most of a run's I/O time; empty if unknown."""
    of = tables.runs.c
    return str(connection.execute(sa.select(of.file_system).where(of.digest == digest)).scalar() or "")


def contents(connection: sa.Connection, table: sa.Table) -> Iterator[tuple[str, bytes]]:
    """Everything packed in a table, with its run's digest."""
    of = table.c
    for digest, content in connection.execute(sa.select(of.digest, of.content).order_by(of.digest)):
        yield digest, bytes(content)


def latest_digests(connection: sa.Connection, application: str, user: str, processes: int, most: int) -> list[str]:
    """The last runs of a category, the oldest of them first; those of unknown time precede all others."""
    of = tables.runs.c
    latest = connection.execute(
        sa.select(of.digest) .where(whose(tables.runs, application, user, processes))
        .order_by(of.submitted.is_(None), of.submitted.desc(), of.digest.desc()) .limit(most)
    )
    return list(latest.scalars())[::-1]


def creations_of(connection: sa.Connection, digests: Sequence[str]) -> dict[str, bytes]:
    """The packed creations of runs by digest, if known."""
    of = tables.creations.c
    known = among(connection, sa.select(of.digest, of.content), of.digest, digests)
    return {digest: bytes(content) for digest, content in known}


def measurements(connection: sa.Connection, machine: str | None = None) -> list[Measurement]:
    """Measurements of all sessions of `vani tune`, or of those on a machine, the latest first."""
    of = tables.measured.c
    own = None if machine is None else of.machine == machine
    return list(rows(connection, Measurement, own, (of.ended.desc(), of.digest, of.position)))


def count_jobs_with_runs(connection: sa.Connection, jobs: Sequence[str]) -> int:
    """Number of these jobs that have runs."""
    of = tables.runs.c
    counted = among(connection, sa.select(sa.func.count(sa.distinct(of.job))), of.job, dict.fromkeys(jobs))
    return sum(number for (number,) in counted)


def fact(connection: sa.Connection, name: str) -> str | None:
    """A fact about the whole store; None if unknown."""
    of = tables.facts.c
    return connection.execute(sa.select(of.value).where(of.name == name)).scalar()


def groups(connection: sa.Connection, by: str, period: Period) -> list[Group]:
    """Sums over a period's runs by a row of `GROUPS`, separately for each pair of application and user."""
    if by in ("account", "qos"):
        return _groups_of_jobs(connection, by, period)
    of = tables.sums.c
    columns = [of[name] for name in GROUPS[by]]
    pair = [of.application, of.user]
    summed = connection.execute(
        sa.select(*columns, *pair, *_costs()).where(period.of_sums()).group_by(*dict.fromkeys([*columns, *pair]))
    )
    wide = len(columns)
    return [Group(tuple(row[:wide]), (row[wide], row[wide + 1]), *row[wide + 2 :]) for row in summed]


def _groups_of_jobs(connection: sa.Connection, by: str, period: Period) -> list[Group]:
    """Sums by a column of the accounting, which reads every run. Runs whose job is missing there have no name."""
    of = tables.runs.c
    key = (sa.func.coalesce(tables.jobs.c[by], ""), of.application, of.user)
    costs = (of.processes * sa.func.coalesce(of.runtime_s, 0.0), of.in_io_s, of.waiting_s)
    summed = connection.execute(
        sa.select(*key, sa.func.count(), *map(sum_of, costs))
        .select_from(tables.runs.outerjoin(tables.jobs, tables.jobs.c.job == of.job))
        .where(period.of(of.submitted))
        .group_by(*key)
    )
    return [Group((row[0],), (row[1], row[2]), *row[3:]) for row in summed]


def sum_of(cost: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """The sum of a cost; 0 without rows."""
    return sa.func.coalesce(sa.func.sum(cost), 0.0)


def _costs() -> list[sa.ColumnElement[Any]]:
    """Runs, core-seconds, seconds in I/O and waiting."""
    of = tables.sums.c
    # In PostgreSQL, sums of integers are decimals.
    runs = sa.cast(sa.func.coalesce(sa.func.sum(of.runs), 0), sa.BigInteger)
    return [runs, *map(sum_of, (of.core_s, of.in_io_s, of.waiting_s))]


def whole(connection: sa.Connection, period: Period) -> Whole:
    """Sums over all runs of a period."""
    of = tables.sums.c
    users, first, last = sa.func.count(sa.distinct(of.user)), sa.func.min(of.first), sa.func.max(of.last)
    return Whole(*connection.execute(sa.select(users, *_costs(), first, last).where(period.of_sums())).one())


def months(connection: sa.Connection) -> list[tuple[int | None, int, int]]:
    """First day (since 1970), runs and users of each month; the day is None for runs with an unknown start."""
    of = tables.sums.c
    summed = connection.execute(
        sa.select(of.day, _costs()[0], sa.func.count(sa.distinct(of.user))) .where(of.unit == "month")
        .group_by(of.day) .order_by(of.day)
    )
    return [(day if day >= 0 else None, runs, users) for day, runs, users in summed]


def trend(connection: sa.Connection, unit: str, period: Period = ALWAYS) -> list[tuple[int, int, float, float, float]]:
    """First day (since 1970), runs, core-seconds, seconds in I/O and waiting of each `month` or `day` with runs."""
    of = tables.sums.c
    days = Period(*(None if end is None else int(end // DAY_S) for end in (period.since, period.until)))
    chosen = (of.unit == unit) & (of.day >= 0) & days.of(of.day)
    summed = connection.execute(sa.select(of.day, *_costs()).where(chosen).group_by(of.day).order_by(of.day))
    return [tuple(row) for row in summed]


def new_pairs(connection: sa.Connection, since: float) -> list[tuple[Group, float]]:
    """Pairs of application and user whose first run began at `since` or later, with its time."""
    of = tables.sums.c
    first = sa.func.min(of.first)
    summed = connection.execute(
        sa.select(of.application, of.user, first, *_costs()) .where(of.unit == "month")
        .group_by(of.application, of.user) .having(first >= since)
    )
    return [(Group((row[0], row[1]), (row[0], row[1]), *row[3:]), row[2]) for row in summed]


def categories_of(
    connection: sa.Connection, application: str, user: str | None = None, processes: int | None = None, *,
    period: Period = ALWAYS,
) -> list[tuple[str, int, int, float | None]]:
    """User, processes, runs and last time of each category of an application; the latest first."""
    of = tables.sums.c
    own = whose(tables.sums, application, user, processes) & period.of_sums()
    query = sa.select(of.user, of.processes, _costs()[0], sa.func.max(of.last)).where(own)
    categories = map(tuple, connection.execute(query.group_by(of.user, of.processes)))
    return sorted(categories, key=lambda row: (-(row[3] if row[3] is not None else -1e300), row[0], row[1]))


def users(connection: sa.Connection) -> set[str]:
    """All users with runs."""
    return set(connection.execute(sa.select(tables.sums.c.user).distinct()).scalars())
