"""Which files are logs of Darshan."""

from __future__ import annotations

import struct
from pathlib import Path

__all__ = ["MAGIC", "SUFFIXES", "is_darshan", "is_darshan_part", "is_named_darshan"]

MAGIC = 6567223
_AT = 8
SUFFIXES = (".darshan", ".darshan_partial")


def is_darshan(path: Path) -> bool:
    """Tell whether a file is a log, or was one, by its name or its first bytes."""
    if not path.is_file():
        return False
    return path.name.endswith(SUFFIXES) or _has_magic(path)


def is_darshan_part(name: str) -> bool:
    """No file is a part of a log."""
    del name
    return False


def is_named_darshan(path: Path) -> bool:
    """Tell the same of a path that nobody named, by its name alone."""
    return path.name.endswith(SUFFIXES) and path.is_file()


def _has_magic(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(_AT + 8)
    except OSError:
        return False
    return len(head) == _AT + 8 and MAGIC in (
        struct.unpack_from("<q", head, _AT)[0],
        struct.unpack_from(">q", head, _AT)[0],
    )
