"""What `vani plan interactions` does, for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vani.database.interactions import Interaction

__all__ = ["plan_interactions"]


def plan_interactions(database: str, path: str | None = None) -> list[Interaction]:
    """What the interaction database keeps of one file, by its exact path, or of all.

    Parameters
    ----------
    database
        A file of SQLite, or the URL of a PostgreSQL or MariaDB database.

    Raises
    ------
    InputError
        A database that cannot be used or holds no interactions.
    """
    from vani.database.interactions import read  # noqa: PLC0415 - loads SQL

    return read(database, path)
