"""Guards outputs: a command must not overwrite its inputs, or a part of a trace or a store."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from vani.atomic import descriptor, destination, refuse_read_only
from vani.errors import InputError

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
        if read is None or not _exists(read):
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
        raise InputError(
            "cannot be written: its folder does not exist", where=path, todo=f"create {folder} first"
        )
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


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _is_read(source: Path, output: Path, status: os.stat_result) -> bool:
    if not source.is_dir():
        return os.path.samestat(source.stat(), status)
    from vani.readers.open import has_part  # noqa: PLC0415 - loads Arrow

    return has_part(source, output.name, status.st_dev, status.st_ino)
