"""Runs of many jobs in SQLite or PostgreSQL: tables, transactions and queries."""

import sys
from importlib.util import find_spec

from vani.errors import InputError

# Checked before any file is created, and without importing it, because processes that only read logs do not need it.
if (sys.modules["sqlalchemy"] if "sqlalchemy" in sys.modules else find_spec("sqlalchemy")) is None:
    raise InputError("a history of runs needs SQLAlchemy", todo="pip install 'vani-io[centre]'")
