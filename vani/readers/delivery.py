"""Conversion of whole ranks' columns to batches of the call table."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.calls import CALLS, Layer
from vani.columns import to_arrow, to_numpy
from vani.distinct import distinct
from vani.errors import TraceError
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


_IN_MEMORY = 1 << 26


@dataclass(frozen=True)
class _StoredBatch:
    at: int
    size: int
    numbers: NDArray[np.int32]
    """Numbers of which the batch has rows, ascending."""


class Spool:
    """Record batches of one schema, in order; several threads may read them repeatedly at the same time."""

    def __init__(self, schema: pa.Schema, by: str) -> None:
        """`by` is the column of thread or process numbers by which batches are requested."""
        self.schema, self.by = schema, by
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - lives as long as this
        self._stored: list[_StoredBatch] = []
        self._lock = threading.Lock()

    def __del__(self) -> None:
        self._file.close()

    def add(self, batch: pa.RecordBatch) -> None:
        """Store a batch.

        Raises
        ------
        TraceError
            There is no room for temporary files.
        """
        data = batch.serialize()
        with self._lock:
            try:
                at = self._file.seek(0, 2)
                self._file.write(data)
            except OSError as error:
                raise TraceError(
                    f"cannot store the parsed rows ({error.strerror})",
                    where=tempfile.gettempdir(),
                    todo="name another folder for temporary files in TMPDIR",
                ) from error
        numbers = distinct(to_numpy(batch.column(self.by)))
        self._stored.append(_StoredBatch(at, data.size, numbers))

    def batches(self, wanted: NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
        """The batches that have rows with any of the numbers marked in `wanted`."""
        for stored in self._stored:
            if not wanted[stored.numbers].any():
                continue
            with self._lock:
                self._file.seek(stored.at)
                data = self._file.read(stored.size)
            yield pa.ipc.read_record_batch(pa.py_buffer(data), self.schema)


Columns = dict[str, NDArray[Any]]
"""A spool's columns by name."""

_GROUP_ROWS = 4 * BATCH_ROWS


def process_batches(
    spool: Spool,
    rank_of_number: NDArray[np.int32],
    calls: Ints,
    ranks: range,
    delivery: Callable[[], Delivery],
    order: Callable[[Columns], NDArray[np.intp]],
    rows: Callable[[Columns], Rows],
    *,
    late: int = 0,
) -> Iterator[pa.RecordBatch]:
    """Yield the calls of `ranks`, in rank order, in batches with the schema `vani.calls.CALLS`.

    Parameters
    ----------
    rank_of_number
        The rank of each number (of a thread or process) by which the spool finds batches; -1 for none.
    calls
        Number of calls per rank.
    delivery
        Creates the delivery for some ranks.
    order
        Returns the row order: rank by rank, by call start.
    rows
        Converts ordered columns to rows.
    late
        Number of rows of a process read in pieces that wait for calls that ended later but began earlier.
    """
    for group in rank_groups(ranks, calls, _GROUP_ROWS):
        deliver = delivery()
        is_selected = (rank_of_number >= group.start) & (rank_of_number < group.stop)
        # A process with many calls is delivered in pieces.
        piece = _GROUP_ROWS + late if int(calls[group.start : group.stop].sum()) > _GROUP_ROWS else None
        waiting: list[Columns] = []
        for batch in spool.batches(is_selected):
            own = np.flatnonzero(is_selected[to_numpy(batch.column(spool.by))])
            waiting.append({name: to_numpy(batch.column(name))[own] for name in spool.schema.names})
            if piece is not None and sum(len(columns[spool.by]) for columns in waiting) >= piece:
                ordered = _joined(waiting, order)
                cut = len(ordered[spool.by]) - late
                yield from deliver.batches(rows({name: values[:cut] for name, values in ordered.items()}))
                waiting = [{name: values[cut:] for name, values in ordered.items()}]
        if waiting:
            yield from deliver.batches(rows(_joined(waiting, order)))


def _joined(parts: list[Columns], order: Callable[[Columns], NDArray[np.intp]]) -> Columns:
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    places = order(columns)
    return {name: values[places] for name, values in columns.items()}


def rank_groups(ranks: range, calls: Ints, most: int) -> Iterator[range]:
    """Split a range of ranks after about `most` calls each; ranks that are not consecutive are alone."""
    if ranks.step != 1:
        yield from (range(rank, rank + 1) for rank in ranks)
        return
    first, rows = ranks.start, 0
    for rank in ranks:
        if rows and rows + int(calls[rank]) > most:
            yield range(first, rank)
            first, rows = rank, 0
        rows += int(calls[rank])
    if rows:
        yield range(first, ranks.stop)
