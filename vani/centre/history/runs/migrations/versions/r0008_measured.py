"""Settings that `vani tune` measured."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "history_measured",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("application", sa.Text),
        sa.Column("machine", sa.Text),
        sa.Column("processes", sa.BigInteger),
        sa.Column("nodes", sa.BigInteger),
        sa.Column("setting", sa.Text, nullable=False),
        sa.Column("rules", sa.Text, nullable=False),
        sa.Column("verdict", sa.String(16), nullable=False),
        sa.Column("speedup", sa.Double),
        sa.Column("low", sa.Double),
        sa.Column("high", sa.Double),
        sa.Column("expected", sa.Double),
        sa.Column("runs", sa.BigInteger, nullable=False),
        sa.Column("noise", sa.Double),
        sa.Column("ended", sa.Double, nullable=False),
    )
    op.create_index("history_measured_of_application", "history_measured", ["application", "machine"])
