"""The entry point to a store of runs: an SQLite file, or a PostgreSQL server.

Each call of `writing` is one transaction, so nothing is half-written. Several may write at once; they wait for each
other.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from vani.centre.database import READ_ONLY, address_of, in_words
from vani.centre.history.runs import read, write
from vani.centre.history.runs.tables import LAYOUT, facts, metadata
from vani.errors import StoreError, one_line
from vani.site import setting

PATIENCE_S: Final = 30.0
"""Time that one writer waits for another."""

_MAGIC: Final = b"SQLite format 3\0"
_NO_HISTORY: Final = ("is not a history", "`vani history add PATH` makes one")
_ANOTHER: Final = "name another place for the history"


def default_place() -> str:
    """The location in VANI_HISTORY or in a settings file (`vani.site`); by default in the user's data folder."""
    named = setting("history").value
    if named:
        return named
    data = os.environ.get("XDG_DATA_HOME")
    folder = Path(data) if data and Path(data).is_absolute() else Path.home() / ".local" / "share"
    return str(folder / "vani" / "history.sqlite")


class Store:
    """A store of runs, opened on first use.

    Parameters
    ----------
    place
        A file path, or `postgresql://...`; None takes `default_place()`.
    group
        Group that may read a new file; None: only its owner may.

    Raises
    ------
    InputError
        The URL is of something else, or libraries are missing.
    """

    def __init__(
        self, place: str | Path | None = None, *, patience_s: float = PATIENCE_S, group: str | None = None
    ) -> None:
        self.group = group
        self.address = address_of(str(default_place() if place is None else place))
        self.file, self.name = self.address.file, one_line(self.address.shown)
        if self.file is None:
            assert self.address.url is not None
            # From a server without an encoding, text would arrive as bytes.
            options: dict[str, Any] = {"client_encoding": "utf8"}
            self.engine = sa.create_engine(self.address.url, poolclass=sa.NullPool, connect_args=options)
            return
        options = {"timeout": patience_s, "check_same_thread": False}
        url = sa.URL.create("sqlite", database=str(self.file))
        self.engine = sa.create_engine(url, poolclass=sa.NullPool, connect_args=options)
        sa.event.listen(self.engine, "connect", _prepare_sqlite)
        sa.event.listen(self.engine, "begin", _begin_sqlite)

    def exists(self) -> bool:
        """Whether its place exists; a server is assumed to exist."""
        return self.file is None or (self.file.exists() and self.file.stat().st_size > 0)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A consistent state of the store, independent of concurrent writers.

        Raises
        ------
        StoreError
            The store is missing, has another layout, or cannot be read.
        """
        with self._explained():
            self._refuse_foreign()
            if not self.exists():
                raise self._fault(*_NO_HISTORY)
            with self.engine.connect().execution_options(vani_writes=False) as connection, connection.begin():
                # All queries see the state of the first one. SQLite's transactions do so anyway.
                one_state = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
                connection.exec_driver_sql("PRAGMA query_only = ON" if self.file else one_state)
                self._refuse_other_layouts(connection)
                yield connection

    @contextmanager
    def writing(self, *, make: bool = False) -> Iterator[sa.Connection]:
        """One transaction: all of it is written, or nothing.

        Parameters
        ----------
        make
            Create the store if there is none.

        Raises
        ------
        StoreError
            The store is missing, has another layout or cannot be written, or others write for too long.
        """
        with self._explained():
            self._refuse_foreign()
            if make and self.file is not None:
                self.file.parent.mkdir(parents=True, exist_ok=True)
                self._create(self.file)
            elif not self.exists():
                raise self._fault(*_NO_HISTORY)
            # SQLite reports this only on a write, before which a hundred thousand logs may have been read.
            if self.file is not None and self.file.exists() and not _is_writable(self.file):
                raise self._fault(*READ_ONLY)
            with self._removed_if_empty(), self.engine.connect() as connection, connection.begin():
                if make and not _is_history(connection):
                    if self.file is None:
                        # Two processes may create a server's tables at the same time.
                        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(8656)")
                    if not _is_history(connection):
                        self._refuse_others_tables(connection)
                        metadata.create_all(connection)
                        write.set_fact(connection, "layout", str(LAYOUT))
                self._refuse_other_layouts(connection)
                yield connection

    def _create(self, file: Path) -> None:
        """Create an empty file for the group or for its owner alone, since a history has all users' paths."""
        try:
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return
        except PermissionError as error:
            raise self._fault("cannot be opened", "name a file in a folder that you may write to") from error
        os.close(handle)
        if self.group is not None:
            try:
                shutil.chown(file, group=self.group)
            except (LookupError, PermissionError) as error:
                file.unlink()
                what = f"cannot be given to the group {self.group}"
                raise self._fault(what, "name one of your groups") from error
            file.chmod(0o640)

    def compact(self) -> None:
        """Remove all traces of deleted and replaced data from the store."""
        with self._explained():
            options = {"isolation_level": "AUTOCOMMIT"}
            with self.engine.connect().execution_options(**options) as connection:
                if self.file is not None:
                    connection.exec_driver_sql("VACUUM")
                    return
                for table in metadata.tables:
                    connection.exec_driver_sql(f"VACUUM FULL {table}")

    @contextmanager
    def _removed_if_empty(self) -> Iterator[None]:
        """After an error, remove the file that was created for SQLite, which could not write to it."""
        try:
            yield
        except (sa.exc.DBAPIError, StoreError):
            if self.file is not None and self.file.exists() and not self.file.stat().st_size:
                self.file.unlink()
            raise

    def _refuse_foreign(self) -> None:
        """Refuse foreign files before SQLite, which would take an empty file, or a folder, for a new database."""
        if self.file is None or not self.file.exists():
            return
        if self.file.is_dir():
            raise self._fault("is a folder, not a history", "name a file")
        with self.file.open("rb") as file:
            begin = file.read(len(_MAGIC))
        if begin and begin != _MAGIC:
            raise self._fault("is not a database, and was not changed", "name another file for the history")

    def _refuse_others_tables(self, connection: sa.Connection) -> None:
        names = set(sa.inspect(connection).get_table_names())
        if names & set(metadata.tables) or (self.file and names):
            raise self._fault("is a database of another program, and was not changed", _ANOTHER)

    def _refuse_other_layouts(self, connection: sa.Connection) -> None:
        """Raise StoreError if the tables are not those of this version."""
        if not _is_history(connection):
            raise self._fault("is another program's database, without runs", _ANOTHER)
        layout = int(read.fact(connection, "layout") or 0)
        if layout > LAYOUT:
            raise self._fault(f"has layout {layout}, which is newer than this Vani knows ({LAYOUT})", "update Vani")
        if layout < LAYOUT:
            todo = "make it again: move it away, then `vani history add LOGS`"
            raise self._fault("is the history of an older Vani", todo)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.DBAPIError as error:
            raise in_words(error, self.address) from error
        except OSError as error:
            raise self._fault(f"cannot be used ({error.strerror or error})", "name another place") from error

    def _fault(self, what: str, todo: str) -> StoreError:
        return StoreError(what, where=self.name, todo=todo)


def _prepare_sqlite(connection: Any, record: object) -> None:
    del record
    # The driver would start transactions late, and none for statements that alter tables.
    connection.isolation_level = None
    connection.execute("PRAGMA secure_delete = ON")


def _begin_sqlite(connection: sa.Connection) -> None:
    options = connection.get_execution_options()
    if options.get("isolation_level") == "AUTOCOMMIT":
        return
    # A writer that begins with a read could find that another process wrote meanwhile.
    connection.exec_driver_sql("BEGIN" if options.get("vani_writes") is False else "BEGIN IMMEDIATE")


def _is_history(connection: sa.Connection) -> bool:
    return sa.inspect(connection).has_table(facts.name)


def _is_writable(file: Path) -> bool:
    return os.access(file, os.W_OK, effective_ids=os.access in os.supports_effective_ids)
