"""Letters to users about their applications, and each letter's promise."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import sqlalchemy as sa

from vani.centre.history.runs import tables


@dataclass(frozen=True, slots=True)
class Letter:
    """A letter that was sent.

    Parameters
    ----------
    written
        Start of the day, in seconds since 1970.
    rule, setting
        Its recommendation; empty if there is none.
    low, expected, high
        Shares of the waiting that following it saves; None if no number was promised.
    """

    application: str
    user: str
    written: float
    rule: str
    setting: str
    low: float | None
    expected: float | None
    high: float | None


_COLUMNS: Final = tuple(field.name for field in fields(Letter))


def add_letter(connection: sa.Connection, letter: Letter) -> None:
    """Record a letter, replacing one of the same day about the same application."""
    of = tables.letters.c
    connection.execute(
        sa.delete(tables.letters).where(
            (of.application == letter.application) & (of.user == letter.user) & (of.written == letter.written)
        )
    )
    connection.execute(sa.insert(tables.letters), [{name: getattr(letter, name) for name in _COLUMNS}])


def remove_letters(connection: sa.Connection, user: str, application: str | None = None) -> None:
    """Delete the letters to a user, or those about one application."""
    whose = tables.letters.c.user == user
    if application is not None:
        whose &= tables.letters.c.application == application
    connection.execute(sa.delete(tables.letters).where(whose))


def letters(connection: sa.Connection, application: str | None = None, user: str | None = None) -> list[Letter]:
    """Letters about an application, or about all; the oldest first."""
    of = tables.letters.c
    whose: sa.ColumnElement[bool] = sa.true()
    if application is not None:
        whose &= of.application == application
    if user is not None:
        whose &= of.user == user
    ordered = sa.select(*(of[name] for name in _COLUMNS)).where(whose)
    rows = connection.execute(ordered.order_by(of.written, of.application, of.user))
    return [Letter(*row) for row in rows]
