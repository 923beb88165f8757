"""From the columns of whole ranks to batches of the table of calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.calls import CALLS, Layer
from vani.columns import to_arrow
from vani.readers.base import BATCH_ROWS, Piece
from vani.readers.positions import NO_VALUE, Positions, stable_order
from vani.readers.recorder.nesting import Nesting
from vani.readers.recorder.signatures import Signatures

__all__ = ["Rows", "deliver"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """All calls of some ranks, rank by rank in the order in which they began; shape (n,) each."""

    rank: NDArray[np.int32]
    signatures: Signatures
    ids: NDArray[np.int32]
    """Signature of each call."""
    start: Ints
    """Nanoseconds."""
    duration: Ints


def deliver(
    rows: Rows, private: NDArray[np.bool_], names: list[str], piece: Piece, *, by_time: bool
) -> Iterator[pa.RecordBatch]:
    """Resolve files, offsets and nesting, and yield batches that fit `vani.calls.CALLS`.

    Parameters
    ----------
    private
        By file: one process alone names it.
    names
        Function names by code.
    by_time
        No depth is stored: a call belongs to the library call whose interval contains it.
    """
    if not len(rows.rank):
        return
    s, ids, rank = rows.signatures, rows.ids, rows.rank
    file, flags, layer = s.file[ids], s.flags[ids], s.layer[ids]
    _resolve_handles(rank, s.handle[ids], s.binds[ids], file)
    kind, depth, thread, size, func = s.kind[ids], s.depth[ids], s.thread[ids], s.bytes[ids], s.func[ids]
    renames = s.rename_to[ids] if (s.rename_to >= 0).any() else None
    offset = Positions(private).resolve(rank, file, s.rule[ids], kind, s.value[ids], size, flags, renames)
    via, within = Nesting(by_time=by_time).resolve(
        rank, thread, depth, layer, rows.start, rows.duration, flags
    )
    _note(rows, file, func, names, piece)
    # A library's own offset (in units of its view) is what its call says; positions are followed below it only.
    above = np.flatnonzero((layer == Layer.MPIIO) & (s.value[ids] != NO_VALUE))
    offset[above] = s.value[ids[above]]
    arrays = [
        to_arrow(rank),
        to_arrow(thread),
        to_arrow(func),
        to_arrow(layer),
        to_arrow(kind),
        to_arrow(depth),
        to_arrow(via),
        to_arrow(within),
        to_arrow(flags),
        to_arrow(file, file < 0),
        to_arrow(offset, offset == NO_VALUE),
        to_arrow(size, size == NO_VALUE),
        to_arrow(rows.start),
        to_arrow(rows.duration),
    ]
    whole = pa.RecordBatch.from_arrays(arrays, schema=CALLS)
    for begin in range(0, len(rank), BATCH_ROWS):
        yield whole.slice(begin, BATCH_ROWS)


def _resolve_handles(
    rank: NDArray[np.int32], handle: NDArray[np.int32], binds: NDArray[np.bool_], file: NDArray[np.int32]
) -> None:
    """Give a call that names its file by an id the file of the last call of its rank that bound the id."""
    rows = np.flatnonzero(handle >= 0)
    if not len(rows):
        return
    key = rank[rows].astype(np.int64) << 32 | handle[rows]
    order = stable_order(key)
    rows, key = rows[order], key[order]
    index = np.arange(len(rows))
    starts = np.append(True, key[1:] != key[:-1])
    bind = binds[rows]
    source = np.maximum.accumulate(np.where(bind | starts, index, 0))
    found = np.where(bind[source], file[rows[source]], -1)
    file[rows[~bind]] = found[~bind]


def _note(
    rows: Rows, file: NDArray[np.int32], func: NDArray[np.int16], names: list[str], piece: Piece
) -> None:
    piece.records += len(rows.rank)
    piece.span_ns = max(piece.span_ns, int((rows.start + rows.duration).max()))
    first = int(rows.start.min())
    piece.first_ns = first if piece.first_ns is None else min(piece.first_ns, first)
    piece.ranks_read += int((rows.rank[1:] != rows.rank[:-1]).sum()) + 1
    for code, count in enumerate(np.bincount(func, minlength=len(names)).tolist()):
        if count:
            piece.functions[names[code]] = piece.functions.get(names[code], 0) + count
    target = rows.signatures.rename_to
    if (target >= 0).any():
        at = np.flatnonzero(target[rows.ids] >= 0)
        piece.renames += zip(
            rows.rank[at].tolist(),
            rows.start[at].tolist(),
            file[at].tolist(),
            target[rows.ids[at]].tolist(),
            strict=True,
        )
