"""Memory settings, progress, and notes on stderr for commands that take profiles or traces."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from vani.cli.output import progress_bar, shows_progress
from vani.errors import one_line
from vani.schema.syntax.detection import is_document
from vani.units import format_bytes

if TYPE_CHECKING:
    from vani.engine.executor import Progress

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Option numbers from malloc.h."""
_SLOW_BYTES: Final = 16_000_000
"""YAML of this length takes about two seconds to parse."""


def keep_freed_memory() -> None:
    """Let the arrays of one batch reuse the memory of the previous batch.

    By default glibc returns the memory of large arrays to the system, which then clears every page of the next
    ones. That takes an eighth of the processor time of `vani profile`. Source: mallopt(3).
    """
    import ctypes  # noqa: PLC0415 - for commands that read calls

    # Other C libraries have no such setting.
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, 1 << 25)
        mallopt(_M_TRIM_THRESHOLD, 1 << 29)


@contextmanager
def working(*sources: Path, quiet: bool, with_calls: bool = False) -> Iterator[Progress | None]:
    """Show the progress of work on sources if calls are read, and the reason if it is slow.

    Parameters
    ----------
    with_calls
        Whether the calls of a profile's traces are read as well.
    """
    if not quiet:
        for source in sources:
            _note_slow_yaml(source)
    calls = with_calls or not all(map(is_document, sources))
    if calls:
        keep_freed_memory()
    with progress_bar(show=calls and shows_progress(quiet=quiet)) as progress:
        yield progress


def _note_slow_yaml(source: Path) -> None:
    """Suggest JSON for a long profile, since it is read faster."""
    if source.suffix.lower() in (".yaml", ".yml") and is_document(source):
        size = source.stat().st_size
        if size > _SLOW_BYTES:
            advice = "JSON (`vani profile -o profile.json`) takes a tenth of the time"
            click.echo(f"{one_line(str(source))}: reading {format_bytes(size)} of YAML; {advice}", err=True)
