"""Users and paths of a whole history behind keyed hashes; nothing of them stays in the database."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vani.database.runs import read, tables, write
from vani.database.runs.connect import Store
from vani.errors import InputError, StoreError
from vani.history.creations.series import hide_creations
from vani.history.ingest_result import hide_profile
from vani.history.names import Names, PlainNames

if TYPE_CHECKING:
    import sqlalchemy as sa

__all__ = ["anonymise", "names_of"]

_KEY_BYTES = 32


def names_of(key: Path | None, *, make: bool = False) -> PlainNames:
    """The way names are written down: behind hashes with the key in a file, or plain without one.

    Raises
    ------
    InputError
        There is no such file, or it holds no key.
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
        raise InputError("holds no key", where=key, todo="name what `vani history anonymise --key` made")
    return Names(secret)


def anonymise(store: Store, key: Path) -> int:
    """Replace users and paths in all that is kept; returns the number of runs.

    The key is made where there is none. The same key makes the same hashes of the same names.

    Raises
    ------
    InputError
        The key lies in the database's own folder under its name, or is none.
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
        runs = list(read.all_runs(connection))
        names = Names(bytes.fromhex(key.read_text().strip()), {run.user for run in runs})
        write.replace_texts(
            connection,
            tables.runs,
            "digest",
            [
                {
                    "digest": run.digest,
                    "user": names.user(run.user),
                    "uid": None,
                    "application": names.text(run.application),
                    "mount": names.path(run.mount),
                }
                for run in runs
            ],
        )
        _sources(connection, names)
        _verdicts(connection, names)
        _profiles(connection, names)
        _creations(connection, names)
        write.set_fact(connection, "names", names.key_id or "")
    store.compact()
    return len(runs)


def _sources(connection: sa.Connection, names: Names) -> None:
    write.replace_sources(
        connection,
        [
            replace(
                source,
                path=names.path(source.path),
                reason=None if source.reason is None else names.text(source.reason),
            )
            for source in read.all_sources(connection)
        ],
    )


def _verdicts(connection: sa.Connection, names: Names) -> None:
    write.replace_texts(
        connection,
        tables.judged,
        "digest",
        [
            {
                "digest": verdict.digest,
                "setting": names.text(verdict.setting),
                "why": names.text(verdict.why),
                "lines": json.dumps([names.text(line) for line in verdict.lines]),
            }
            for verdict, _ in read.verdicts(connection)
        ],
    )


def _creations(connection: sa.Connection, names: Names) -> None:
    rows = [
        {"digest": digest, "content": hide_creations(content, names)}
        for digest, _, content in list(read.all_creations(connection))
    ]
    write.replace_texts(connection, tables.creations, "digest", rows)


def _profiles(connection: sa.Connection, names: Names) -> None:
    rows = [
        {"digest": digest, "content": hide_profile(content, names)}
        for digest, content in list(read.all_profiles(connection))
    ]
    write.replace_texts(connection, tables.profiles, "digest", rows)
