"""Steps from each table layout to the next, as run by Alembic."""
