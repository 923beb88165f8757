"""Runs of many jobs, in SQLite or PostgreSQL: tables, their versions, and what is asked of them."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from vani.database.runs.libraries import library_missing

# Whoever lacks it is told so before any table is named. Processes that only read logs do without, so nothing is loaded.
if (sys.modules["sqlalchemy"] if "sqlalchemy" in sys.modules else find_spec("sqlalchemy")) is None:
    raise library_missing()
