"""Conversion of a rank's calls, given by signature id, to batches of the call table.

The compiled kernel computes a batch's columns where it can. It can continue after numpy's code, and vice versa.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from vani.calls import CALL_SITE, CALLS
from vani.columns import Bools, Int8s, Int32s, Ints, Numbers, distinct, to_arrow, with_validity
from vani.kernels import available, call, dtype_of, note
from vani.readers.delivery import Delivery, Rows, note_calls, note_renames
from vani.readers.nesting import LIBRARIES, Opened, unsurrounded
from vani.readers.positions import FileStates
from vani.readers.signatures import NO_VALUE, Signatures
from vani.readers.trace_reader import Piece

_NULLABLE = ("file", "offset", "bytes")
"""Columns with a validity bit per call, 0 if the value is unknown."""
_LARGE = 1 << 18
"""Signatures of a large table, from which a batch uses only a few."""
_MAX_OUTER = 1 << 20
_EXACT = 1 << 53
_LEFT_TO_NUMPY = -1
"""Used instead of a rule for calls that numpy must handle."""


class Chunk(NamedTuple):
    """Calls of one rank whose columns are not looked up yet; see `Rows`."""

    rank: int
    signatures: Signatures
    ids: Int32s
    start: Ints
    duration: Ints
    value: Ints | None
    origin: Int8s | None = None


@dataclass(frozen=True, eq=False)
class _Packed:
    """Signatures in the kernel's form, and the codes to which their positions refer."""

    signatures: Signatures
    table: Numbers
    files: Int32s
    handles: Int32s
    threads: Int32s
    depths: int


class BatchBuilder(Delivery):
    """Converts chunks to batches; each batch continues with the state of the previous one."""

    def __init__(
        self,
        piece: Piece,
        *,
        functions: tuple[str, ...],
        private: Bools,
        by_time: bool,
        handles: int,
        call_sites: bool = False,
    ) -> None:
        """See `Delivery`; with `call_sites`, batches also have the column `vani.calls.CALL_SITE`."""
        super().__init__(piece, functions, private, by_time=by_time, handles=handles)
        self._call_sites = call_sites
        self._schema = CALLS.append(CALL_SITE) if call_sites else CALLS
        self._packed: _Packed | None = None

    def build(self, chunks: list[Chunk]) -> pa.RecordBatch:
        """One batch with all calls of the chunks."""
        signatures, ids = _join(chunks)
        value, origin = None, None
        if not all(c.value is None for c in chunks):
            value = np.concatenate([c.signatures.value[c.ids] if c.value is None else c.value for c in chunks])
        if not all(c.origin is None for c in chunks):
            origin = _concatenate([np.full(len(c.ids), -1, np.int8) if c.origin is None else c.origin for c in chunks])
        rank, calls = np.array([c.rank for c in chunks], np.int32), np.array([len(c.ids) for c in chunks], np.int64)
        start, duration = _concatenate([c.start for c in chunks]), _concatenate([c.duration for c in chunks])
        rows = Rows(rank, signatures, ids, start, duration, value, origin)
        columns = self._compiled(rows, calls)
        if columns is None:
            columns = self.columns(Rows(np.repeat(rank, calls), signatures, ids, start, duration, value, origin))
        if self._call_sites:
            site = signatures.site[ids]
            columns["call_site"] = to_arrow(site, site < 0)
        return pa.RecordBatch.from_arrays([columns[name] for name in self._schema.names], schema=self._schema)

    def _compiled(self, rows: Rows, calls: Ints) -> dict[str, pa.Array] | None:
        """Columns from the compiled kernel; None if numpy must compute them.

        Parameters
        ----------
        rows
            Has one rank per run of calls, shape (runs,), ascending.
        calls
            Shape (runs,): number of calls in each run.
        """
        s, nesting = rows.signatures, self._nesting
        if not available():
            return None
        beside_times = nesting.by_time and (rows.origin is not None or nesting.knows_origins)
        if beside_times or len(s) > _LARGE:
            note("calls", used=False)
            return None
        if self._packed is None or self._packed.signatures is not s:
            self._packed = _pack(s)
        packed = self._packed
        first, last = int(rows.rank[0]), int(rows.rank[-1])
        files, handles = self._files_and_handles(packed, first)
        outer, threads = self._outer(packed, first)
        if outer.size > _MAX_OUTER:
            note("calls", used=False)
            return None
        reach = self._reach(first)
        out = call(
            "calls",
            ids=rows.ids,
            run_rank=rows.rank,
            run_calls=calls,
            table=packed.table,
            value=rows.value,
            start=rows.start,
            duration=rows.duration,
            origin=rows.origin,
            file_states=files,
            handle_states=handles,
            outer=outer,
            threads=outer.shape[0],
            depths=outer.shape[1],
            reach=reach,
            functions=len(self._names) + 1,
            by_time=nesting.by_time,
            bits=(len(rows.ids) + 7) // 8,
        )
        if out is None:
            return None
        moved, first_start, last_end, *unknown = out["summary"].tolist()
        if moved >= _EXACT:
            return None
        self._keep_files(last, files)
        self._keep_handles(last, packed.handles, handles, files["code"])
        nesting.keep(last, _open_by_time(reach) if nesting.by_time else _open(outer, threads, last))
        self._piece.bytes += float(moved)
        note_calls(self._piece, self._names, out["count"], first_start, last_end)
        note_renames(self._piece, out["rank"], out["file"], rows)
        columns = {name: to_arrow(out[name]) for name in CALLS.names if name in out and name not in _NULLABLE}
        for name, count in zip(_NULLABLE, unknown, strict=True):
            columns[name] = with_validity(out[name], out[f"{name}_known"], count)
        return columns | {"start_ns": to_arrow(rows.start), "duration_ns": to_arrow(rows.duration)}

    def _files_and_handles(self, packed: _Packed, rank: int) -> tuple[Numbers, Numbers]:
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
            order = np.argsort(codes)
            handles["file"][at[known]] = order[np.searchsorted(codes, file[known], sorter=order)]
        files = np.zeros(len(codes), dtype_of("calls", "file_states"))
        _, files["position"], end, files["append"], files["past"] = self._positions.before(rank, codes.astype(np.int64))
        files["rank"], files["code"] = rank, codes
        files["alone"] = self._positions.private[codes]
        files["known"] = (files["alone"] != 0) & (end != NO_VALUE)
        files["end"] = np.where(files["known"] != 0, np.maximum(end, 0), 0)
        return files, handles

    def _outer(self, packed: _Packed, rank: int) -> tuple[Numbers, Int32s]:
        """The open calls, shape (threads, depths), and the threads."""
        opened = [] if self._nesting.by_time else self._nesting.before(rank)
        waiting = distinct(np.array([o.thread for o in opened], np.int32))
        threads = np.append(packed.threads, waiting[~np.isin(waiting, packed.threads, assume_unique=True)])
        depths = max([packed.depths, *(o.depth + 1 for o in opened)])
        outer = np.zeros((len(threads), depths), dtype_of("calls", "outer"))
        outer["rank"] = -1
        place = {thread: slot for slot, thread in enumerate(threads.tolist())} if opened else {}
        for o in opened:
            outer[place[o.thread], o.depth] = (rank, o.within, o.layer, o.via, o.inside)
        return outer, threads

    def _reach(self, rank: int) -> Numbers:
        reach = np.zeros(len(LIBRARIES), dtype_of("calls", "reach"))
        limits = np.iinfo(np.int64)
        reach["begins"], reach["closes"], reach["highest"] = limits.max, limits.min, limits.min
        for o in self._nesting.before(rank) if self._nesting.by_time else ():
            reach["begins"][o.layer - LIBRARIES[0]] = o.start
            reach["closes"][o.layer - LIBRARIES[0]] = o.end
        return reach

    def _keep_files(self, rank: int, files: Numbers) -> None:
        files = files[(files["touched"] != 0) & (files["rank"] == rank)]
        if len(files):
            end = np.where((files["alone"] != 0) & (files["known"] != 0), files["end"], NO_VALUE)
            file, past = files["code"].astype(np.int64), files["past"].astype(np.int8)
            self._positions.keep(rank, FileStates(file, files["position"], end, files["append"] != 0, past))

    def _keep_handles(self, rank: int, names: Int32s, handles: Numbers, codes: Int32s) -> None:
        if len(handles):
            of_rank = handles["rank"] == rank
            file = np.append(codes, np.int32(-1))[handles["file"][of_rank]]
            self._handles.keep(rank, dict(zip(names[of_rank].tolist(), file.tolist(), strict=True)))


def _open_by_time(reach: Numbers) -> list[Opened]:
    return [
        Opened(layer=layer, via=layer, start=begins, end=closes)
        for layer, (begins, closes, _) in zip(LIBRARIES, reach.tolist(), strict=True)
        if closes > begins
    ]


def _open(outer: Numbers, threads: Int32s, rank: int) -> list[Opened]:
    """A rank's calls that may make later ones, by thread and depth."""
    slots, depths = np.nonzero(outer["rank"] == rank)
    calls = [
        Opened(thread, depth, layer, via, within, bool(inside))
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


def _join(chunks: list[Chunk]) -> tuple[Signatures, Int32s]:
    first = chunks[0].signatures
    if all(c.signatures is first for c in chunks):
        return first, _concatenate([c.ids for c in chunks])
    tables: list[Signatures] = []
    begins: dict[int, int] = {}
    total = 0
    ids = []
    for chunk in chunks:
        if len(chunk.signatures) > _LARGE:
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


def _concatenate(arrays: list[Numbers]) -> Numbers:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
