"""From calls of a rank, by signature id, to batches of the table of calls."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.calls import CALL_SITE, CALLS, Layer
from vani.columns import to_arrow
from vani.readers.handles import OpenHandles
from vani.readers.nesting import Nesting
from vani.readers.plausible import NO_VALUE, claimed
from vani.readers.positions import Positions
from vani.readers.signatures import Signatures
from vani.readers.trace_reader import Piece

__all__ = ["BatchBuilder", "Chunk"]

Ints = NDArray[np.int64]


class Chunk(NamedTuple):
    """Calls of one rank whose columns are not yet looked up."""

    rank: int
    signatures: Signatures
    ids: NDArray[np.int32]
    start: Ints
    duration: Ints
    value: Ints | None
    """Offsets after resolving patterns; None where there are none to resolve."""
    origin: NDArray[np.int8] | None = None
    """What made the calls; None where nothing tells."""


class BatchBuilder:
    """Turns chunks into batches, carrying what one batch must know of the one before."""

    def __init__(
        self,
        piece: Piece,
        *,
        functions: tuple[str, ...],
        private: NDArray[np.bool_],
        by_time: bool,
        handles: int,
        call_sites: bool = False,
    ) -> None:
        """`private[file]`: one rank alone names it; `by_time`: no depth tells who called whom.

        With `call_sites` batches have the column `vani.calls.CALL_SITE`, too.
        """
        self._piece = piece
        self._functions = functions
        self._positions = Positions(private)
        self._nesting = Nesting(by_time=by_time)
        self._handles = OpenHandles(handles)
        self._call_sites = call_sites
        self._schema = CALLS.append(CALL_SITE) if call_sites else CALLS

    def build(self, chunks: list[Chunk]) -> pa.RecordBatch:
        """One batch of all the chunks' calls."""
        s, ids = _join(chunks)
        sizes = [len(c.ids) for c in chunks]
        rank = np.repeat(np.array([c.rank for c in chunks], dtype=np.int32), sizes)
        start = _concatenate([c.start for c in chunks])
        duration = _concatenate([c.duration for c in chunks])
        if all(c.value is None for c in chunks):
            value = s.value[ids]
        else:
            value = np.concatenate(
                [c.signatures.value[c.ids] if c.value is None else c.value for c in chunks]
            )
        file = s.file[ids]
        if s.handle.max(initial=-1) >= 0:
            self._handles.resolve(rank, s.handle[ids], s.binds[ids], file)
        flags = s.flags[ids]
        kind, layer, depth, size = s.kind[ids], s.layer[ids], s.depth[ids], s.bytes[ids]
        renames = s.rename_to[ids] if s.rename_to.max(initial=-1) >= 0 else None
        offset = self._positions.resolve(rank, file, s.rule[ids], kind, value, size, flags, renames)
        # A library's own offset (in units of its view) is what its call says; positions are followed below it only.
        above = np.flatnonzero((layer == Layer.MPIIO) & (value != NO_VALUE))
        offset[above] = value[above]
        thread = s.thread[ids] if s.thread.any() else np.zeros(len(ids), np.int32)
        origin = _origins(chunks)
        via, within = self._nesting.resolve(rank, thread, depth, layer, start, duration, flags, origin)
        self._piece.bytes += claimed(size, int(s.bytes.max(initial=0)))
        self._note(rank, file, s, ids, start, duration)
        arrays = [
            to_arrow(rank),
            to_arrow(thread),
            to_arrow(s.func[ids]),
            to_arrow(layer),
            to_arrow(kind),
            to_arrow(depth),
            to_arrow(via),
            to_arrow(within),
            to_arrow(flags),
            to_arrow(file, file < 0),
            to_arrow(offset, offset == NO_VALUE),
            to_arrow(size, size == NO_VALUE),
            to_arrow(start),
            to_arrow(duration),
        ]
        if self._call_sites:
            site = s.site[ids]
            arrays.append(to_arrow(site, site < 0))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _note(
        self,
        rank: NDArray[np.int32],
        file: NDArray[np.int32],
        s: Signatures,
        ids: NDArray[np.int32],
        start: Ints,
        duration: Ints,
    ) -> None:
        piece = self._piece
        piece.records += len(ids)
        piece.span_ns = max(piece.span_ns, int((start + duration).max()))
        first = int(start.min())
        piece.first_ns = first if piece.first_ns is None else min(piece.first_ns, first)
        for func, count in enumerate(np.bincount(s.func[ids].astype(np.int64) + 1).tolist()):
            if count:
                name = self._functions[func - 1] if func else "(unknown)"
                piece.functions[name] = piece.functions.get(name, 0) + count
        if s.rename_to.max(initial=-1) >= 0:
            rows = np.flatnonzero(s.rename_to[ids] >= 0)
            piece.renames += zip(
                rank[rows].tolist(),
                start[rows].tolist(),
                file[rows].tolist(),
                s.rename_to[ids[rows]].tolist(),
                strict=True,
            )


def _join(chunks: list[Chunk]) -> tuple[Signatures, NDArray[np.int32]]:
    first = chunks[0].signatures
    if all(c.signatures is first for c in chunks):
        return first, _concatenate([c.ids for c in chunks])
    tables: list[Signatures] = []
    begins: dict[int, int] = {}
    total = 0
    ids = []
    for chunk in chunks:
        if not isinstance(chunk.signatures.func, np.ndarray):
            # Of a large table that is packed a few are used.
            used, codes = np.unique(chunk.ids, return_inverse=True)
            tables.append(chunk.signatures.take(used))
            ids.append(codes.astype(np.int32) + np.int32(total))
            total += len(used)
            continue
        at = begins.get(id(chunk.signatures))
        if at is None:
            begins[id(chunk.signatures)] = at = total
            tables.append(chunk.signatures)
            total += len(chunk.signatures)
        ids.append(chunk.ids + np.int32(at))
    return Signatures.join(tables), _concatenate(ids)


def _origins(chunks: list[Chunk]) -> NDArray[np.int8] | None:
    if all(c.origin is None for c in chunks):
        return None
    return _concatenate([np.full(len(c.ids), -1, np.int8) if c.origin is None else c.origin for c in chunks])


def _concatenate(arrays: list[NDArray[Any]]) -> NDArray[Any]:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
