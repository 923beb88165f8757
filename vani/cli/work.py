"""What surrounds the work of a command that takes profiles or traces: memory, and progress on stderr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from vani.cli.memory import memory_for
from vani.cli.output import progress_bar, shows_progress
from vani.schema.beginning import is_document

if TYPE_CHECKING:
    from vani.engine.executor import Progress

__all__ = ["working"]


@contextmanager
def working(*sources: Path, quiet: bool, with_calls: bool = False) -> Iterator[Progress | None]:
    """Set memory for the work on sources, and show how far it is; to be entered before anything loads numpy.

    Parameters
    ----------
    with_calls
        The calls of a profile's traces are looked at, too.
    """
    calls = with_calls or not all(map(is_document, sources))
    memory, show = memory_for("calls" if calls else "documents"), calls and shows_progress(quiet=quiet)
    with memory, progress_bar(show=show) as progress:
        yield progress
