"""The possible saving of a run, from its advice."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "history_judged",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("system", sa.Text, nullable=False),
        sa.Column("saved_low_s", sa.Double, nullable=False),
        sa.Column("saved_s", sa.Double, nullable=False),
        sa.Column("saved_high_s", sa.Double, nullable=False),
        sa.Column("rule", sa.Text, nullable=False),
        sa.Column("setting", sa.Text, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("lines", sa.Text, nullable=False),
    )
