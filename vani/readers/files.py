"""Files of traces: in natural order, and their identity, by which a store still matches them or not.

Contents are not hashed, which would cost as much as decoding a large trace. A file's size, inode number, mtime and
ctime represent them. Only the system sets ctime, so tools that preserve mtime (`rsync -a`, `cp -p`, `touch -r`)
cannot hide that they wrote. A copy of a trace is therefore a different trace, and is decoded again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from vani.errors import TraceError, os_errors_as

if TYPE_CHECKING:
    from vani.readers.trace_reader import TraceReader


def readable(where: str | Path) -> AbstractContextManager[None]:
    """Turn an OSError in the block into a `TraceError`: one line about the file that cannot be read."""
    return os_errors_as(TraceError, "cannot be read", where=where)


def entries_of(folder: Path) -> list[Path]:
    """Entries of a folder, in any order.

    Raises
    ------
    TraceError
        The folder cannot be listed.
    """
    with os_errors_as(TraceError, "cannot be listed", where=folder):
        return list(folder.iterdir())


def natural(name: str) -> list[tuple[int, str]]:
    """Sort key that puts `part.10` after `part.9`."""
    return [(int(p), "") if p.isdecimal() else (-1, p) for p in re.split(r"(\d{1,18})", name)]


def in_natural_order(files: list[Path]) -> list[Path]:
    """Files by name: `step9` before `step10`."""
    return sorted(files, key=lambda file: natural(file.name))


def files_of(path: Path, is_part: Callable[[str], bool]) -> list[Path]:
    """Files of a trace in natural order: those in a folder whose names belong to it, or the file itself.

    Raises
    ------
    TraceError
        The folder cannot be listed.
    """
    if not path.is_dir():
        return [path]
    return in_natural_order([entry for entry in entries_of(path) if is_part(entry.name) and entry.is_file()])


def head_of(path: Path, size: int) -> bytes:
    """The first bytes of a regular file; none if it cannot be read."""
    with suppress(OSError, ValueError):
        if path.is_file():
            with path.open("rb") as file:
                return file.read(size)
    return b""


_SAMPLE = 4096
"""Bytes of each file that are hashed, for file systems with unreliable times."""


@dataclass(frozen=True)
class Identity:
    """State of a trace's files."""

    text: str
    error: TraceError | None = field(default=None, compare=False)
    """Reason why a file could not be examined."""

    def digest(self) -> str:
        """The state as 64 hexadecimal digits.

        Raises
        ------
        TraceError
            Not all files are readable.
        """
        if self.error is not None:
            raise self.error
        return self.text


def identity_of(path: Path, files: Callable[[Path], Sequence[Path]], *, with_ends: bool = False) -> Identity:
    """Examine all files of the trace at `path`, and read the beginning (and the end) of each.

    Parameters
    ----------
    files
        Lists the files, in an order that depends only on their names.
    with_ends
        Also hash the last bytes, where some file formats store their table of contents.
    """
    digest = hashlib.sha256()
    error: TraceError | None = None
    try:
        paths = files(path)
    except (OSError, TraceError) as why:
        return Identity("", why if isinstance(why, TraceError) else _unreadable(why, path))
    for file in paths:
        digest.update(f"{file.name}\0".encode(errors="surrogateescape"))
        try:
            stat = file.stat()
            state = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
            digest.update(f"{state}\0".encode())
            with file.open("rb") as opened:
                digest.update(opened.read(_SAMPLE))
                if with_ends:
                    opened.seek(max(0, stat.st_size - _SAMPLE))
                    digest.update(opened.read(_SAMPLE))
        except OSError as why:
            digest.update(f"{why.errno}\0".encode())
            error = error or _unreadable(why, file)
    return Identity(digest.hexdigest(), error)


def _unreadable(error: OSError, path: Path) -> TraceError:
    return TraceError(f"cannot be read ({error.strerror})", where=error.filename or path)


@contextmanager
def explained(reader: TraceReader) -> Iterator[None]:
    """Explain an error in the block by a change of the trace since it was opened, if it changed.

    Raises
    ------
    TraceError
        The trace changed, and the block failed.
    """
    try:
        yield
    except Exception as error:
        if reader.changed():
            raise changed_error(reader) from error
        raise


@contextmanager
def unchanged(reader: TraceReader) -> Iterator[None]:
    """Check that all data read in the block belongs to the state in which the trace was opened.

    Raises
    ------
    TraceError
        The trace changed.
    """
    with explained(reader):
        yield
    if reader.changed():
        raise changed_error(reader)


def changed_error(reader: TraceReader) -> TraceError:
    """The error for a trace that has changed."""
    return TraceError(
        "changed while it was read",
        where=reader.path,
        todo="run this again when nothing writes to the trace any more",
    )


class Identified:
    """A trace that records the state of its files when it is opened, so that later changes are noticed."""

    def __init__(
        self,
        path: Path,
        files: Callable[[Path], Sequence[Path]],
        *,
        with_ends: bool = False,
        identity: Identity | None = None,
    ) -> None:
        """See `identity_of`; `identity` is the state if it is known already."""
        self.path = path
        self._files_of, self._with_ends = files, with_ends
        self._identity = identity or identity_of(path, files, with_ends=with_ends)

    def digest(self) -> str:
        """See `TraceReader.digest`."""
        return self._identity.digest()

    def changed(self) -> bool:
        """See `TraceReader.changed`."""
        return identity_of(self.path, self._files_of, with_ends=self._with_ends) != self._identity
