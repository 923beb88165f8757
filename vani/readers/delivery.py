"""Conversion of whole ranks' columns to batches of the call table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.calls import CALLS, Layer
from vani.columns import to_arrow
from vani.readers.nesting import Nesting
from vani.readers.positions import Positions
from vani.readers.signatures import NO_VALUE, OpenHandles, Signatures, claimed
from vani.readers.trace_reader import BATCH_ROWS, Piece

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """All calls of some ranks, ordered by rank and start time; each array has shape (n,)."""

    rank: NDArray[np.int32]
    signatures: Signatures
    ids: NDArray[np.int32]
    """Signature id of each call."""
    start: Ints
    """Nanoseconds."""
    duration: Ints


class Delivery:
    """Resolves files, offsets and nesting of rows that arrive rank by rank; a rank may come in several pieces."""

    def __init__(self, private: NDArray[np.bool_], names: list[str], piece: Piece, *, by_time: bool) -> None:
        """Start before the first rank.

        Parameters
        ----------
        private
            By file: only one process names it.
        names
            Function names by code.
        by_time
            No depth is stored, so a call belongs to the library call whose interval contains it.
        """
        self._names, self._piece = names, piece
        self._positions, self._nesting = Positions(private), Nesting(by_time=by_time)
        self._handles: OpenHandles | None = None
        self._last_rank = -1

    def batches(self, rows: Rows) -> Iterator[pa.RecordBatch]:
        """Yield batches with the schema `vani.calls.CALLS`."""
        if not len(rows.rank):
            return
        s, ids, rank = rows.signatures, rows.ids, rows.rank
        file, flags, layer = s.file[ids], s.flags[ids], s.layer[ids]
        if s.handle.max(initial=-1) >= 0:
            self._handles = self._handles or OpenHandles(int(s.handle.max()) + 1)
            self._handles.resolve(rank, s.handle[ids], s.binds[ids], file)
        kind, depth, thread = s.kind[ids], s.depth[ids], s.thread[ids]
        size, func = s.bytes[ids], s.func[ids]
        renames = s.rename_to[ids] if (s.rename_to >= 0).any() else None
        offset = self._positions.resolve(rank, file, s.rule[ids], kind, s.value[ids], size, flags, renames)
        self._positions.note_problem(self._piece)
        via, within = self._nesting.resolve(rank, thread, depth, layer, rows.start, rows.duration, flags)
        self._piece.bytes += claimed(size, int(s.bytes.max(initial=0)))
        self._piece.time_ns += claimed(rows.duration, int(rows.duration.max()))
        self._piece.ranks_read += int((rank[1:] != rank[:-1]).sum()) + (int(rank[0]) != self._last_rank)
        self._last_rank = int(rank[-1])
        _note(rows, file, func, self._names, self._piece)
        # A library call names its own offset (in units of its view), so positions are tracked only below libraries.
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
        batch = pa.RecordBatch.from_arrays(arrays, schema=CALLS)
        for begin in range(0, len(rank), BATCH_ROWS):
            yield batch.slice(begin, BATCH_ROWS)


def _note(
    rows: Rows, file: NDArray[np.int32], func: NDArray[np.int16], names: list[str], piece: Piece
) -> None:
    piece.records += len(rows.rank)
    piece.span_ns = max(piece.span_ns, int((rows.start + rows.duration).max()))
    first = int(rows.start.min())
    piece.first_ns = first if piece.first_ns is None else min(piece.first_ns, first)
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
