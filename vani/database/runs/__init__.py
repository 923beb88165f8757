"""Runs of many jobs, in SQLite or PostgreSQL: tables, their versions, and their queries."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from vani.errors import InputError

# Checked before any file is made, and without loading them, since processes that only read logs do not need them.
for name in ("alembic", "sqlalchemy"):
    if (sys.modules[name] if name in sys.modules else find_spec(name)) is None:
        raise InputError(
            "a history of runs takes SQLAlchemy and Alembic", todo="pip install 'vani-io[history]'"
        )
