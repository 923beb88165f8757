"""The times of a run's files on each storage target."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("history_runs", sa.Column("target_times", sa.Text, nullable=True))
