"""A batch's columns from the compiled kernel, which can continue after numpy's code, and vice versa."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.distinct import distinct
from vani.kernels.library import available, call, dtype_of, note
from vani.readers.handles import OpenHandles
from vani.readers.nesting import LIBRARIES, Nesting, Opened, unsurrounded
from vani.readers.plausible import NO_VALUE
from vani.readers.positions import Positions
from vani.readers.signatures import Signatures

NULLABLE = ("file", "offset", "bytes")
"""Columns with a validity bit per call, 0 if the value is unknown."""

_MOST_OUTER = 1 << 20
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
        if outer.size > _MOST_OUTER:
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
