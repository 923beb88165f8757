"""Conversion of a rank's calls, given by signature id, to batches of the call table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.calls import CALL_SITE, CALLS, Layer
from vani.columns import to_arrow, with_validity
from vani.distinct import distinct
from vani.kernels.library import available, call, dtype_of, note
from vani.readers.nesting import LIBRARIES, Nesting, Opened, unsurrounded
from vani.readers.positions import Positions
from vani.readers.signatures import NO_VALUE, OpenHandles, Signatures, claimed
from vani.readers.trace_reader import Piece

NULLABLE = ("file", "offset", "bytes")
"""Columns with a validity bit per call, 0 if the value is unknown."""

_MAX_OUTER = 1 << 20
_EXACT = 1 << 53
_LEFT_TO_NUMPY = -1
"""Used instead of a rule for calls that numpy must handle."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CompiledColumns:
    """A batch's columns, and facts about all of its calls.

    Attributes
    ----------
    arrays
        Columns by name, shape (n,) each; `NULLABLE` columns also have validity bits, named NAME_known.
    unknown
        Number of unknown values in each of the `NULLABLE` columns.
    count
        Calls per function, shape (functions + 1,), after those without a known function.
    moved, first_start, last_end
        Total bytes, and the nanoseconds between which the calls took place.
    """

    arrays: dict[str, NDArray[Any]]
    unknown: dict[str, int]
    count: Ints
    moved: int
    first_start: int
    last_end: int


@dataclass(frozen=True, eq=False)
class _Packed:
    """Signatures in the kernel's form, and the codes to which their positions refer."""

    signatures: Signatures
    table: NDArray[Any]
    files: NDArray[np.int32]
    handles: NDArray[np.int32]
    threads: NDArray[np.int32]
    depths: int


class CompiledBatches:
    """Computes batches' columns; the state between two batches is shared with numpy's code."""

    def __init__(self, positions: Positions, nesting: Nesting, handles: OpenHandles, functions: int) -> None:
        """`functions` is the number of functions that the trace names."""
        self._positions, self._nesting, self._handles = positions, nesting, handles
        self._functions = functions
        self._packed: _Packed | None = None

    def columns(
        self,
        s: Signatures,
        ids: NDArray[np.int32],
        run_rank: NDArray[np.int32],
        run_calls: Ints,
        value: Ints | None,
        start: Ints,
        duration: Ints,
        origin: NDArray[np.int8] | None,
    ) -> CompiledColumns | None:
        """Compute a batch's columns; None if numpy must do it.

        Parameters
        ----------
        run_rank, run_calls
            Shape (runs,): ascending ranks, and the number of each one's calls in the batch.
        value
            Offset, distance or length of each call, shape (n,); None if the signatures' values apply.
        origin
            Origin of each call, shape (n,), if known; None if time intervals decide which calls are around a call.
        """
        if not available():
            return None
        beside_times = self._nesting.by_time and (origin is not None or self._nesting.knows_origins)
        if beside_times or not isinstance(s.func, np.ndarray):
            # Only a few signatures of large packed tables are used, each once.
            note("calls", used=False)
            return None
        if self._packed is None or self._packed.signatures is not s:
            self._packed = _pack(s)
        packed = self._packed
        first, last = int(run_rank[0]), int(run_rank[-1])
        files, handles = self._files_and_handles(packed, first)
        outer, threads = self._outer(packed, first)
        if outer.size > _MAX_OUTER:
            note("calls", used=False)
            return None
        reach = self._reach(first)
        out = call(
            "calls",
            ids=ids,
            run_rank=run_rank,
            run_calls=run_calls,
            table=packed.table,
            value=value,
            start=start,
            duration=duration,
            origin=origin,
            file_states=files,
            handle_states=handles,
            outer=outer,
            threads=outer.shape[0],
            depths=outer.shape[1],
            reach=reach,
            functions=self._functions + 1,
            by_time=self._nesting.by_time,
            bits=(len(ids) + 7) // 8,
        )
        if out is None:
            return None
        moved, first_start, last_end, *unknown = out["summary"].tolist()
        if moved >= _EXACT:
            return None
        self._keep_files(last, files)
        self._keep_handles(last, packed.handles, handles, files["code"])
        self._nesting.keep(last, _open_by_time(reach) if self._nesting.by_time else _open(outer, threads, last))
        unknown_values = dict(zip(NULLABLE, unknown, strict=True))
        return CompiledColumns(out, unknown_values, out["count"], moved, first_start, last_end)

    def _files_and_handles(self, packed: _Packed, rank: int) -> tuple[NDArray[Any], NDArray[Any]]:
        bound = self._handles.before(rank)
        codes = packed.files
        handles = np.zeros(len(packed.handles), dtype_of("calls", "handle_states"))
        handles["rank"], handles["file"] = rank, -1
        if bound and len(packed.handles):
            handle = np.fromiter(bound.keys(), np.int32, len(bound))
            file = np.fromiter(bound.values(), np.int32, len(bound))
            codes = np.append(codes, np.setdiff1d(file[file >= 0], codes))
            at = np.minimum(np.searchsorted(packed.handles, handle), len(packed.handles) - 1)
            known = (packed.handles[at] == handle) & (file >= 0)
            handles["file"][at[known]] = _places(codes, file[known])
        files = np.zeros(len(codes), dtype_of("calls", "file_states"))
        position, end, append, past = self._positions.before(rank, codes.astype(np.int64))
        files["rank"], files["code"], files["position"] = rank, codes, position
        files["alone"] = self._positions.private[codes]
        files["known"] = (files["alone"] != 0) & (end != NO_VALUE)
        files["end"] = np.where(files["known"] != 0, np.maximum(end, 0), 0)
        files["append"], files["past"] = append, past
        return files, handles

    def _outer(self, packed: _Packed, rank: int) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """The open calls, shape (threads, depths), and the threads."""
        opened = [] if self._nesting.by_time else self._nesting.before(rank)
        waiting = distinct(np.array([o.thread for o in opened], np.int32))
        threads = np.append(
            packed.threads, waiting[~np.isin(waiting, packed.threads, assume_unique=True)]
        )
        depths = max([packed.depths, *(o.depth + 1 for o in opened)])
        outer = np.zeros((len(threads), depths), dtype_of("calls", "outer"))
        outer["rank"] = -1
        place = {thread: slot for slot, thread in enumerate(threads.tolist())} if opened else {}
        for o in opened:
            outer[place[o.thread], o.depth] = (rank, o.within, o.layer, o.via, o.inside)
        return outer, threads

    def _reach(self, rank: int) -> NDArray[Any]:
        reach = np.zeros(len(LIBRARIES), dtype_of("calls", "reach"))
        limits = np.iinfo(np.int64)
        reach["begins"], reach["closes"], reach["highest"] = limits.max, limits.min, limits.min
        for o in self._nesting.before(rank) if self._nesting.by_time else ():
            reach["begins"][o.layer - LIBRARIES[0]] = o.start
            reach["closes"][o.layer - LIBRARIES[0]] = o.end
        return reach

    def _keep_files(self, rank: int, files: NDArray[Any]) -> None:
        files = files[(files["touched"] != 0) & (files["rank"] == rank)]
        if len(files):
            self._positions.keep(
                rank,
                files["code"].astype(np.int64),
                files["position"],
                np.where((files["alone"] != 0) & (files["known"] != 0), files["end"], NO_VALUE),
                files["append"] != 0,
                files["past"].astype(np.int8),
            )

    def _keep_handles(
        self, rank: int, names: NDArray[np.int32], handles: NDArray[Any], codes: NDArray[np.int32]
    ) -> None:
        if len(handles):
            of_rank = handles["rank"] == rank
            file = np.append(codes, np.int32(-1))[handles["file"][of_rank]]
            self._handles.keep(rank, dict(zip(names[of_rank].tolist(), file.tolist(), strict=True)))


def _open_by_time(reach: NDArray[Any]) -> list[Opened]:
    return [
        Opened(0, 0, layer, layer, 0, False, begins, closes)
        for layer, (begins, closes, _) in zip(LIBRARIES, reach.tolist(), strict=True)
        if closes > begins
    ]


def _open(outer: NDArray[Any], threads: NDArray[np.int32], rank: int) -> list[Opened]:
    """A rank's calls that may make later ones, by thread and depth."""
    slots, depths = np.nonzero(outer["rank"] == rank)
    calls = [
        Opened(thread, depth, layer, via, within, bool(inside), 0, 0)
        for thread, depth, (_, within, layer, via, inside) in zip(
            threads[slots].tolist(), depths.tolist(), outer[slots, depths].tolist(), strict=True
        )
    ]
    return sorted(calls, key=lambda o: (o.thread, o.depth))


def _pack(s: Signatures) -> _Packed:
    named = np.concatenate((s.file, s.rename_to))
    files = distinct(named[named >= 0])
    handles, threads = distinct(s.handle[s.handle >= 0]), distinct(s.thread)
    table = np.zeros(len(s), dtype_of("calls", "table"))
    for name in ("value", "bytes", "thread", "func", "flags", "layer", "kind", "depth", "rule", "binds"):
        table[name] = getattr(s, name)
    for name, codes in (("file", s.file), ("renamed", s.rename_to)):
        table[name] = np.where(codes >= 0, np.searchsorted(files, codes), -1)
    table["handle"] = np.where(s.handle >= 0, np.searchsorted(handles, s.handle), -1)
    table["thread_slot"] = np.searchsorted(threads, s.thread)
    _, table["own"] = unsurrounded(s.layer, None)
    table["rule"][(s.thread < 0) | (s.depth < 0)] = _LEFT_TO_NUMPY
    return _Packed(s, table, files, handles, threads, max(0, int(s.depth.max(initial=0))) + 1)


def _places(codes: NDArray[np.int32], searched: NDArray[np.int32]) -> Ints:
    """Position of each element of `searched` in `codes`, which contain all of them."""
    order = np.argsort(codes)
    places: Ints = order[np.searchsorted(codes[order], searched)]
    return places


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
