"""What to install for a history; this loads none of it."""

from __future__ import annotations

from vani.errors import InputError

__all__ = ["library_missing"]


def library_missing() -> InputError:
    """The error that says what to install."""
    return InputError("a history of runs takes SQLAlchemy and Alembic", todo="pip install 'vani-io[history]'")
