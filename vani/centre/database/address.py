"""The address of a database: an SQLite file, or a server's URL. Passwords are never printed."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vani.errors import InputError, one_line

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
        raise InputError(
            f"{one_line(url.drivername)[:40]!r} is not a supported kind of database", where="--database", todo=todo
        )
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
        raise InputError(
            "a setting behind `?` is not understood",
            where=address.shown,
            todo="see the driver's documentation",
        ) from error
    return engine


def in_words(error: Exception, address: Address) -> InputError:
    """A database error in one line, without the password."""
    cause = getattr(error, "orig", None) or error
    text = cause.args[1] if len(cause.args) > 1 and isinstance(cause.args[1], str) else str(cause)
    line = next((line.strip() for line in text.splitlines() if line.strip()), type(cause).__name__)
    if address.secret:
        line = line.replace(address.secret, "***")
    return InputError(
        f"the database reports: {line[:300]}", where=address.shown, todo=_next_step(line.lower(), address)
    )


def _next_step(line: str, address: Address) -> str:
    for word, todo in (
        ("locked", "try again when the other program is done"),
        ("lock timeout", "try again when the other program is done"),
        ("not a database", "name an SQLite file"),
        ("malformed", "restore it, or name another file"),
        ("readonly", "name a file in a folder that can be written"),
        ("full", "free some space"),
    ):
        if word in line:
            return todo
    if address.file is not None:
        return "see whether the file can be read and written"
    return "see whether the server runs, and whether user, password and database are right"


def _file(text: str) -> Path:
    if not text or "\0" in text or text == "-" or text.startswith(":memory:"):
        raise InputError("names no file", where="--database", todo="give FILE.sqlite or a URL")
    return Path(text)
