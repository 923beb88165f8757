"""A mark for savings based on a typical machine's figures. Older savings are dropped, and judged again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.execute("DELETE FROM history_judged")
    op.add_column(
        "history_judged", sa.Column("typical", sa.Boolean, nullable=False, server_default=sa.false())
    )
