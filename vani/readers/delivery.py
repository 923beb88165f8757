"""Conversion of calls, given by signature, to batches of the call table: their files, offsets and nesting."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from vani.calls import CALLS, Layer
from vani.columns import Bools, Int8s, Int32s, Ints, Numbers, to_arrow
from vani.readers.nesting import Nesting
from vani.readers.positions import Positions
from vani.readers.signatures import NO_VALUE, OpenHandles, Signatures, claimed
from vani.readers.trace_reader import BATCH_ROWS, Piece


@dataclass(frozen=True)
class Rows:
    """Calls of some ranks, ordered by rank and start time; each array has shape (n,)."""

    rank: Int32s
    signatures: Signatures
    ids: Int32s
    """Signature id of each call."""
    start: Ints
    """Nanoseconds."""
    duration: Ints
    value: Ints | None = None
    """Offset, distance or length of each call; None if the signatures' values apply."""
    origin: Int8s | None = None
    """Origin of each call; None if unknown."""


class Delivery:
    """Resolves files, offsets and nesting of rows that arrive rank by rank; a rank may come in several pieces."""

    def __init__(self, piece: Piece, names: Sequence[str], private: Bools, *, by_time: bool, handles: int = 0) -> None:
        """Start before the first rank.

        Parameters
        ----------
        names
            Function names by code.
        private
            By file: only one process names it.
        by_time
            No depth is stored, so a call belongs to the library call whose interval contains it.
        handles
            Number of ids with which calls name open files.
        """
        self._piece, self._names = piece, names
        self._positions, self._nesting = Positions(private), Nesting(by_time=by_time)
        self._handles = OpenHandles(handles)
        self._last_rank = -1

    def batches(self, rows: Rows) -> Iterator[pa.RecordBatch]:
        """Yield batches with the schema `vani.calls.CALLS`, and note which ranks were read and for how long."""
        rank, piece = rows.rank, self._piece
        if not len(rank):
            return
        piece.problems += [fault for fault in rows.signatures.unbelieved.values() if fault not in piece.problems]
        columns = self.columns(rows)
        piece.time_ns += claimed(rows.duration, int(rows.duration.max()))
        piece.ranks_read += int((rank[1:] != rank[:-1]).sum()) + (int(rank[0]) != self._last_rank)
        self._last_rank = int(rank[-1])
        batch = pa.RecordBatch.from_arrays([columns[name] for name in CALLS.names], schema=CALLS)
        for begin in range(0, len(rank), BATCH_ROWS):
            yield batch.slice(begin, BATCH_ROWS)

    def columns(self, rows: Rows) -> dict[str, pa.Array]:
        """Columns of `CALLS`; their sums are added to the piece."""
        s, rank, start, duration = rows.signatures, rows.rank, rows.start, rows.duration
        # With 64-bit indices, numpy's take is twice as fast.
        at = rows.ids.astype(np.int64)
        file, flags, value = s.file[at], s.flags[at], s.value[at] if rows.value is None else rows.value
        if s.handle.max(initial=-1) >= 0:
            self._handles.resolve(rank, s.handle[at], s.binds[at], file)
        kind, layer, depth, size, func = s.kind[at], s.layer[at], s.depth[at], s.bytes[at], s.func[at]
        renames = s.rename_to[at] if s.rename_to.max(initial=-1) >= 0 else None
        offset = self._positions.resolve(rank, file, s.rule[at], kind, value, size, flags, renames)
        self._positions.note_problem(self._piece)
        # A library call names its own offset (in units of its view), so positions are tracked only below libraries.
        above = np.flatnonzero(layer == Layer.MPIIO)
        above = above[value[above] != NO_VALUE]
        offset[above] = value[above]
        thread = s.thread[at] if s.thread.any() else np.zeros(len(at), np.int32)
        via, within = self._nesting.resolve(rank, thread, depth, layer, start, duration, flags, rows.origin)
        self._piece.bytes += claimed(size, int(s.bytes.max(initial=0)))
        count = np.bincount(func.astype(np.int64) + 1)
        note_calls(self._piece, self._names, count, int(start.min()), int((start + duration).max()))
        note_renames(self._piece, rank, file, rows)
        columns: dict[str, Numbers] = {
            **{"rank": rank, "thread": thread, "func": func, "layer": layer, "kind": kind, "depth": depth, "via": via},
            **{"within": within, "flags": flags, "file": file, "offset": offset, "bytes": size},
            **{"start_ns": start, "duration_ns": duration},
        }
        unknown = {"file": file < 0, "offset": offset == NO_VALUE, "bytes": size == NO_VALUE}
        return {name: to_arrow(columns[name], unknown.get(name)) for name in CALLS.names}


def note_calls(piece: Piece, functions: Sequence[str], count: Ints, first: int, last: int) -> None:
    """Add calls to the summary of some ranks.

    Parameters
    ----------
    count
        Calls per function, after those without a function name; shape (functions + 1,) at most.
    first, last
        Start of the first and end of the last call in ns.
    """
    piece.records += int(count.sum())
    piece.span_ns = max(piece.span_ns, last)
    piece.first_ns = first if piece.first_ns is None else min(piece.first_ns, first)
    for func, often in enumerate(count.tolist()):
        if often:
            name = functions[func - 1] if func else "(unknown)"
            piece.functions[name] = piece.functions.get(name, 0) + often


def note_renames(piece: Piece, rank: Int32s, file: Int32s, rows: Rows) -> None:
    """Add renamed files to the summary of some ranks; `rank` and `file` belong to the calls in `rows`."""
    target = rows.signatures.rename_to
    if target.max(initial=-1) < 0:
        return
    renamed = np.flatnonzero(target[rows.ids] >= 0)
    columns = (rank[renamed], rows.start[renamed], file[renamed], target[rows.ids[renamed]])
    piece.renames += zip(*(column.tolist() for column in columns), strict=True)
