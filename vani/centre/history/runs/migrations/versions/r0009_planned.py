"""Planned jobs: expected and actual figures of each."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "history_planned",
        sa.Column("job", sa.String(32), primary_key=True),
        sa.Column("ended", sa.Double, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("nodes", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.String(64)),
        sa.Column("application", sa.Text),
        sa.Column("processes", sa.BigInteger),
        sa.Column("stripe_count", sa.BigInteger),
        sa.Column("io_nodes", sa.BigInteger),
        sa.Column("changed", sa.Boolean, nullable=False),
        sa.Column("before", sa.Double),
        sa.Column("expected", sa.Double),
        sa.Column("low", sa.Double),
        sa.Column("high", sa.Double),
        sa.Column("measured", sa.Double),
        sa.Column("method", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
    )
    op.create_index("history_planned_of_name", "history_planned", ["name", "user"])
