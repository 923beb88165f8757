"""Interactions in a database: stored in one transaction, and read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from vani.centre.database import Address, address_of, engine_of, in_words, readable, replaced, server
from vani.centre.placement_library.interactions.interaction import Interaction, refuse_contradictions
from vani.errors import InputError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_AT_ONCE: Final = 500
"""Paths per statement: each needs two variables, and old versions of SQLite allow 999."""


def store(rows: Iterable[Interaction], database: str) -> list[Interaction]:
    """Store the decisions for files in one transaction, replacing earlier ones for these files.

    A missing SQLite file is created; on a server, the database must exist, and the table is created.

    Returns
    -------
    list
        The rows, by file and extent.

    Raises
    ------
    InputError
        Rows contradict each other, or the database cannot be used, is locked, is read-only or belongs to another
        program.
    """
    checked = refuse_contradictions(rows)
    address = address_of(database)
    with _errors_in_words(address):
        if address.file is None:
            _write(server(address), checked, address)
        else:
            with replaced(address.file) as copy:
                _write(engine_of(copy, "rw"), checked, address)
    return checked


def read(database: str, path: str | None = None) -> list[Interaction]:
    """The stored interactions of one file or of all, by file in the order of storing, and by extent.

    Raises
    ------
    InputError
        The database cannot be used or contains no interactions.
    """
    from sqlalchemy import select  # noqa: PLC0415 - `vani --help` pays for no library

    address = address_of(database)
    engine = server(address) if address.file is None else engine_of(readable(address.file))
    from vani.centre.placement_library.interactions.table import INTERACTIONS, file_hash, from_row  # noqa: PLC0415

    wanted = select(*list(INTERACTIONS.c)[2:]).order_by(INTERACTIONS.c.id)
    if path is not None:
        try:
            wanted = wanted.where(INTERACTIONS.c.file_hash == file_hash(path))
        except UnicodeEncodeError:
            return []
    with _errors_in_words(address), engine.connect() as connection:
        if not _has_table(connection, address):
            raise InputError(
                "contains no interactions", where=address.shown, todo="fill it with `vani plan store`"
            )
        try:
            interactions = [from_row(tuple(row)) for row in connection.execute(wanted)]
        except (TypeError, ValueError) as error:
            raise InputError(
                f"contains invalid rows ({error})", where=address.shown, todo="fill another one"
            ) from error
    return [interaction for interaction in interactions if path is None or interaction.file == path]


def _write(engine: Engine, rows: Sequence[Interaction], address: Address) -> None:
    from sqlalchemy import delete, insert  # noqa: PLC0415

    from vani.centre.placement_library.interactions.table import INTERACTIONS, file_hash, to_row  # noqa: PLC0415

    with engine.begin() as connection:
        if not _has_table(connection, address):
            INTERACTIONS.create(connection, checkfirst=True)
        if connection.dialect.name == "postgresql":
            # Two that store at the same time would both delete first, and both sets of rows would remain.
            connection.exec_driver_sql("LOCK TABLE vani_interaction IN SHARE ROW EXCLUSIVE MODE")
        files = list(dict.fromkeys(row.file for row in rows))
        for begin in range(0, len(files), _AT_ONCE):
            names = files[begin : begin + _AT_ONCE]
            connection.execute(
                delete(INTERACTIONS)
                .where(INTERACTIONS.c.file_hash.in_([file_hash(name) for name in names]))
                .where(INTERACTIONS.c.file_name.in_(names))
            )
        if rows:
            connection.execute(insert(INTERACTIONS), [to_row(row) for row in rows])


def _has_table(connection: Connection, address: Address) -> bool:
    """Whether the table exists; a table of that name with other columns is refused."""
    from sqlalchemy import inspect  # noqa: PLC0415

    from vani.centre.placement_library.interactions.table import INTERACTIONS  # noqa: PLC0415

    inspector = inspect(connection)
    # Excludes views, because reading one might never end.
    if INTERACTIONS.name not in inspector.get_table_names():
        return False
    columns = {column["name"] for column in inspector.get_columns(INTERACTIONS.name)}
    if columns != {column.name for column in INTERACTIONS.c}:
        raise InputError(
            f"its table {INTERACTIONS.name} belongs to another version or program",
            where=address.shown,
            todo="name another database",
        )
    return True


@contextmanager
def _errors_in_words(address: Address) -> Iterator[None]:
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

    try:
        yield
    except (SQLAlchemyError, sqlite3.Error) as error:
        raise in_words(error, address) from error
    except UnicodeError as error:
        raise InputError(
            "contains or names bytes that are not text", where=address.shown, todo="name another one"
        ) from error
