"""Replaces the users and paths of a whole history with keyed hashes; no plain name remains in the database."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vani.centre.history.ingest_result import hide_profile
from vani.centre.history.measured import hidden
from vani.centre.history.names import Names, PlainNames
from vani.centre.history.runs import read, tables, write
from vani.centre.history.runs.connect import Store
from vani.centre.history.runs.letters import add_letter, letters, remove_letters
from vani.centre.history.runs.planned import add_planned, planned_runs, remove_planned
from vani.centre.history.runs.run import Source
from vani.centre.history.runs.sums import remake_sums
from vani.centre.prediction.creations.series import hide_creations
from vani.errors import InputError, StoreError

if TYPE_CHECKING:
    import sqlalchemy as sa

_KEY_BYTES = 32
_AT_ONCE: Final = 5000
"""Number of rows in memory; whole profiles are larger."""
_FEW: Final = 50


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
        measurements = read.all_measurements(connection)
        users = {*read.users(connection), *(row.user for row in measurements)}
        names = Names(bytes.fromhex(key.read_text().strip()), users)
        number = _runs(connection, names)
        _sources(connection, names)
        _letters(connection, names)
        _planned(connection, names)
        _jobs(connection, names)
        for page in read.pages(connection, tables.judged, "digest", _AT_ONCE):
            write.replace_texts(connection, tables.judged, "digest", [_judged(row, names) for row in page])
        for table, hide in ((tables.profiles, hide_profile), (tables.creations, hide_creations)):
            for page in read.pages(connection, table, "digest", _FEW):
                rows = [{"digest": row["digest"], "content": hide(bytes(row["content"]), names)} for row in page]
                write.replace_texts(connection, table, "digest", rows)
        write.add_measurements(connection, [hidden(measurement, names) for measurement in measurements])
        write.set_fact(connection, "names", names.key_id or "")
    store.compact()
    return number


def _runs(connection: sa.Connection, names: Names) -> int:
    number = 0
    for page in read.pages(connection, tables.runs, "id", _AT_ONCE):
        number += len(page)
        rows = [
            {
                "id": row["id"],
                "user": names.user(row["user"]),
                "uid": None,
                "application": names.text(row["application"]),
                "mount": names.path(row["mount"]),
            }
            for row in page
        ]
        write.replace_texts(connection, tables.runs, "id", rows)
    remake_sums(connection)
    return number


def _sources(connection: sa.Connection, names: Names) -> None:
    """Rewrite all sources, since the key of a file is derived from its path."""
    with write.new_sources(connection) as put:
        for page in read.pages(connection, tables.sources, "place", _AT_ONCE):
            put(
                Source(
                    path=names.path(row["path"]),
                    size=row["size"],
                    changed_ns=row["changed_ns"],
                    digest=row["digest"],
                    reason=None if row["reason"] is None else names.text(row["reason"]),
                )
                for row in page
            )


def _letters(connection: sa.Connection, names: Names) -> None:
    known = letters(connection)
    for letter in known:
        remove_letters(connection, letter.user)
    for letter in known:
        application, user = names.text(letter.application), names.user(letter.user)
        setting = names.text(letter.setting)
        add_letter(connection, replace(letter, application=application, user=user, setting=setting))


def _planned(connection: sa.Connection, names: Names) -> None:
    rows = planned_runs(connection)
    for user in {row.user for row in rows}:
        remove_planned(connection, user)
    add_planned(connection, [replace(row, name=names.text(row.name), user=names.user(row.user)) for row in rows])


def _jobs(connection: sa.Connection, names: Names) -> None:
    """Replace users and accounts of the accounting; an account can name a person, too."""
    for page in read.pages(connection, tables.jobs, "job", _AT_ONCE):
        rows = [
            {"job": row["job"]}
            | {key: None if row[key] is None else names.user(row[key]) for key in ("user", "account")}
            for row in page
        ]
        write.replace_texts(connection, tables.jobs, "job", rows)


def _judged(row: dict[str, Any], names: Names) -> dict[str, Any]:
    return {
        "digest": row["digest"],
        "setting": names.text(row["setting"]),
        "why": names.text(row["why"]),
        "lines": json.dumps([names.text(line) for line in json.loads(row["lines"])]),
    }
