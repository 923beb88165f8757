"""One file for each step; Alembic finds them by their `revision`."""
