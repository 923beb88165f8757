"""The tables of runs in the newest layout, to which `migrations` upgrades older ones."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

VERSION_TABLE: Final = "history_version"
NEWEST: Final = "0010"
"""The last of the steps in `migrations/versions`."""

metadata = sa.MetaData()

runs = sa.Table(
    "history_runs",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    # SHA-256 of the run's source: copies are one run.
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("user", sa.Text, nullable=False),
    sa.Column("uid", sa.BigInteger),
    sa.Column("application", sa.Text, nullable=False),
    sa.Column("processes", sa.BigInteger, nullable=False),
    # Seconds since 1970.
    sa.Column("submitted", sa.Double),
    sa.Column("runtime_s", sa.Double),
    sa.Column("bytes_read", sa.BigInteger),
    sa.Column("bytes_written", sa.BigInteger),
    sa.Column("reads", sa.BigInteger),
    sa.Column("writes", sa.BigInteger),
    sa.Column("opens", sa.BigInteger),
    sa.Column("metadata", sa.BigInteger),
    sa.Column("collective", sa.BigInteger),
    sa.Column("independent", sa.BigInteger),
    sa.Column("files", sa.BigInteger),
    sa.Column("shared_files", sa.BigInteger),
    sa.Column("read_s", sa.Double),
    sa.Column("write_s", sa.Double),
    sa.Column("metadata_s", sa.Double),
    # Seconds in I/O calls: of all processes; of the slowest one; the latter times the number of processes.
    sa.Column("in_io_s", sa.Double),
    sa.Column("slowest_s", sa.Double),
    sa.Column("waiting_s", sa.Double),
    sa.Column("writers", sa.BigInteger),
    sa.Column("file_system", sa.Text, nullable=False),
    sa.Column("mount", sa.Text, nullable=False),
    sa.Column("stripes", sa.BigInteger),
    sa.Column("complete", sa.Boolean, nullable=False),
    # JSON: number, files, seconds and bytes of each storage target.
    sa.Column("target_times", sa.Text),
    # The batch system's number for its job.
    sa.Column("job", sa.String(40)),
    sa.UniqueConstraint("digest", name="history_runs_digest"),
    # All columns that an application's story reads of each run.
    sa.Index(
        "history_runs_of_category", "application", "user", "processes", "submitted", "runtime_s", "in_io_s",
        "waiting_s", "bytes_read", "bytes_written",
    ),
    sa.Index("history_runs_by_time", "submitted"),
    sa.Index("history_runs_of_job", "job"),
)

sums = sa.Table(
    "history_sums",
    metadata,
    # `month` or `day`, and its first day in days since 1970; -1 for runs with an unknown start.
    sa.Column("unit", sa.String(5), primary_key=True),
    sa.Column("day", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("application", sa.Text, primary_key=True),
    sa.Column("user", sa.Text, primary_key=True),
    sa.Column("processes", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("file_system", sa.Text, primary_key=True),
    sa.Column("mount", sa.Text, primary_key=True),
    sa.Column("runs", sa.BigInteger, nullable=False),
    # Seconds: processes times run time, and as in the table of runs.
    sa.Column("core_s", sa.Double, nullable=False),
    sa.Column("in_io_s", sa.Double, nullable=False),
    sa.Column("waiting_s", sa.Double, nullable=False),
    # Start of the first and of the last run.
    sa.Column("first", sa.Double),
    sa.Column("last", sa.Double),
    sqlite_with_rowid=False,
)

profiles = sa.Table(
    "history_profiles",
    metadata,
    sa.Column("digest", sa.String(64), primary_key=True),
    # JSON, deflated.
    sa.Column("content", sa.LargeBinary, nullable=False),
)

sources = sa.Table(
    "history_sources",
    metadata,
    # SHA-256 of the path, which may be too long for an index.
    sa.Column("place", sa.String(64), primary_key=True),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("changed_ns", sa.BigInteger, nullable=False),
    # The run that was read from it; null if it is damaged, for the given reason.
    sa.Column("digest", sa.String(64)),
    sa.Column("reason", sa.Text),
    sa.Index("history_sources_of_run", "digest"),
)

judged = sa.Table(
    "history_judged",
    metadata,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("system", sa.Text, nullable=False),
    # Expected seconds of the slowest process saved by following the advice.
    sa.Column("saved_low_s", sa.Double, nullable=False),
    sa.Column("saved_s", sa.Double, nullable=False),
    sa.Column("saved_high_s", sa.Double, nullable=False),
    # The recommendation that saves most; empty if there is none.
    sa.Column("rule", sa.Text, nullable=False),
    sa.Column("setting", sa.Text, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    # JSON: lines to paste.
    sa.Column("lines", sa.Text, nullable=False),
    # Whether the machine's figures are those of a typical one.
    sa.Column("typical", sa.Boolean, nullable=False, server_default=sa.false()),
)

creations = sa.Table(
    "history_creations",
    metadata,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("files", sa.BigInteger, nullable=False),
    # JSON, deflated.
    sa.Column("content", sa.LargeBinary, nullable=False),
)

letters = sa.Table(
    "history_letters",
    metadata,
    sa.Column("application", sa.Text, primary_key=True),
    sa.Column("user", sa.Text, primary_key=True),
    # Seconds since 1970.
    sa.Column("written", sa.Double, primary_key=True),
    # Its recommendation; empty if there is none.
    sa.Column("rule", sa.Text, nullable=False),
    sa.Column("setting", sa.Text, nullable=False),
    # Shares of the waiting that it promises to save; null if it gives no number.
    sa.Column("low", sa.Double),
    sa.Column("expected", sa.Double),
    sa.Column("high", sa.Double),
)

measured = sa.Table(
    "history_measured",
    metadata,
    # Digest of a session of `vani tune`, and the position of a setting in it.
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("user", sa.Text, nullable=False),
    sa.Column("application", sa.Text),
    sa.Column("machine", sa.Text),
    sa.Column("processes", sa.BigInteger),
    sa.Column("nodes", sa.BigInteger),
    # JSON: a setting, and the rules that recommended it.
    sa.Column("setting", sa.Text, nullable=False),
    sa.Column("rules", sa.Text, nullable=False),
    sa.Column("verdict", sa.String(16), nullable=False),
    # Speed-up of the whole run relative to the run without the setting, its interval, and the expected one.
    sa.Column("speedup", sa.Double),
    sa.Column("low", sa.Double),
    sa.Column("high", sa.Double),
    sa.Column("expected", sa.Double),
    sa.Column("runs", sa.BigInteger, nullable=False),
    sa.Column("noise", sa.Double),
    # Seconds since 1970.
    sa.Column("ended", sa.Double, nullable=False),
    sa.Index("history_measured_of_application", "application", "machine"),
)

planned = sa.Table(
    "history_planned",
    metadata,
    # The batch system's number for the job, and its end in seconds since 1970, because numbers are reused.
    sa.Column("job", sa.String(32), primary_key=True),
    sa.Column("ended", sa.Double, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("user", sa.Text, nullable=False),
    sa.Column("nodes", sa.BigInteger, nullable=False),
    # From the run in its log; null without a log.
    sa.Column("digest", sa.String(64)),
    sa.Column("application", sa.Text),
    sa.Column("processes", sa.BigInteger),
    # Settings that the job got, and whether they differed from earlier ones.
    sa.Column("stripe_count", sa.BigInteger),
    sa.Column("io_nodes", sa.BigInteger),
    sa.Column("changed", sa.Boolean, nullable=False),
    # Seconds of the slowest process in I/O calls: without the change, as expected and its range, and as measured.
    sa.Column("before", sa.Double),
    sa.Column("expected", sa.Double),
    sa.Column("low", sa.Double),
    sa.Column("high", sa.Double),
    sa.Column("measured", sa.Double),
    # The method of the estimate, and the reason for null figures.
    sa.Column("method", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Index("history_planned_of_name", "name", "user"),
)

jobs = sa.Table(
    "history_jobs",
    metadata,
    # From the batch system's accounting.
    sa.Column("job", sa.String(40), primary_key=True),
    sa.Column("user", sa.Text),
    sa.Column("account", sa.Text),
    sa.Column("qos", sa.Text),
    sa.Column("partition", sa.Text),
    sa.Column("nodes", sa.BigInteger),
    sa.Column("state", sa.Text),
    # Start in seconds since 1970, and seconds.
    sa.Column("started", sa.Double),
    sa.Column("elapsed_s", sa.Double),
)

facts = sa.Table(
    "history_facts",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
