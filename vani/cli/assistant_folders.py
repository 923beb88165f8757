"""The folders that the server may read for an assistant, and what is in them.

An assistant can be tricked into naming any path, for example by a file name in a trace. So each path is resolved,
with all its symbolic links, before it is opened, and so are the links inside a trace.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from vani.errors import InputError, TraceError, one_line
from vani.readers.formats import format_of
from vani.schema.settings import PathLike
from vani.schema.syntax.detection import first_bytes
from vani.units import format_bytes

MAX_SHOWN: Final = 300
"""Maximum number of entries to read; in a larger folder, the first by name."""
_SCHEMA: Final = re.compile(rb"""["']?schema["']?[ \t]*:[ \t]*["']?(vani\.[a-z]+/\d+)""")
_SQLITE: Final = b"SQLite format 3\0"
MAX_ENTRIES: Final = 100_000
"""Maximum number of files in a trace. Only a trace with more processes than that has more."""


class Folders:
    """Folders whose contents may be read.

    Parameters
    ----------
    folders
        At least one.

    Raises
    ------
    InputError
        One of them is not a folder.
    """

    def __init__(self, folders: Sequence[PathLike]) -> None:
        for folder in folders:
            if not Path(folder).is_dir():
                raise InputError("is not a folder", where=folder, todo="name folders with traces or profiles")
        self.roots: Final = [Path(folder).resolve() for folder in folders]

    def place(self, path: str) -> Path:
        """Resolve a path; a relative one is looked up in each folder.

        Raises
        ------
        InputError
            The path is outside all folders, or does not exist.
        """
        try:
            places = [root / path for root in self.roots] if path else []
            inside = [place for place in (place.resolve() for place in places) if self.contains(place)]
            for place in inside:
                if place.exists():
                    return place
        except (OSError, ValueError, RuntimeError) as error:
            why = getattr(error, "strerror", None) or "no path"
            raise InputError(f"cannot be opened ({why})", where=path[:200], todo=self._todo()) from error
        # The answer must not reveal whether a path outside the folders exists.
        is_inside = bool(places) and len(inside) == len(places)
        what = "does not exist" if is_inside else "is outside the folders that this server reads"
        raise InputError(what, where=path[:200] or "the path", todo=self._todo())

    def contains(self, place: Path) -> bool:
        """Whether a resolved path is one of the folders or below one."""
        return any(place.is_relative_to(root) for root in self.roots)

    def size(self, place: Path, shown: str) -> int:
        """Size in bytes of a file, or of all files below a folder.

        Parameters
        ----------
        shown
            The path as the assistant gave it.

        Raises
        ------
        InputError
            A link points outside the folders, an entry is neither a file nor a folder, or there are more than
            `MAX_ENTRIES` files.
        """
        total = 0
        for number, entry in enumerate(_below(place)):
            if number >= MAX_ENTRIES:
                todo = "name a profile that `vani profile` wrote"
                raise InputError(f"has more than {MAX_ENTRIES:,} files", where=shown, todo=todo)
            if not self.contains(entry.resolve()):
                what = f"contains a link to outside the folders ({entry.name})"
                raise InputError(what, where=shown, todo="remove the link, or start the server with its folder, too")
            status = entry.stat()
            if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
                what = f"{entry.name} is neither a file nor a folder"
                raise InputError(what, where=shown, todo="name a trace or a profile")
            total += status.st_size if stat.S_ISREG(status.st_mode) else 0
        return total

    def _todo(self) -> str:
        return f"name a path below {' or '.join(map(str, self.roots[:5]))}"


def _below(place: Path) -> Iterator[Path]:
    """A path and everything below it; each folder once, even if links point to it."""
    waiting, seen = [place], set()
    while waiting:
        path = waiting.pop()
        yield path
        if path.is_dir() and (resolved := path.resolve()) not in seen:
            seen.add(resolved)
            waiting += path.iterdir()


def contents_of(folder: Path, folders: Folders) -> Iterator[str]:
    """Yield a line for the folder, then one for each entry.

    Raises
    ------
    InputError
        It is not a folder, or cannot be listed.
    """
    if not folder.is_dir():
        raise InputError("is a file", where=folder, todo="name a folder")
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise InputError(f"cannot be listed ({error.strerror})", where=folder) from error
    yield f"{one_line(str(folder))}: {_kind(folder)}"
    for entry in entries[:MAX_SHOWN]:
        kind = _kind(entry) if folders.contains(entry.resolve()) else "a link to outside the folders"
        yield f"  {one_line(entry.name)}: {kind}"
    if len(entries) > MAX_SHOWN:
        yield f"  and {len(entries) - MAX_SHOWN:,} more entries"


def _kind(path: Path) -> str:
    """The kind of an entry in a few words."""
    if not (path.is_file() or path.is_dir()):
        return "neither a file nor a folder"
    begin = first_bytes(path) or b""
    if (schema := _SCHEMA.search(begin)) is not None:
        return f"document {schema[1].decode()}, {format_bytes(path.stat().st_size)}"
    try:
        format_ = format_of(path, named=False)
    except TraceError:
        return "folder that cannot be listed"
    if format_ is not None:
        return f"trace ({format_.name})"
    if path.is_dir():
        return "folder"
    size = format_bytes(path.stat().st_size)
    return f"SQLite database, perhaps a history, {size}" if begin.startswith(_SQLITE) else f"file, {size}"
