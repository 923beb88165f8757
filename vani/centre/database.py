"""An SQL database that persists across commands: an SQLite file, or a server's URL. Passwords are never printed.

Readers may treat an SQLite file as immutable, because writers replace it with another file. A program that has it open
keeps its old file, so a running job is not disturbed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from vani.atomic import destination, refuse_read_only
from vani.errors import InputError, StoreError, one_line, os_errors_as

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

_POSTGRESQL: Final = ("postgresql", "postgres", "postgresql+psycopg")
"""Schemes of URLs."""
_WAIT_S: Final = 10
"""Time limit for a server, and for a lock."""


@dataclass(frozen=True, slots=True)
class Address:
    """Either an SQLite file or a server's URL, and its name for messages."""

    file: Path | None
    url: URL | None
    shown: str
    secret: str = ""


def address_of(text: str) -> Address:
    """Parse the value of `--database`: a URL if it contains `://`, otherwise a file path.

    Raises
    ------
    InputError
        The URL is invalid or names another kind of server, or a library is not installed.
    """
    if find_spec("sqlalchemy") is None:
        raise InputError("databases need SQLAlchemy", todo="pip install 'vani-io[centre]'")
    if "://" not in text:
        return Address(_file(text), None, text)
    from sqlalchemy import make_url  # noqa: PLC0415 - `vani --help` pays for no library
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415

    todo = "give FILE.sqlite or postgresql://USER@HOST/DATABASE"
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # Do not repeat the text, of which a part may be a password.
        raise InputError("is not the URL of a database", where="--database", todo=todo) from None
    if url.drivername == "sqlite":
        if not url.database or url.query or url.host:
            raise InputError("does not name an SQLite file", where="--database", todo="give the file's path")
        return Address(_file(url.database), None, url.database)
    if url.drivername not in _POSTGRESQL:
        what = f"{one_line(url.drivername)[:40]!r} is not a supported kind of database"
        raise InputError(what, where="--database", todo=todo)
    if find_spec("psycopg") is None:
        raise InputError(f"{url.drivername} needs psycopg", todo="pip install 'vani-io[postgresql]'")
    if not url.database:
        raise InputError("the URL names no database", where="--database", todo=todo)
    shown = url.set(query={}).render_as_string(hide_password=True)
    return Address(None, url.set(drivername="postgresql+psycopg"), shown, str(url.password or ""))


def server(address: Address) -> Engine:
    """An engine for a server, which gives up after ten seconds without an answer or lock.

    Raises
    ------
    InputError
        The server cannot be reached or refuses this user, or a setting in the URL is invalid.
    """
    from sqlalchemy import create_engine  # noqa: PLC0415
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415
    from sqlalchemy.pool import NullPool  # noqa: PLC0415

    assert address.url is not None
    options = {"connect_timeout": _WAIT_S, "options": f"-c lock_timeout={_WAIT_S}s"}
    engine = create_engine(address.url, poolclass=NullPool, connect_args=options, hide_parameters=True)
    try:
        engine.connect().close()
    except SQLAlchemyError as error:
        raise in_words(error, address) from error
    except (AttributeError, TypeError, ValueError) as error:
        # Drivers raise this for settings that they do not know; the message may repeat them.
        what = "a setting behind `?` is not understood"
        raise InputError(what, where=address.shown, todo="see the driver's documentation") from error
    return engine


def in_words(error: Exception, address: Address) -> StoreError:
    """A database error in one line, without the password."""
    cause = getattr(error, "orig", None) or error
    text = cause.args[1] if len(cause.args) > 1 and isinstance(cause.args[1], str) else str(cause)
    line = next((line.strip() for line in text.splitlines() if line.strip()), type(cause).__name__)
    if address.secret:
        line = line.replace(address.secret, "***")
    lower = text.lower()
    if address.file is not None and "lock" in lower and not has_locks(address.file):
        what = "is on a file system without file locks, on which SQLite cannot work"
        return StoreError(what, where=address.shown, todo="name a file on a local disk, or a PostgreSQL server")
    what, todo = next(
        (said for sign, *said in _REASONS if sign in lower),
        (f"the database reports: {one_line(line)[:300]}", "repair it, or name another"),
    )
    return StoreError(what, where=address.shown, todo=todo)


READ_ONLY: Final = ("is read-only", "make the file and its folder writable")
_REASONS: Final = (
    ("database is locked", "is locked by another process", "try again when that has ended"),
    ("lock timeout", "is locked by another process", "try again when that has ended"), ("readonly", *READ_ONLY),
    ("unable to open", "cannot be opened", "name a file in a folder that you may write to"),
    ("disk is full", "the disk is full: nothing of this step was stored", "free some space and run this again"),
    ("disk i/o error", "cannot be read or written", "check the disk and its quota, and run this again"),
    ("not a database", "is not a database, or is damaged", "name another file, or restore a copy"),
    ("malformed", "is a damaged database", "restore a copy, or add the logs to a new one"),
    ("connection refused", "the server does not answer", "start it, or correct the URL"),
    ("password authentication", "the server refuses the user or the password", "correct the URL, or PGPASSFILE"),
    ("permission denied", "the user may not do this there", "request permission to create and write tables"),
)


def has_locks(file: Path) -> bool:
    """Whether the file system of a file locks files; true if that cannot be tried."""
    try:
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=".vani-lock-") as tried:
            try:
                fcntl.lockf(tried, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                return error.errno in (errno.EACCES, errno.EAGAIN)
    except OSError:
        pass
    return True


def _file(text: str) -> Path:
    if not text or "\0" in text or text == "-" or text.startswith(":memory:"):
        raise InputError("names no file", where="--database", todo="give FILE.sqlite or a URL")
    return Path(text)


_LOCK_S: Final = 10.0
_OWN: Final = ("vani_", "alembic_", "sqlite_")
"""Prefixes of tables that may be in a Vani database."""


def engine_of(path: Path, mode: str = "ro") -> Engine:
    """An engine that reads a file (`ro`), or also writes to it (`rw`); it creates none.

    Transactions also cover the creation of tables.
    """
    from sqlalchemy import create_engine, event  # noqa: PLC0415 - `vani --help` pays for no library
    from sqlalchemy.pool import NullPool  # noqa: PLC0415

    engine = create_engine("sqlite://", creator=lambda: _connect(path, mode), poolclass=NullPool, hide_parameters=True)

    @event.listens_for(engine, "begin")
    def begin(connection: object) -> None:
        # Python's own module would begin only at the first INSERT.
        connection.exec_driver_sql("BEGIN")  # type: ignore[attr-defined]

    return engine


def readable(path: Path) -> Path:
    """The file, after checking that it is one.

    Raises
    ------
    InputError
        It is missing, or it is a folder.
    """
    with os_errors_as(InputError, "cannot be read", where=path, todo="name another file"):
        if not path.exists():
            raise InputError("no such database", where=path, todo="create it with `vani plan store`")
        if not path.is_file():
            raise InputError("is not an SQLite file", where=path, todo="name one")
    return path


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Yield a copy of the database, which replaces it when the block ends without an error.

    If there is no database, the copy is empty. Others that do the same wait until this is done.

    Raises
    ------
    InputError
        It is read-only, locked, not a database, or belongs to another program.
    sqlite3.Error
        SQLite's own errors.
    """
    if path.exists() and not path.is_file():
        raise InputError("is not an SQLite file", where=path, todo="name a file")
    refuse_read_only(path)
    place = destination(path)
    copy = place.with_name(f".{place.name}.{os.urandom(8).hex()}.partial")
    try:
        todo = "free some space, or name another file"
        with os_errors_as(InputError, "cannot be written", where=path, todo=todo), _exclusive(place) as old:
            _refuse_foreign(old, path)
            # Through a separate connection, because the one with the lock would wait for itself.
            with closing(_connect(place, "ro")) as source, closing(_connect(copy, "rwc")) as new:
                source.backup(new)
                # A reader of an immutable file would not consult a log next to it.
                new.execute("PRAGMA journal_mode=DELETE").fetchall()
            yield copy
            # SQLite's own permissions depend only on the umask.
            copy.chmod(place.stat().st_mode & 0o777)
            copy.replace(place)
    finally:
        for suffix in ("", "-journal"):
            copy.with_name(copy.name + suffix).unlink(missing_ok=True)


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    name = quote(os.fsencode(path.absolute()))
    return sqlite3.connect(f"file:{name}?mode={mode}", uri=True, timeout=_LOCK_S, isolation_level=None)


@contextmanager
def _exclusive(place: Path) -> Iterator[sqlite3.Connection]:
    """Prevent others from changing the database; a missing one is created empty, and removed after an error."""
    is_new = _created(place)
    with closing(_locked(place)) as connection:
        try:
            yield connection
        except BaseException:
            if is_new:
                place.unlink(missing_ok=True)
            raise


def _created(place: Path) -> bool:
    """Create an empty file, which SQLite accepts as an empty database, unless the file exists."""
    try:
        with place.open("xb"):
            return True
    except FileExistsError:
        return False


def _locked(place: Path) -> sqlite3.Connection:
    """Open and lock the database of this name, and not one that was replaced while waiting."""
    while True:
        before = place.stat()
        connection = _connect(place, "rw")
        try:
            connection.execute("BEGIN IMMEDIATE")
            if os.path.samestat(before, place.stat()):
                return connection
        except BaseException:
            connection.close()
            raise
        connection.close()


def _refuse_foreign(old: sqlite3.Connection, path: Path) -> None:
    names = [name for (name,) in old.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    if other := [name for name in names if not name.startswith(_OWN)]:
        what = f"is a database of another program (table {other[0][:60]!r})"
        raise InputError(what, where=path, todo="name another file")


