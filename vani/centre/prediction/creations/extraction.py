"""The creations of a run: from its profile, from the calls in its trace, or from a CSV file of those so far."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from vani.calls import FileClass, Flag, Kind, Layer
from vani.centre.columns import CsvFile, Ints, read_csv_file
from vani.centre.prediction.creations.series import LARGEST, NO_RANK, Creations
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
    table = read_csv_file(path, "name a CSV file or a trace", most=MAX_FILES)
    unknown = [name for name in table.head if name not in _CSV_COLUMNS]
    if unknown or "size" not in table.head:
        what = f"column {unknown[0][:60]!r} is not known" if unknown else "has no column 'size'"
        raise InputError(what, where=path, todo=f"columns are {', '.join(_CSV_COLUMNS)}")
    number = len(table.rows)
    sizes, ranks, stripes = (
        np.array(_numbers(table, name) if name in table.head else [default] * number, dtype=np.int64)
        for name, default in (("size", 0), ("rank", NO_RANK), ("stripe_count", 0))
    )
    return Creations(sizes, ranks, stripes, tuple(table.column("path")) if "path" in table.head else ())


def _numbers(table: CsvFile, name: str) -> list[int]:
    return [_number(name, cell, table.place(row)) for row, cell in enumerate(table.column(name))]


def _number(name: str, cell: str, where: str) -> int:
    least, most = _LIMITS[name]
    if name != "size" and not cell:
        return least
    try:
        value = int(cell)
    except ValueError:
        value = most + 1
    if not least <= value <= most:
        raise InputError(f"{name} is {cell[:40]!r}", where=where, todo=f"give {least:,} to {most:,}")
    return value
