"""Finds runs below given paths: Darshan logs or their text, profiles, traces, and sessions of `vani tune`."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vani.errors import InputError
from vani.readers.darshan import SUFFIXES, is_parser_text
from vani.readers.strace import MARK, is_named_strace
from vani.schema.syntax import first_bytes, is_document

Kind = Literal["darshan", "profile", "trace", "tuned", "unreadable"]
_DOCUMENTS = (".yaml", ".yml", ".json")
_TEXTS = (".txt", ".txt.gz")
"""Suffixes of darshan-parser's output."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file or a trace folder that may be a run.

    Attributes
    ----------
    path
        Absolute path.
    size, changed_ns
        Bytes, and time of the last change; for a trace, over all its files.
    named
        Whether the user named it, so that an unsuitable file is an error.
    problem
        Why it cannot be listed, if its kind is `unreadable`.
    """

    path: str
    kind: Kind
    size: int
    changed_ns: int
    named: bool = False
    problem: str = ""


def discover(paths: Sequence[Path]) -> Iterator[Candidate]:
    """Search paths folder by folder, following links and entering each folder once.

    Entries that vanish meanwhile are skipped. Files whose names do not suit a run are not opened.

    Raises
    ------
    InputError
        One of the paths does not exist.
    """
    entered: set[tuple[int, int]] = set()
    for path in paths:
        try:
            state = path.stat()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise InputError(f"cannot be read ({why})", where=path, todo="name a log, or a folder of logs") from error
        place = os.path.abspath(path)  # noqa: PTH100 - links in it stay what they are called
        if stat.S_ISDIR(state.st_mode):
            yield from _below(place, entered)
        elif stat.S_ISREG(state.st_mode):
            log: Kind = "trace" if is_named_strace(path) or is_parser_text(path) else "darshan"
            kind: Kind = (_kind_of_document(path) or "profile") if is_document(path) else log
            yield Candidate(place, kind, state.st_size, state.st_mtime_ns, named=True)
        else:
            raise InputError("is neither a file nor a folder", where=path, todo="name a log, or a folder of logs")


def _below(top: str, entered: set[tuple[int, int]]) -> Iterator[Candidate]:
    folders = [top]
    while folders:
        folder = folders.pop()
        try:
            state = os.stat(folder)  # noqa: PTH116 - a hundred thousand files
            if (state.st_dev, state.st_ino) in entered:
                continue
            entered.add((state.st_dev, state.st_ino))
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except FileNotFoundError:
            continue
        except OSError as error:
            yield Candidate(folder, "unreadable", 0, 0, problem=f"cannot be listed ({error.strerror})")
            continue
        if (trace := _trace(folder, entries)) is not None:
            yield trace
            continue
        deeper = []
        for entry in entries:
            try:
                if entry.is_dir():
                    deeper.append(entry.path)
                elif (kind := _kind_by_name(entry)) and stat.S_ISREG((state := entry.stat()).st_mode):
                    yield Candidate(entry.path, kind, state.st_size, state.st_mtime_ns)
            except FileNotFoundError:
                continue
            except OSError as error:
                yield Candidate(entry.path, "unreadable", 0, 0, problem=f"cannot be read ({error.strerror})")
        folders += reversed(deeper)


def _kind_by_name(entry: os.DirEntry[str]) -> Kind | None:
    if entry.name.endswith(SUFFIXES):
        return "darshan"
    if entry.name.endswith(_TEXTS) and is_parser_text(Path(entry.path)):
        return "trace"
    return _kind_of_document(Path(entry.path)) if entry.name.endswith(_DOCUMENTS) else None


def _kind_of_document(path: Path) -> Literal["profile", "tuned"] | None:
    begin = first_bytes(path)
    if begin is None or not is_document(path):
        return None
    if b"vani.tuned/" in begin:
        return "tuned"
    return "profile" if b"vani.profile/" in begin else None


def _trace(folder: str, entries: Sequence[os.DirEntry[str]]) -> Candidate | None:
    """The trace in a folder; None if its first file cannot be part of one."""
    names = {entry.name for entry in entries}
    if not names & {"VERSION", "recorder.mt", "recorder.dat", "manifest.json", "_metadata", MARK}:
        return None
    from vani.readers.open import is_trace  # noqa: PLC0415 - loads Arrow

    if not is_trace(Path(folder)):
        return None
    states = [entry.stat() for entry in entries if entry.is_file()]
    size = sum(state.st_size for state in states)
    return Candidate(folder, "trace", size, max((state.st_mtime_ns for state in states), default=0))
