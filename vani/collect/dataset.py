"""A bounded look at the data set: how many files, how large, of which formats and shapes."""

from __future__ import annotations

import os
import stat
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vani.collect.shapes import dims_of
from vani.errors import InputError
from vani.schema.formats import format_of
from vani.schema.job import DatasetFile, DatasetSample

__all__ = ["Bounds", "sample_dataset"]


@dataclass(frozen=True)
class Bounds:
    """Where looking ends."""

    files: int = 1_000_000
    """So many files are counted."""
    listed: int = 10_000
    """So many of them are listed with path and size."""
    opened: int = 1_000
    """So many of those are opened for their format and shape."""
    seconds: float = 60.0
    problems: int = 20
    """So many problems are told."""


def sample_dataset(root: Path, bounds: Bounds = Bounds()) -> DatasetSample:
    """Look through `root` (a folder or a file), in the order of names.

    Files that several names lead to count once. Links to folders are not followed.

    Raises
    ------
    InputError
        There is nothing at `root`.
    """
    if not root.exists():
        raise InputError("no such data set", where=root, todo="name the folder of the input files")
    ends_at = time.monotonic() + bounds.seconds
    problems: list[str] = []
    files: list[DatasetFile] = []
    formats: Counter[str] = Counter()
    count = total = 0
    is_whole = True
    seen: set[tuple[int, int]] = set()
    for path in _walk(root.absolute(), problems):
        if count >= bounds.files or time.monotonic() > ends_at:
            is_whole = False
            break
        try:
            status = path.stat()
        except OSError as error:
            problems.append(f"{path}: {error.strerror}")
            continue
        # Pipes and devices are no data, and opening them could wait for ever.
        if not stat.S_ISREG(status.st_mode) or (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        count, total = count + 1, total + status.st_size
        if len(files) < bounds.listed:
            file = _look(path, status.st_size, opens=len(files) < bounds.opened, problems=problems)
            files.append(file)
            formats.update([file.format] if file.format else [])
        else:
            is_whole = False
    told = [_text(problem) for problem in problems[: bounds.problems]]
    if len(problems) > len(told):
        told.append(f"and {len(problems) - len(told)} more")
    return DatasetSample(
        root=_text(str(root.absolute())),
        files=files,
        count=count,
        formats=dict(sorted(formats.items())),
        total_size=total,
        sampled=not is_whole,
        problems=told,
    )


def _look(path: Path, size: int, *, opens: bool, problems: list[str]) -> DatasetFile:
    found, dims = None, None
    if opens:
        try:
            found = format_of(path)
            dims = dims_of(path, found)
        except OSError as error:
            problems.append(f"{path}: {error.strerror}")
    return DatasetFile(path=_text(str(path)), size=size, format=found, dims=dims)


def _walk(root: Path, problems: list[str]) -> Iterator[Path]:
    """Paths of everything below `root` that is no folder, folder by folder."""
    if not root.is_dir():
        yield root
        return
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            problems.append(f"{folder}: {error.strerror}")
            continue
        below = []
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                below.append(folder / entry.name)
            elif not (entry.is_symlink() and (folder / entry.name).is_dir()):
                yield folder / entry.name
        waiting += reversed(below)


def _text(path: str) -> str:
    """File names are bytes: those that are no text are shown with escapes."""
    return os.fsencode(path).decode(errors="backslashreplace")
