"""The script that Alembic runs for each step; connection and transaction belong to the caller."""

from __future__ import annotations

from alembic import context

from vani.centre.history.runs.tables import VERSION_TABLE, metadata


def take_steps() -> None:
    """Take the steps requested of Alembic."""
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        version_table=VERSION_TABLE,
        transactional_ddl=False,  # The caller's transaction covers all steps.
    )
    context.run_migrations()


# Missing if this is not imported by Alembic.
if getattr(context, "config", None) is not None:
    take_steps()
