"""Output: documents go to stdout or a file; summaries and progress go to stderr.

A command must not overwrite its inputs, or a part of a trace or a store.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from vani.atomic import descriptor, destination, refuse_read_only, write_bytes, write_together
from vani.errors import InputError, one_line, os_errors_as
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
    # A device or a pipe; regular files report their own errors.
    with os_errors_as(InputError, "cannot be written", where=output, todo="name another file"):
        write_bytes(output, content)


def emit_all(texts: Sequence[tuple[str, Path | None]]) -> None:
    """Write documents to files, all or none, and only then those for stdout."""
    files = {path: text.encode() for text, path in texts if path is not None and str(path) != "-"}
    write_together(files)
    for text, path in texts:
        if path is None or str(path) == "-":
            emit(text, None)


def stderr_console() -> Console:
    """A rich console on stderr; without a terminal, it uses no colours and the width of a page."""
    from rich.console import Console  # noqa: PLC0415

    if sys.stderr.isatty():
        return Console(stderr=True, highlight=False, soft_wrap=False)
    return Console(stderr=True, highlight=False, soft_wrap=False, color_system=None, width=_PAGE_WIDTH)


@contextmanager
def progress_bar(*, show: bool) -> Iterator[Progress | None]:
    """A progress bar on stderr that appears if the work takes longer than a second."""
    console = stderr_console() if show else None
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

    columns = (TextColumn("{task.description:<20}"), BarColumn(), TextColumn("{task.fields[count]:>10}"), Clock())
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


_PART_OF_SOMETHING = re.compile(
    r"VERSION|manifest\.json|recorder\..*|.*\.(mt|ts|cst|cfg|itf|dat|callsites|parquet)"
)
"""Names of parts of traces and stores; only for these is it worth examining the surrounding folder."""


def check_outputs(
    outputs: Sequence[Path | None], reads: Iterable[Path | None] = (), *, data: Path | None = None
) -> None:
    """Check before the work starts that its results can be written without destroying data.

    Files are compared by device and inode, so that links and other names do not matter.

    Parameters
    ----------
    outputs
        Files to write; `-` or None means stdout.
    reads
        Files that the command reads, and folders of traces; used only if an output exists already.
    data
        A folder in which the command may read any file; Vani's own documents in it may be overwritten.

    Raises
    ------
    InputError
        An output's folder does not exist or cannot be written; or the output is a folder, is named twice, is
        read-only, is an input or part of a trace or a store, or has the name of a log.
    """
    files = [path for path in outputs if not stdout(path) and path is not None]
    for path in files:
        _check_output(path)
        _keep_traces_and_stores(path)
    for number, path in enumerate(files):
        if any(_same(path, other) for other in files[:number]):
            raise InputError("is used for two outputs", where=path, todo="give each a different name")
    there = [path for path in files if path.is_file()]
    if data is not None:
        for path in there:
            _keep_data(path, data)
    existing = [(str(path), path.stat()) for path in there]
    if len(files) < len(outputs):
        existing += _redirected()
    if existing:
        _keep_what_is_read(existing, reads)
    for path in files:
        _refuse_name_of_log(path)


def _keep_what_is_read(existing: Sequence[tuple[str, os.stat_result]], reads: Iterable[Path | None]) -> None:
    for read in reads:
        # False, without an error, for a name that no system call accepts.
        if read is None or not os.path.exists(read):  # noqa: PTH110
            continue
        for name, status in existing:
            if _is_read(read, Path(name), status):
                raise InputError(
                    "is an input of this command: it is not overwritten", where=name, todo="name another file"
                )


def stdout(path: Path | None) -> bool:
    """Whether an output goes to stdout."""
    return path is None or str(path) == "-" or descriptor(path) is not None


def system_files(system: str | None) -> Iterator[Path]:
    """The files behind `--system`; none for a bundled machine."""
    if system is not None:
        from vani.systems import files_of_system  # noqa: PLC0415 - only where an output exists

        yield from files_of_system(system)


def _check_output(path: Path) -> None:
    if path.is_dir():
        raise InputError("is a folder, not a file to write", where=path, todo="name a file")
    if path.exists() and not path.is_file():
        return
    refuse_read_only(path)
    if path.exists() and _is_history(path):
        raise InputError("is a history: it is not overwritten", where=path, todo="name another file")
    folder = destination(path).parent
    if not folder.is_dir():
        raise InputError("cannot be written: its folder does not exist", where=path, todo=f"create {folder} first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError("cannot be written: its folder is read-only", where=path, todo="name another one")


def _is_history(path: Path) -> bool:
    """Whether the file is a history's database, which no command writes as its output."""
    import sqlite3  # noqa: PLC0415 - only where an output exists

    try:
        with path.open("rb") as file:
            if file.read(16) != b"SQLite format 3\0":
                return False
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            return database.execute("SELECT 1 FROM sqlite_master WHERE name = 'history_runs'").fetchone() is not None
    except (OSError, sqlite3.Error):
        return False


def _keep_traces_and_stores(path: Path) -> None:
    """Refuse the name of a part of a trace or a store, whether or not this command reads it."""
    place = destination(path).absolute()
    if _PART_OF_SOMETHING.fullmatch(place.name) is None:
        return
    from vani.readers.open import trace_with  # noqa: PLC0415 - loads Arrow
    from vani.store.cache import store_with  # noqa: PLC0415

    for what, folder in (("trace", trace_with(place)), ("store", store_with(place))):
        if folder is not None:
            verb = "is" if path.exists() else "would become"
            raise InputError(
                f"{verb} a part of the {what} {folder}: it is not written",
                where=path,
                todo="name another file",
            )


def _refuse_name_of_log(path: Path) -> None:
    """Refuse the name of a log: an existing log would be lost, and a new one would look damaged to readers."""
    from vani.readers.darshan import SUFFIXES  # noqa: PLC0415 - only where a file is written

    if destination(path).name.endswith(SUFFIXES):
        raise InputError(
            "has the name of a Darshan log, and would later be read as a damaged log: it is not written",
            where=path,
            todo="choose another suffix",
        )


def _keep_data(path: Path, data: Path) -> None:
    inside = _same(path, data) or destination(path).resolve().is_relative_to(data.resolve())
    if not inside:
        return
    with path.open("rb") as file:
        if file.read(13).startswith((b"schema: vani.", b'{"schema": "v', b'{"schema":"va')):
            return
    raise InputError("is a file of the data set: it is not overwritten", where=path, todo="name another file")


def _same(path: Path, other: Path) -> bool:
    """Whether two paths are the same file, or will be if they do not exist yet."""
    if path.exists() and other.exists():
        return path.samefile(other)
    return destination(path).resolve() == destination(other).resolve()


def _redirected() -> list[tuple[str, os.stat_result]]:
    """The file to which stdout is redirected, if any."""
    import stat  # noqa: PLC0415

    try:
        status = os.fstat(1)
    except OSError:
        return []
    return [("stdout", status)] if stat.S_ISREG(status.st_mode) and status.st_size else []


def _is_read(source: Path, output: Path, status: os.stat_result) -> bool:
    if not source.is_dir():
        return os.path.samestat(source.stat(), status)
    from vani.readers.open import has_part  # noqa: PLC0415 - loads Arrow

    return has_part(source, output.name, status.st_dev, status.st_ino)
