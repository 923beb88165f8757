"""Replaces the users and paths of a whole history with keyed hashes; no plain name remains in the database."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from vani.centre.history.names import Names, PlainNames
from vani.centre.history.rows import AccountedJob, AnyRow, Source, StoredRun, Verdict
from vani.centre.history.runs import read, tables, write
from vani.centre.history.runs.store import Store
from vani.centre.prediction.creations.series import hide_creations
from vani.errors import InputError, StoreError

_KEY_BYTES = 32
_AT_ONCE: Final = 5000
"""Number of rows in memory; whole profiles are larger."""
_FEW: Final = 50
_KEYS: Final[Mapping[type[AnyRow], str]] = {
    AccountedJob: "job",
    Source: "place",
    StoredRun: "id",
    Verdict: "digest",
}
"""Kinds with many rows, each with a unique column."""


def names_of(key: Path | None, *, make: bool = False) -> PlainNames:
    """How to write names: as hashes with the key in a file, or plain without one.

    Raises
    ------
    InputError
        The file does not exist, or contains no key.
    """
    if key is None:
        return PlainNames()
    if make and not key.exists():
        try:
            handle = os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise InputError(
                f"cannot be written ({error.strerror})", where=key, todo="name another file"
            ) from error
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_hex(_KEY_BYTES) + "\n")
    try:
        text = key.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot be read ({getattr(error, 'strerror', 'no text')})",
            where=key,
            todo="name the file of the key",
        ) from error
    secret = b""
    with suppress(ValueError):
        secret = bytes.fromhex(text)
    if len(secret) != _KEY_BYTES:
        raise InputError("contains no key", where=key, todo="name the file of `vani history anonymise --key`")
    return Names(secret)


def anonymise(store: Store, key: Path) -> int:
    """Replace users and paths in the whole history; return the number of runs.

    A missing key is created. With the same key, equal names get equal hashes.

    Raises
    ------
    InputError
        The key has the database's own path, or is invalid.
    StoreError
        The store was anonymised with another key.
    """
    if not store.exists():
        with store.reading():
            pass
    plain = names_of(key, make=True)
    assert isinstance(plain, Names)
    with store.writing() as connection:
        before = read.fact(connection, "names")
        if before is not None and before != plain.key_id:
            raise StoreError(
                "has hashes of another key", where=store.name, todo="name the key that it was made with"
            )
        sessions = {row.user for row in read.measurements(connection)}
        names = Names(bytes.fromhex(key.read_text().strip()), {*read.users(connection), *sessions})
        for kind, key_column in _KEYS.items():
            for page in read.pages(connection, tables.OF_ROWS[kind], key_column, _AT_ONCE):
                rows = [kind(**{name: row[name] for name in kind.__slots__}) for row in page]
                if kind is Source:
                    # Its key is derived from the path.
                    of = tables.sources.c.place
                    connection.execute(sa.delete(tables.sources).where(of.in_([row["place"] for row in page])))
                write.put(connection, map(names.row, rows))
        for kind in tables.OF_ROWS.keys() - _KEYS.keys():
            rows = list(read.rows(connection, kind))
            connection.execute(sa.delete(tables.OF_ROWS[kind]))
            write.put(connection, map(names.row, rows))
        write.remake_sums(connection)
        for page in read.pages(connection, tables.profiles, "digest", _FEW):
            write.put_profiles(
                connection, {row["digest"]: names.packed_profile(bytes(row["content"])) for row in page}
            )
        for page in read.pages(connection, tables.creations, "digest", _FEW):
            write.put_creations(
                connection,
                {row["digest"]: (row["files"], hide_creations(bytes(row["content"]), names)) for row in page},
            )
        write.set_fact(connection, "names", names.key_id or "")
        number = read.number_of(connection, tables.runs)
    store.compact()
    return number
