"""Runs of many jobs, in SQLite or PostgreSQL: tables, their versions, and what is asked of them."""

from __future__ import annotations

from vani.database.runs.libraries import library_missing

try:
    import sqlalchemy  # noqa: F401 - whoever lacks it is told so before any table is named
except ImportError:
    raise library_missing() from None
