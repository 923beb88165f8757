"""What Alembic runs for each step; the connection, and its transaction, are the caller's."""

from __future__ import annotations

from alembic import context

from vani.database.runs.tables import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    transactional_ddl=False,  # The caller has begun a transaction that holds all steps.
)
context.run_migrations()
