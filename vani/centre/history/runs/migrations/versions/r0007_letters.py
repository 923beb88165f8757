"""Letters to users: the time and the promise of each."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "history_letters",
        sa.Column("application", sa.Text, primary_key=True),
        sa.Column("user", sa.Text, primary_key=True),
        sa.Column("written", sa.Double, primary_key=True),
        sa.Column("rule", sa.Text, nullable=False),
        sa.Column("setting", sa.Text, nullable=False),
        sa.Column("low", sa.Double),
        sa.Column("expected", sa.Double),
        sa.Column("high", sa.Double),
    )
