"""The creations of a finished run, from its profile or from the calls in its trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from vani.calls import FileClass, Flag, Kind, Layer
from vani.centre.prediction.creations.series import LARGEST, NO_RANK, Creations, Ints

if TYPE_CHECKING:
    from vani.schema.profile import Profile

_MADE = frozenset(("output", "intermediate", "temporary"))


def creations_of_profile(profile: Profile) -> Creations | None:
    """Written files with a known size, in order of their first call, without ranks.

    None if the profile lists only the most important files.
    """
    if profile.workflow.files.total is None or profile.workflow.files.total > len(profile.files):
        return None
    written = [
        file for file in profile.files if file.role in _MADE and file.size is not None and file.writers
    ]
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
    size, wrote = np.zeros(number, np.int64), np.zeros(number, np.bool_)
    appended = np.zeros(number, np.int64)
    first, rank = np.full(number, _NEVER), np.full(number, NO_RANK)
    makers = np.zeros(number, np.int64)
    emptied, unknown, streamed = (np.zeros(number, np.bool_) for _ in range(3))
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
