"""Runs, the files that they were read from, and whole profiles."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "history_runs",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("uid", sa.BigInteger, nullable=True),
        sa.Column("application", sa.Text, nullable=False),
        sa.Column("processes", sa.BigInteger, nullable=False),
        sa.Column("submitted", sa.Double, nullable=True),
        sa.Column("runtime_s", sa.Double, nullable=True),
        *(
            sa.Column(name, sa.BigInteger, nullable=True)
            for name in (
                "bytes_read", "bytes_written", "reads", "writes", "opens", "metadata", "collective", "independent",
                "files", "shared_files",
            )
        ),
        *(
            sa.Column(name, sa.Double, nullable=True)
            for name in ("read_s", "write_s", "metadata_s", "in_io_s", "slowest_s", "waiting_s")
        ),
        sa.Column("writers", sa.BigInteger, nullable=True),
        sa.Column("file_system", sa.Text, nullable=False),
        sa.Column("mount", sa.Text, nullable=False),
        sa.Column("stripes", sa.BigInteger, nullable=True),
        sa.Column("complete", sa.Boolean, nullable=False),
        sa.UniqueConstraint("digest", name="history_runs_digest"),
    )  # fmt: skip
    op.create_index(
        "history_runs_of_category", "history_runs", ["user", "application", "processes", "submitted"]
    )
    op.create_index("history_runs_by_time", "history_runs", ["submitted"])
    op.create_table(
        "history_profiles",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "history_sources",
        sa.Column("place", sa.String(64), primary_key=True),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("changed_ns", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.String(64), nullable=True),
        sa.Column("reason", sa.Text, nullable=True),
    )
    op.create_index("history_sources_of_run", "history_sources", ["digest"])
    op.create_table(
        "history_facts",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
