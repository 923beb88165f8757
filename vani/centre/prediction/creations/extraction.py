"""The creations of a run: from its profile, from the calls in its trace, or from a CSV file of those so far."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from vani.calls import FileClass, Flag, Kind, Layer
from vani.centre.prediction.creations.series import LARGEST, NO_RANK, Creations, Ints
from vani.errors import InputError

if TYPE_CHECKING:
    from vani.schema.profile import Profile

_MADE = frozenset(("output", "intermediate", "temporary"))


def creations_of_profile(profile: Profile) -> Creations | None:
    """Written files with a known size, in order of their first call, without ranks.

    None if the profile lists only the most important files.
    """
    if profile.workflow.files.total is None or profile.workflow.files.total > len(profile.files):
        return None
    written = [file for file in profile.files if file.role in _MADE and file.size is not None and file.writers]
    written.sort(key=lambda file: (file.first_s is None, file.first_s or 0.0, file.path))
    return Creations(
        np.array([min(file.size or 0, LARGEST) for file in written], dtype=np.int64),
        np.full(len(written), NO_RANK),
        np.array([file.stripe_count or 0 for file in written], dtype=np.int64),
        tuple(file.path for file in written),
    )


_COLUMNS: Final = ("rank", "layer", "kind", "flags", "file", "offset", "bytes", "start_ns")
_NEVER: Final = np.iinfo(np.int64).max


def creations_of_trace(path: Path) -> Creations | None:
    """Read the creations from a trace; None if its tracer stored no calls.

    A file counts if it belongs to the data set, was opened with O_CREAT or an equivalent, and was then truncated or
    written. Its size is the end of the furthest write, or the length it was truncated to. Its name is the one it
    was created under. Its rank is the one that created it, or none if several opened it this way. Files with sizes
    missing from the trace (fprintf) are left out.

    Raises
    ------
    TraceError
        The trace is so damaged that nothing in it can be read.
    """
    from vani.readers.open import open_trace  # noqa: PLC0415 - loads Arrow
    from vani.readers.trace_reader import KeepsCounts, Piece  # noqa: PLC0415

    reader = open_trace(path)
    if isinstance(reader, KeepsCounts):
        return None
    files = reader.files()
    number = files.num_rows
    size, appended, makers = np.zeros((3, number), np.int64)
    wrote, emptied, unknown, streamed = np.zeros((4, number), np.bool_)
    first, rank = np.full(number, _NEVER), np.full(number, NO_RANK)
    for batch in reader.batches(range(reader.ranks), Piece()):
        columns = {name: batch.column(name) for name in _COLUMNS}
        known = columns["file"].is_valid().to_numpy(zero_copy_only=False)
        layer, flags = columns["layer"].to_numpy(), columns["flags"].to_numpy()
        own = known & (layer <= Layer.STDIO) & ((flags & Flag.NESTED) == 0)
        file = columns["file"].fill_null(0).to_numpy()
        offset = columns["offset"].fill_null(-1).to_numpy()
        length = columns["bytes"].fill_null(-1).to_numpy()
        writes = own & (columns["kind"].to_numpy() == Kind.WRITE)
        unknown[file[writes & (length < 0)]] = True
        writes &= length > 0
        wrote[file[writes]] = True
        placed = writes & (offset >= 0)
        np.maximum.at(size, file[placed], np.clip(offset[placed] + length[placed], 0, LARGEST))
        np.add.at(appended, file[writes & (offset < 0)], length[writes & (offset < 0)])
        resized = own & ((flags & Flag.RESIZE) != 0) & (offset >= 0)
        np.maximum.at(size, file[resized], np.clip(offset[resized], 0, LARGEST))
        creating = np.flatnonzero(own & ((flags & Flag.CREATE) != 0))
        emptied[file[creating[(flags[creating] & Flag.TRUNCATE) != 0]]] = True
        # A process that opens a stream for writing but has no traced write has used fprintf.
        streamed[file[creating[layer[creating] == Layer.STDIO]]] = True
        _note_makers(file[creating], columns["rank"].to_numpy()[creating], makers, rank)
        np.minimum.at(first, file[creating], columns["start_ns"].to_numpy()[creating])
    size = np.clip(size + appended, 0, LARGEST)
    of_data = files["class"].to_numpy() == FileClass.DATASET
    chosen = np.flatnonzero((first < _NEVER) & (wrote | (emptied & ~streamed)) & ~unknown & of_data)
    rank[makers > 1] = NO_RANK
    order = chosen[np.lexsort((chosen, rank[chosen], first[chosen]))]
    paths = files["path"].take(order).to_pylist()
    return Creations(size[order], rank[order], np.zeros(len(order), np.int64), tuple(paths))


def _note_makers(file: Ints, rank: Ints, makers: Ints, maker: Ints) -> None:
    """Count the processes that created each file; batches come rank by rank, so a process never recurs."""
    pairs = np.unique(np.stack([file, rank], axis=1), axis=0) if len(file) else np.zeros((0, 2), np.int64)
    new = pairs[maker[pairs[:, 0]] != pairs[:, 1]]
    np.add.at(makers, new[:, 0], 1)
    maker[new[:, 0]] = new[:, 1]


MAX_FILES: Final = 1_000_000
_CSV_COLUMNS: Final = ("path", "rank", "size", "stripe_count")
_LIMITS: Final = {"rank": (NO_RANK, (1 << 28) - 1), "size": (0, LARGEST), "stripe_count": (0, 1 << 16)}


def read_partial_run(path: Path) -> Creations:
    """Read a trace, or a CSV file with a header (`size`, and optionally `path`, `rank`, `stripe_count`).

    Raises
    ------
    InputError
        The file is missing or has no creations, a column is unknown, or a value is not a number. The error names
        the line.
    """
    if path.is_dir():
        creations = creations_of_trace(path)
        if creations is None:
            raise InputError("does not show when files were created", where=path, todo="name a trace of calls")
        return creations
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file)
            head = [name.strip() for name in next(rows, [])]
            _refuse_head(head, path)
            columns = _columns(rows, head, path)
    except FileNotFoundError:
        raise InputError("no such file", where=path, todo="name the files created so far") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read as CSV ({why})", where=path, todo="name a CSV file or a trace") from error
    number = len(columns["size"])
    sizes, ranks, stripes = (
        np.array(columns.get(name, [default] * number), dtype=np.int64)
        for name, default in (("size", 0), ("rank", NO_RANK), ("stripe_count", 0))
    )
    return Creations(sizes, ranks, stripes, tuple(map(str, columns.get("path", []))))


def _refuse_head(head: list[str], path: Path) -> None:
    known = ", ".join(_CSV_COLUMNS)
    unknown = [name for name in head if name not in _CSV_COLUMNS]
    if unknown or "size" not in head:
        what = f"column {unknown[0][:60]!r} is not known" if unknown else "has no column 'size'"
        raise InputError(what, where=path, todo=f"columns are {known}")
    if len(set(head)) < len(head):
        raise InputError("a column appears twice", where=path, todo="leave one out")


def _columns(rows: Iterator[list[str]], head: list[str], path: Path) -> dict[str, list[int | str]]:
    columns: dict[str, list[int | str]] = {name: [] for name in head}
    for number, row in enumerate(rows, 2):
        where = f"{path}: row {number}"
        if len(row) != len(head):
            what = f"{len(row)} cells where there are {len(head)} columns"
            raise InputError(what, where=where, todo="complete it")
        if number > MAX_FILES + 1:
            raise InputError(f"has more than {MAX_FILES:,} files", where=path, todo="leave some out")
        for name, cell in zip(head, row, strict=True):
            columns[name].append(cell if name == "path" else _number(name, cell, where))
    return columns


def _number(name: str, cell: str, where: str) -> int:
    least, most = _LIMITS[name]
    text = cell.strip()
    if name != "size" and not text:
        return least
    try:
        value = int(text)
    except ValueError:
        value = most + 1
    if not least <= value <= most:
        raise InputError(f"{name} is {text[:40]!r}", where=where, todo=f"give {least:,} to {most:,}")
    return value
