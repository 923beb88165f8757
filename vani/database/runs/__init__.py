"""Runs of many jobs, in SQLite or PostgreSQL: tables, their versions, and what is asked of them."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from vani.database.runs.libraries import library_missing

# Whoever lacks them is told so before any file is made. Processes that only read logs do without, so nothing is loaded.
for name in ("alembic", "sqlalchemy"):
    if (sys.modules[name] if name in sys.modules else find_spec(name)) is None:
        raise library_missing()
