"""Traces of DFTracer (formerly DLIO Profiler): files of JSON lines, mostly one per process."""

from pathlib import Path

from vani.readers.files import files_of

_SUFFIXES = (".pfw", ".pfw.gz")
"""Suffixes of trace files. Indexes (`.zindex`, `.idx`) are next to them, but contain no events."""


def is_dftracer(path: Path) -> bool:
    """Return whether a path is a DFTracer file, or a folder with some, damaged or not."""
    try:
        return any(is_dftracer_part(e.name) for e in (path.iterdir() if path.is_dir() else [path]))
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
    return files_of(path, is_dftracer_part)
