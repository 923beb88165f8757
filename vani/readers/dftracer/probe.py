"""Recognise DFTracer traces by their file names."""

from __future__ import annotations

from pathlib import Path

from vani.errors import TraceError
from vani.readers.natural_order import natural

_SUFFIXES = (".pfw", ".pfw.gz")
"""Suffixes of trace files. Indexes (`.zindex`, `.idx`) are next to them, but contain no events."""


def is_dftracer(path: Path) -> bool:
    """Return whether a path is a DFTracer file, or a folder with some, damaged or not."""
    try:
        return (
            any(is_dftracer_part(e.name) for e in path.iterdir())
            if path.is_dir()
            else is_dftracer_part(path.name)
        )
    except OSError:
        return False


def is_dftracer_part(name: str) -> bool:
    """Return whether a file with this name in a trace belongs to it."""
    return name.lower().endswith(_SUFFIXES)


def logs_of(path: Path) -> list[Path]:
    """A trace's files, in natural order.

    Raises
    ------
    TraceError
        The folder cannot be listed.
    """
    if not path.is_dir():
        return [path]
    try:
        files = [entry for entry in path.iterdir() if is_dftracer_part(entry.name) and entry.is_file()]
    except OSError as error:
        raise TraceError(f"cannot be listed ({error.strerror})", where=path) from error
    return sorted(files, key=lambda file: natural(file.name))
