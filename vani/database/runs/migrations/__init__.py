"""Steps from each layout of the tables to the next, as Alembic runs them."""
