"""Files of traces: folders in natural order, and the system's errors as errors of the trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from vani.errors import TraceError


@contextmanager
def readable(where: str | Path) -> Iterator[None]:
    """Turn an error of the system in the block into one line about the file that cannot be read.

    Raises
    ------
    TraceError
        The block failed with an OSError.
    """
    try:
        yield
    except OSError as error:
        raise TraceError(f"cannot be read ({error.strerror})", where=where) from error


def entries_of(folder: Path) -> list[Path]:
    """Entries of a folder, in any order.

    Raises
    ------
    TraceError
        The folder cannot be listed.
    """
    try:
        return list(folder.iterdir())
    except OSError as error:
        raise TraceError(f"cannot be listed ({error.strerror})", where=folder) from error


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
