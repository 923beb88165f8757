"""Check before work begins that one worker on each host sees the files that this machine sees."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from vani.errors import InputError

__all__ = ["Witness", "cannot_write", "check_folders", "nearest_folder", "trouble", "witness"]


@dataclass(frozen=True)
class Witness:
    """Files that every worker must find."""

    reads: tuple[tuple[str, str, int], ...]
    """A folder, the name of a file in it, and its size in bytes, of each trace or store."""
    token: str
    """Path of a file that was written for this check."""
    content: str
    """Content of that file."""


def nearest_folder(path: Path) -> Path:
    """The folder itself, or the nearest one above it that exists."""
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
    """A file where workers will write, for as long as they look for it.

    Raises
    ------
    InputError
        Nothing can be written there from here.
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
    """The first file of a folder, by name, or a file itself: what another machine must find there, too."""
    if folder.is_file():
        return str(folder.parent.absolute()), folder.name, folder.stat().st_size
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.is_file():
            return str(folder.absolute()), entry.name, entry.stat().st_size
    return str(folder.absolute()), "", 0


def check_folders(files: Witness) -> tuple[str, str, str] | None:
    """Run by a worker: None, or the host, the fault, and the path.

    The fault is `trace` (not seen, or another one), `store` (not seen) or `write` (seen, but not writable).
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
    """The error that a worker's answer means for the user."""
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
