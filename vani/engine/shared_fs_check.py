"""Check, before work begins, that one worker on each host sees the same files as this machine."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from vani.errors import InputError


@dataclass(frozen=True)
class Witness:
    """Files that every worker must find."""

    reads: tuple[tuple[str, str, int], ...]
    """For each trace or store: a folder, the name of a file in it, and its size in bytes."""
    token: str
    """Path of a file that was written for this check."""
    content: str
    """Content of that file."""


def nearest_folder(path: Path) -> Path:
    """The folder itself, or its nearest existing ancestor."""
    place = path.absolute()
    while not place.is_dir() and place != place.parent:
        place = place.parent
    return place


def cannot_write(place: Path, error: OSError) -> InputError:
    return InputError(
        f"cannot write here ({error.strerror})", where=place, todo="name a folder that is writable"
    )


@contextmanager
def witness(reads: Sequence[Path], writes: Path) -> Iterator[Witness]:
    """Provide a file where workers will write, for as long as they look for it.

    Raises
    ------
    InputError
        This process cannot write there.
    """
    place = nearest_folder(writes)
    try:
        handle, name = tempfile.mkstemp(prefix=".vani-", suffix=".shared", dir=place)
    except OSError as error:
        raise cannot_write(place, error) from error
    content = os.urandom(16).hex()
    try:
        with os.fdopen(handle, "w") as file:
            file.write(content)
        yield Witness(tuple(_sample(path) for path in reads), name, content)
    finally:
        Path(name).unlink(missing_ok=True)


def _sample(folder: Path) -> tuple[str, str, int]:
    """A folder's first file by name, or the file itself, which other machines must find, too."""
    if folder.is_file():
        return str(folder.parent.absolute()), folder.name, folder.stat().st_size
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.is_file():
            return str(folder.absolute()), entry.name, entry.stat().st_size
    return str(folder.absolute()), "", 0


def check_folders(files: Witness) -> tuple[str, str, str] | None:
    """Check on a worker: None, or the host, the fault, and the path.

    The fault is `trace` (missing or different), `store` (missing) or `write` (visible but not writable).
    """
    host = socket.gethostname()
    for folder, name, size in files.reads:
        try:
            path = Path(folder, name)
            same = path.stat().st_size == size if name else path.is_dir()
        except OSError:
            same = False
        if not same:
            return host, "trace", folder
    token = Path(files.token)
    try:
        if token.read_text() != files.content:
            return host, "store", str(token.parent)
    except OSError:
        return host, "store", str(token.parent)
    try:
        handle, name = tempfile.mkstemp(prefix=".vani-", suffix=".shared", dir=token.parent)
        os.close(handle)
        with suppress(OSError):
            Path(name).unlink()
    except OSError:
        return host, "write", str(token.parent)
    return None


def trouble(host: str, problem: str, path: str) -> InputError:
    """The user's error for a worker's answer."""
    if problem == "trace":
        return InputError(
            f"is not what workers see on {host}",
            where=path,
            todo="put the trace on a file system that all nodes share",
        )
    if problem == "store":
        return InputError(
            f"is not seen by workers on {host}",
            where=path,
            todo="name a folder that all nodes share (--store DIR; convert: STORE)",
        )
    return InputError(
        f"cannot be written by workers on {host}", where=path, todo="name a folder that they can write"
    )
