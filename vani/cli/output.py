"""Output: documents go to stdout or a file; summaries and progress go to stderr."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from vani.atomic import write_bytes, write_together
from vani.errors import InputError, one_line
from vani.schema.syntax import is_document
from vani.units import format_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from vani.engine.executor import Progress

_STAGES = {
    "workers": "waiting for workers",
    "decode": "reading the trace",
    "survey": "finding phases",
    "measure": "measuring",
    "overlap": "adding up processes",
    "timeline": "laying out calls",
}
_SHOW_AFTER_S = 1.0
_PAGE_WIDTH = 100
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Option numbers from malloc.h."""
_SLOW_BYTES: Final = 16_000_000
"""YAML of this length takes about two seconds to parse."""


def shows_progress(*, quiet: bool) -> bool:
    """Whether to show progress: only on a terminal, where lines can be erased."""
    return not quiet and sys.stderr.isatty()


def shows_summary(output: Path | None, *, quiet: bool) -> bool:
    """Whether to print a summary: on a terminal, or if the document goes to a file.

    In a batch job, standard error is the log. A command that writes its document to stdout is probably part of a
    pipe, and stays silent.
    """
    return not quiet and (sys.stderr.isatty() or (output is not None and str(output) != "-"))


def say(*lines: str) -> None:
    """Print lines for people on stderr; control characters, as in names of files, are escaped."""
    for line in lines:
        click.echo(one_line(line), err=True)


def emit(text: str | bytes, output: Path | None) -> None:
    """Write a document to a file (completely or not at all) or to stdout; text is encoded as UTF-8."""
    content = text.encode() if isinstance(text, str) else text
    if output is None or str(output) == "-":
        # Write bytes, so that a document does not depend on the terminal's encoding.
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    try:
        write_bytes(output, content)
    except OSError as error:
        # A device or a pipe; regular files report their own errors.
        raise InputError(
            f"cannot be written ({error.strerror})", where=output, todo="name another file"
        ) from error


def emit_all(texts: Sequence[tuple[str, Path | None]]) -> None:
    """Write documents to files, all or none, and only then those for stdout."""
    files = {path: text.encode() for text, path in texts if path is not None and str(path) != "-"}
    write_together(files)
    for text, path in texts:
        if path is None or str(path) == "-":
            emit(text, None)


def summary_console() -> Console:
    """A rich console on stderr; without a terminal, it uses no colours and the width of a page."""
    from rich.console import Console  # noqa: PLC0415

    if sys.stderr.isatty():
        return Console(stderr=True, highlight=False, soft_wrap=False)
    return Console(stderr=True, highlight=False, soft_wrap=False, color_system=None, width=_PAGE_WIDTH)


@contextmanager
def progress_bar(*, show: bool) -> Iterator[Progress | None]:
    """A progress bar on stderr that appears if the work takes longer than a second."""
    console = summary_console() if show else None
    # On a terminal that cannot move its cursor, a bar would fill many lines.
    if console is None or not console.is_interactive:
        yield None
        return
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    class Clock(ProgressColumn):
        """Time since the command started; rich's own column stops after the first stage."""

        def render(self, task: Task) -> Text:
            return Text(str(timedelta(seconds=int(task.elapsed or 0.0))), style="progress.elapsed")

    columns = (
        TextColumn("{task.description:<20}"),
        BarColumn(),
        TextColumn("{task.fields[count]:>10}"),
        Clock(),
    )
    bar = Progress(*columns, console=console, transient=True)
    # Without a total the bar only pulses: a single piece of work reports no progress.
    task = bar.add_task(_STAGES["decode"], total=None, count="")

    def show_bar() -> None:
        # No bar is shown on a system that refuses another thread.
        with suppress(RuntimeError):
            bar.start()

    late = threading.Timer(_SHOW_AFTER_S, show_bar)
    late.daemon = True

    def report(stage: str, done: int, total: int) -> None:
        many = total > 1
        bar.update(
            task,
            description=_STAGES.get(stage, stage),
            completed=done,
            total=total if many else None,
            count=f"{done}/{total}" if many else "",
        )

    with suppress(RuntimeError):
        late.start()
    try:
        yield report
    finally:
        late.cancel()
        if late.ident is not None:
            late.join()
        bar.stop()


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
            say(f"{source}: reading {format_bytes(size)} of YAML; {advice}")
