"""Runs of many jobs, in SQLite or PostgreSQL: tables, their versions, and queries."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from vani.errors import InputError

# Checked before any file is created, and without importing them, because processes that only read logs need neither.
for name in ("alembic", "sqlalchemy"):
    if (sys.modules[name] if name in sys.modules else find_spec(name)) is None:
        raise InputError(
            "a history of runs takes SQLAlchemy and Alembic", todo="pip install 'vani-io[history]'"
        )
