"""Contents of one folder, for an assistant that looks for a trace; the first bytes of an entry decide its kind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vani.errors import InputError, TraceError, one_line
from vani.readers.formats import format_of
from vani.schema.syntax.detection import first_bytes
from vani.units import format_bytes

if TYPE_CHECKING:
    from vani.api.assistant.folders import Folders

MOST_SHOWN: Final = 300
"""Maximum number of entries to read; in a larger folder, the first by name."""

_SCHEMA: Final = re.compile(rb"""["']?schema["']?[ \t]*:[ \t]*["']?(vani\.[a-z]+/\d+)""")
_SQLITE: Final = b"SQLite format 3\0"


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
    for entry in entries[:MOST_SHOWN]:
        kind = _kind(entry) if folders.contains(entry.resolve()) else "a link to outside the folders"
        yield f"  {one_line(entry.name)}: {kind}"
    if len(entries) > MOST_SHOWN:
        yield f"  and {len(entries) - MOST_SHOWN:,} more entries"


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
