"""Sums of runs by month and by day, and an index with all columns that an application's story reads."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from vani.centre.history.runs.sums import remake_sums

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.drop_index("history_runs_of_category", "history_runs")
    op.create_index(
        "history_runs_of_category",
        "history_runs",
        [
            "application", "user", "processes", "submitted", "runtime_s", "in_io_s", "waiting_s", "bytes_read",
            "bytes_written",
        ],
    )  # fmt: skip
    op.create_table(
        "history_sums",
        sa.Column("unit", sa.String(5), primary_key=True),
        sa.Column("day", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("application", sa.Text, primary_key=True),
        sa.Column("user", sa.Text, primary_key=True),
        sa.Column("processes", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("file_system", sa.Text, primary_key=True),
        sa.Column("mount", sa.Text, primary_key=True),
        sa.Column("runs", sa.BigInteger, nullable=False),
        sa.Column("core_s", sa.Double, nullable=False),
        sa.Column("in_io_s", sa.Double, nullable=False),
        sa.Column("waiting_s", sa.Double, nullable=False),
        sa.Column("first", sa.Double),
        sa.Column("last", sa.Double),
        sqlite_with_rowid=False,
    )
    remake_sums(op.get_bind())
