"""Where output goes: documents to stdout or a file, everything for eyes to stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vani.atomic import write_text

if TYPE_CHECKING:
    from vani.engine.run import Progress

__all__ = ["emit", "eyes", "progress_bar", "quiet_option", "watched"]

quiet_option = click.option("-q", "--quiet", is_flag=True, help="No summary and no progress on stderr.")

_STAGES = {"decode": "reading the trace", "survey": "finding phases", "measure": "measuring", "overlap": "adding up processes"}
_SHOW_AFTER_S = 1.0


def watched(*, quiet: bool) -> bool:
    """Someone looks at stderr: it is a terminal, and --quiet was not given."""
    return not quiet and sys.stderr.isatty()


def emit(text: str, output: Path | None) -> None:
    """Write a document to a file (whole or not at all), or to stdout."""
    if output is None or str(output) == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_text(output, text)


def eyes() -> Any:
    """A rich console on stderr."""
    from rich.console import Console  # noqa: PLC0415

    return Console(stderr=True, highlight=False, soft_wrap=False)


@contextmanager
def progress_bar(*, show: bool) -> Iterator[Progress | None]:
    """A progress bar on stderr, which appears when work takes longer than a second."""
    if not show:
        yield None
        return
    import time  # noqa: PLC0415

    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    began = time.monotonic()
    bar = Progress(
        TextColumn("{task.description:<20}"), BarColumn(), TextColumn("{task.completed}/{task.total}"), TimeElapsedColumn(),
        console=eyes(), transient=True,
    )
    tasks: dict[str, Any] = {}
    started = False

    def report(stage: str, done: int, total: int) -> None:
        nonlocal started
        if not started and time.monotonic() - began > _SHOW_AFTER_S:
            bar.start()
            started = True
        if started:
            if stage not in tasks:
                tasks[stage] = bar.add_task(_STAGES.get(stage, stage), total=total)
            bar.update(tasks[stage], completed=done, total=total)

    try:
        yield report
    finally:
        if started:
            bar.stop()
