"""The tables of a history; the fields of the rows in `vani.centre.history.rows` are their columns."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

import sqlalchemy as sa

from vani.centre.history import rows

LAYOUT: Final = 13
"""Version of the tables, stored as the fact `layout`. A store with another one is refused."""

metadata = sa.MetaData()


class _Texts(sa.TypeDecorator[tuple[str, ...]]):
    """Several texts, stored as a JSON list."""

    impl = sa.JSON
    cache_ok = True

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> tuple[str, ...]:
        del dialect
        return tuple(value)


_TYPES: Final[Mapping[str, Any]] = {
    "bool": sa.Boolean, "float": sa.Double, "int": sa.BigInteger, "str": sa.Text, "tuple[str, ...]": _Texts,
}


def _table(name: str, row: type, *more: sa.Column[Any] | sa.Index, key: tuple[str, ...] = ()) -> sa.Table:
    """A table with a column for each field of `row`."""
    columns = []
    for field in fields(row):
        # Annotations of that module are strings.
        kind, *none = str(field.type).split(" | ")
        columns.append(
            sa.Column(field.name, _TYPES[kind], primary_key=field.name in key, autoincrement=False, nullable=bool(none))
        )
    return sa.Table(name, metadata, *columns, *more)


runs = _table(
    "history_runs",
    rows.StoredRun,
    sa.Column("id", sa.Integer, primary_key=True),
    # Copies are one run.
    sa.Index("history_runs_digest", "digest", unique=True),
    # All columns that an application's story reads of each run.
    sa.Index(
        "history_runs_of_category", "application", "user", "processes", "submitted", "runtime_s", "in_io_s",
        "waiting_s", "bytes_read", "bytes_written",
    ),
    sa.Index("history_runs_by_time", "submitted"),
    sa.Index("history_runs_of_job", "job"),
)  # fmt: skip

sums = sa.Table(
    "history_sums",
    metadata,
    # `month` or `day`, and its first day in days since 1970; -1 for runs with an unknown start.
    sa.Column("unit", sa.String(5), primary_key=True),
    sa.Column("day", sa.BigInteger, primary_key=True, autoincrement=False),
    *(sa.Column(name, sa.Text, primary_key=True) for name in ("application", "user")),
    sa.Column("processes", sa.BigInteger, primary_key=True, autoincrement=False),
    *(sa.Column(name, sa.Text, primary_key=True) for name in ("file_system", "mount")),
    sa.Column("runs", sa.BigInteger, nullable=False),
    # Seconds: processes times run time, and as in the table of runs.
    *(sa.Column(name, sa.Double, nullable=False) for name in ("core_s", "in_io_s", "waiting_s")),
    # Start of the first and of the last run.
    *(sa.Column(name, sa.Double) for name in ("first", "last")),
    sqlite_with_rowid=False,
)


def _contents(name: str, *more: sa.Column[Any]) -> sa.Table:
    """A table of deflated JSON for each run."""
    digest = sa.Column("digest", sa.String(64), primary_key=True)
    return sa.Table(name, metadata, digest, *more, sa.Column("content", sa.LargeBinary, nullable=False))


profiles = _contents("history_profiles")
creations = _contents("history_creations", sa.Column("files", sa.BigInteger, nullable=False))

sources = _table(
    "history_sources",
    rows.Source,
    # SHA-256 of the path, which may be too long for an index.
    sa.Column("place", sa.String(64), primary_key=True),
    sa.Index("history_sources_of_run", "digest"),
)
judged = _table("history_judged", rows.Verdict, key=("digest",))
letters = _table("history_letters", rows.Letter, key=("application", "user", "written"))
measured = _table(
    "history_measured", rows.Measurement,
    sa.Index("history_measured_of_application", "application", "machine"), key=("digest", "position"),
)
jobs = _table("history_jobs", rows.AccountedJob, key=("job",))

facts = sa.Table(
    "history_facts", metadata, sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

OF_ROWS: Final[Mapping[type, sa.Table]] = {
    rows.StoredRun: runs, rows.Source: sources, rows.Verdict: judged, rows.Letter: letters,
    rows.Measurement: measured, rows.AccountedJob: jobs,
}
"""The table of each kind of row."""
