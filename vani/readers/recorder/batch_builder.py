"""Conversion of a rank's calls, given by signature id, to batches of the call table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.calls import CALL_SITE, CALLS, Layer
from vani.columns import to_arrow, with_validity
from vani.readers.handles import OpenHandles
from vani.readers.nesting import Nesting
from vani.readers.plausible import NO_VALUE, claimed
from vani.readers.positions import Positions
from vani.readers.recorder.compiled_batch import NULLABLE, CompiledBatches
from vani.readers.signatures import Signatures
from vani.readers.trace_reader import Piece

Ints = NDArray[np.int64]


class Chunk(NamedTuple):
    """Calls of one rank whose columns are not looked up yet."""

    rank: int
    signatures: Signatures
    ids: NDArray[np.int32]
    start: Ints
    duration: Ints
    value: Ints | None
    """Offsets from resolved patterns; None if there are no patterns."""
    origin: NDArray[np.int8] | None = None
    """Origin of the calls; None if unknown."""


class BatchBuilder:
    """Converts chunks to batches; each batch continues with the state of the previous one."""

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
        """`private[file]`: only one rank names it; `by_time`: no depth shows which call made which.

        With `call_sites`, batches also have the column `vani.calls.CALL_SITE`.
        """
        self._piece = piece
        self._functions = functions
        self._positions = Positions(private)
        self._nesting = Nesting(by_time=by_time)
        self._handles = OpenHandles(handles)
        self._kernel = CompiledBatches(self._positions, self._nesting, self._handles, len(functions))
        self._call_sites = call_sites
        self._schema = CALLS.append(CALL_SITE) if call_sites else CALLS

    def build(self, chunks: list[Chunk]) -> pa.RecordBatch:
        """One batch with all calls of the chunks."""
        s, ids = _join(chunks)
        start = _concatenate([c.start for c in chunks])
        duration = _concatenate([c.duration for c in chunks])
        value = None
        if not all(c.value is None for c in chunks):
            value = np.concatenate(
                [c.signatures.value[c.ids] if c.value is None else c.value for c in chunks]
            )
        columns = self._compiled(chunks, s, ids, value, start, duration)
        if columns is None:
            columns = self._resolved(chunks, s, ids, value, start, duration)
        columns |= {"start_ns": to_arrow(start), "duration_ns": to_arrow(duration)}
        if self._call_sites:
            site = s.site[ids]
            columns["call_site"] = to_arrow(site, site < 0)
        return pa.RecordBatch.from_arrays([columns[name] for name in self._schema.names], schema=self._schema)

    def _compiled(
        self,
        chunks: list[Chunk],
        s: Signatures,
        ids: NDArray[np.int32],
        value: Ints | None,
        start: Ints,
        duration: Ints,
    ) -> dict[str, pa.Array] | None:
        """Columns from the compiled kernel; None if numpy must compute them."""
        compiled = self._kernel.columns(
            s,
            ids,
            np.array([c.rank for c in chunks], np.int32),
            np.array([len(c.ids) for c in chunks], np.int64),
            value,
            start,
            duration,
            _origins(chunks),
        )
        if compiled is None:
            return None
        self._piece.bytes += float(compiled.moved)
        note_calls(self._piece, self._functions, compiled.count, compiled.first_start, compiled.last_end)
        arrays = compiled.arrays
        self._note_renames(arrays["rank"], arrays["file"], s, ids, start)
        return {
            name: with_validity(arrays[name], arrays[f"{name}_known"], compiled.unknown[name])
            if name in NULLABLE
            else to_arrow(arrays[name])
            for name in CALLS.names
            if name in arrays
        }

    def _resolved(
        self,
        chunks: list[Chunk],
        s: Signatures,
        ids: NDArray[np.int32],
        value: Ints | None,
        start: Ints,
        duration: Ints,
    ) -> dict[str, pa.Array]:
        """Columns computed with numpy."""
        sizes = [len(c.ids) for c in chunks]
        rank = np.repeat(np.array([c.rank for c in chunks], dtype=np.int32), sizes)
        # With 64-bit indices, numpy's take is twice as fast.
        at = ids.astype(np.int64)
        value = s.value[at] if value is None else value
        file = s.file[at]
        if s.handle.max(initial=-1) >= 0:
            self._handles.resolve(rank, s.handle[at], s.binds[at], file)
        flags = s.flags[at]
        kind, layer, depth, size = s.kind[at], s.layer[at], s.depth[at], s.bytes[at]
        renames = s.rename_to[at] if s.rename_to.max(initial=-1) >= 0 else None
        offset = self._positions.resolve(rank, file, s.rule[at], kind, value, size, flags, renames)
        self._positions.note_problem(self._piece)
        # A library call names its own offset (in units of its view), so positions are tracked only below libraries.
        above = np.flatnonzero(layer == Layer.MPIIO)
        above = above[value[above] != NO_VALUE]
        offset[above] = value[above]
        thread = s.thread[at] if s.thread.any() else np.zeros(len(ids), np.int32)
        origin = _origins(chunks)
        via, within = self._nesting.resolve(rank, thread, depth, layer, start, duration, flags, origin)
        self._piece.bytes += claimed(size, int(s.bytes.max(initial=0)))
        func = s.func[at]
        count = np.bincount(func.astype(np.int64) + 1)
        note_calls(self._piece, self._functions, count, int(start.min()), int((start + duration).max()))
        self._note_renames(rank, file, s, ids, start)
        return {
            "rank": to_arrow(rank),
            "thread": to_arrow(thread),
            "func": to_arrow(func),
            "layer": to_arrow(layer),
            "kind": to_arrow(kind),
            "depth": to_arrow(depth),
            "via": to_arrow(via),
            "within": to_arrow(within),
            "flags": to_arrow(flags),
            "file": to_arrow(file, file < 0),
            "offset": to_arrow(offset, offset == NO_VALUE),
            "bytes": to_arrow(size, size == NO_VALUE),
        }

    def _note_renames(
        self,
        rank: NDArray[np.int32],
        file: NDArray[np.int32],
        s: Signatures,
        ids: NDArray[np.int32],
        start: Ints,
    ) -> None:
        if s.rename_to.max(initial=-1) < 0:
            return
        rows = np.flatnonzero(s.rename_to[ids] >= 0)
        self._piece.renames += zip(
            rank[rows].tolist(),
            start[rows].tolist(),
            file[rows].tolist(),
            s.rename_to[ids[rows]].tolist(),
            strict=True,
        )


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
            # Only a few signatures of a large packed table are used.
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
