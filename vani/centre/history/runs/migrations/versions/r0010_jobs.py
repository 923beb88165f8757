"""The job of each run, and jobs of the batch system's accounting."""

from __future__ import annotations

import re

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

_JOB = re.compile(r"_id([1-9][0-9]{0,19})[-_][^/]*$")
"""Pattern of names that Darshan gives its logs."""
_AT_ONCE = 10_000


def upgrade() -> None:
    op.add_column("history_runs", sa.Column("job", sa.String(40), nullable=True))
    op.create_table(
        "history_jobs",
        sa.Column("job", sa.String(40), primary_key=True),
        sa.Column("user", sa.Text),
        sa.Column("account", sa.Text),
        sa.Column("qos", sa.Text),
        sa.Column("partition", sa.Text),
        sa.Column("nodes", sa.BigInteger),
        sa.Column("state", sa.Text),
        sa.Column("started", sa.Double),
        sa.Column("elapsed_s", sa.Double),
    )
    _from_names_of_logs(op.get_bind())
    op.create_index("history_runs_of_job", "history_runs", ["job"])


def _from_names_of_logs(connection: sa.Connection) -> None:
    """Add jobs to existing runs; an anonymised history has no log names, so its runs have no jobs."""
    last = ""
    read = sa.text(
        "SELECT place, path, digest FROM history_sources WHERE place > :last AND digest IS NOT NULL "
        "ORDER BY place LIMIT :most"
    )
    write = sa.text("UPDATE history_runs SET job = :job WHERE digest = :digest AND kind = 'darshan'")
    while rows := connection.execute(read, {"last": last, "most": _AT_ONCE}).all():
        last = rows[-1][0]
        named = [(match[1], row[2]) for row in rows if (match := _JOB.search(row[1]))]
        if named:
            connection.execute(write, [{"job": job, "digest": digest} for job, digest in named])
