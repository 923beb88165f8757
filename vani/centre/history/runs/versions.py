"""Table layouts: which one a store has, and the steps to the newest."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from vani.centre.history.runs.tables import NEWEST, VERSION_TABLE, metadata
from vani.errors import StoreError

if TYPE_CHECKING:
    from alembic.config import Config

    from vani.centre.history.runs.connect import Store

def version_of(connection: sa.Connection) -> str | None:
    """The layout of a store; None if it has no tables of runs."""
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    version = connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    return None if version is None else str(version)


def refuse_other_versions(connection: sa.Connection, name: str) -> None:
    """Raise StoreError if a store does not have the newest layout."""
    version = version_of(connection)
    if version is None:
        raise StoreError(
            "is another program's database, without runs",
            where=name,
            todo="name another place for the history",
        )
    if version > NEWEST:
        raise _newer(version, name)
    if version < NEWEST:
        raise StoreError(
            f"has layout {int(version)}, and this Vani needs {int(NEWEST)}",
            where=name,
            todo="`vani history upgrade` keeps a copy and brings it there",
        )


def _newer(version: str, name: str) -> StoreError:
    number = int(version) if version.isdecimal() else version
    return StoreError(
        f"has layout {number}, which is newer than this Vani knows ({int(NEWEST)})",
        where=name,
        todo="update Vani",
    )


def upgrade(connection: sa.Connection, to: str = NEWEST) -> None:
    """Take the steps to a layout, inside the caller's transaction."""
    from alembic import command  # noqa: PLC0415 - slow to load

    command.upgrade(_config(connection), to)


def upgrade_store(store: Store) -> tuple[str, str | None]:
    """Upgrade a store to the newest layout, after making a copy of it.

    Returns
    -------
    tuple
        Its previous layout, and the place of the copy; None if it already had the newest layout.

    Raises
    ------
    StoreError
        It is not a store, is a newer one, or cannot be written.
    """
    with store.writing(newest=False) as connection:
        version = version_of(connection)
        if version is None:
            raise StoreError("is not a history", where=store.name, todo="`vani history add PATH` makes one")
        if version > NEWEST:
            raise _newer(version, store.name)
        if version == NEWEST:
            return version, None
        copy = _copy(connection, store, version)
        upgrade(connection)
        return version, copy


def _copy(connection: sa.Connection, store: Store, version: str) -> str:
    """Copy the store unchanged: to another file, or to other tables on the server."""
    when = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    if store.file is None:
        suffix = f"before_{when.replace('-', '_')}"
        for table in set(sa.inspect(connection).get_table_names()) & set(metadata.tables):
            connection.exec_driver_sql(f"CREATE TABLE {table}_{suffix} AS TABLE {table}")
        return f"the tables history_*_{suffix}"
    place = store.file.with_name(f"{store.file.name}.layout-{int(version)}.{when}")
    # No one else writes, because the caller's transaction has locked the file.
    partial = place.with_name(f".{place.name}.partial")
    shutil.copy2(store.file, partial)
    partial.replace(place)
    return str(place)


def _config(connection: sa.Connection) -> Config:
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
