"""Output: documents go to stdout or a file; summaries and progress go to stderr."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from vani.atomic import write_bytes, write_together
from vani.errors import InputError

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


def shows_progress(*, quiet: bool) -> bool:
    """Whether to show progress: only on a terminal, where lines can be erased."""
    return not quiet and sys.stderr.isatty()


def shows_summary(output: Path | None, *, quiet: bool) -> bool:
    """Whether to print a summary: on a terminal, or if the document goes to a file.

    In a batch job, standard error is the log. A command that writes its document to stdout is probably part of a
    pipe, and stays silent.
    """
    return not quiet and (sys.stderr.isatty() or (output is not None and str(output) != "-"))


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
