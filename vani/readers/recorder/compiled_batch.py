"""Columns of a batch by the compiled kernel, which goes on from where numpy's code stopped, and the other way round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.distinct import distinct
from vani.kernels import calls as kernel
from vani.kernels.library import library, note
from vani.readers.handles import OpenHandles
from vani.readers.nesting import LIBRARIES, Nesting, Opened, unsurrounded
from vani.readers.plausible import NO_VALUE
from vani.readers.positions import Positions
from vani.readers.signatures import Signatures

__all__ = ["CompiledBatches"]

_MOST_OUTER = 1 << 20
_EXACT = 1 << 53

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Packed:
    """Signatures as the kernel takes them, and the codes behind the positions that stand in them."""

    of: Signatures
    table: NDArray[Any]
    files: NDArray[np.int32]
    handles: NDArray[np.int32]
    threads: NDArray[np.int32]
    depths: int


class CompiledBatches:
    """Finds the columns of batches; what one must know of the one before stays where numpy's code looks for it."""

    def __init__(self, positions: Positions, nesting: Nesting, handles: OpenHandles, functions: int) -> None:
        """`functions`: how many the trace names."""
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
    ) -> kernel.Found | None:
        """Columns of a batch, None if numpy decides; `run_calls` of the calls are each of a rank of `run_rank`."""
        if library() is None:
            return None
        beside_times = self._nesting.by_time and (origin is not None or self._nesting.knows_origins)
        if beside_times or not isinstance(s.func, np.ndarray):
            # Of large packed tables few signatures are looked at, once each.
            note("calls", used=False)
            return None
        if self._packed is None or self._packed.of is not s:
            self._packed = _pack(s)
        packed = self._packed
        first, last = int(run_rank[0]), int(run_rank[-1])
        files, handles = self._files_and_handles(packed, first)
        outer, threads = self._outer(packed, first)
        if outer.size > _MOST_OUTER:
            note("calls", used=False)
            return None
        given = kernel.Given(
            ids=np.ascontiguousarray(ids, np.int32),
            run_rank=run_rank,
            run_calls=run_calls,
            table=packed.table,
            value=value,
            start=start,
            duration=duration,
            origin=origin,
            functions=self._functions,
            by_time=self._nesting.by_time,
            files=files,
            handles=handles,
            outer=outer,
            reach=self._reach(first),
        )
        found = kernel.calls(given)
        if found is None or found.moved >= _EXACT:
            return None
        self._keep(given, packed, threads, last)
        return found

    def _files_and_handles(self, packed: _Packed, rank: int) -> tuple[NDArray[Any], NDArray[Any]]:
        bound = self._handles.before(rank)
        codes = packed.files
        handles = np.zeros(len(packed.handles), kernel.HANDLE)
        handles["rank"], handles["file"] = rank, -1
        if bound and len(packed.handles):
            handle = np.fromiter(bound.keys(), np.int32, len(bound))
            file = np.fromiter(bound.values(), np.int32, len(bound))
            codes = np.append(codes, np.setdiff1d(file[file >= 0], codes))
            at = np.minimum(np.searchsorted(packed.handles, handle), len(packed.handles) - 1)
            known = (packed.handles[at] == handle) & (file >= 0)
            handles["file"][at[known]] = _places(codes, file[known])
        files = np.zeros(len(codes), kernel.FILE)
        position, end, append, past = self._positions.before(rank, codes.astype(np.int64))
        files["rank"], files["code"], files["position"] = rank, codes, position
        files["alone"] = self._positions.private[codes]
        files["known"] = (files["alone"] != 0) & (end != NO_VALUE)
        files["end"] = np.where(files["known"] != 0, np.maximum(end, 0), 0)
        files["append"], files["past"] = append, past
        return files, handles

    def _outer(self, packed: _Packed, rank: int) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """The calls that are open, shape (threads, depths), and the threads."""
        opened = [] if self._nesting.by_time else self._nesting.before(rank)
        waiting = distinct(np.array([o.thread for o in opened], np.int32))
        threads = np.append(
            packed.threads, waiting[~np.isin(waiting, packed.threads, assume_unique=True)]
        )
        depths = max([packed.depths, *(o.depth + 1 for o in opened)])
        outer = np.zeros((len(threads), depths), kernel.OUTER)
        outer["rank"] = -1
        place = {thread: slot for slot, thread in enumerate(threads.tolist())} if opened else {}
        for o in opened:
            outer[place[o.thread], o.depth] = (rank, o.within, o.layer, o.via, o.inside)
        return outer, threads

    def _reach(self, rank: int) -> NDArray[Any]:
        reach = np.zeros(kernel.LIBRARIES, kernel.REACH)
        limits = np.iinfo(np.int64)
        reach["begins"], reach["closes"], reach["highest"] = limits.max, limits.min, limits.min
        for o in self._nesting.before(rank) if self._nesting.by_time else ():
            reach["begins"][o.layer - LIBRARIES[0]] = o.start
            reach["closes"][o.layer - LIBRARIES[0]] = o.end
        return reach

    def _keep(self, given: kernel.Given, packed: _Packed, threads: NDArray[np.int32], rank: int) -> None:
        files = given.files[(given.files["touched"] != 0) & (given.files["rank"] == rank)]
        if len(files):
            self._positions.keep(
                rank,
                files["code"].astype(np.int64),
                files["position"],
                np.where((files["alone"] != 0) & (files["known"] != 0), files["end"], NO_VALUE),
                files["append"] != 0,
                files["past"].astype(np.int8),
            )
        if len(packed.handles):
            mine = given.handles["rank"] == rank
            file = given.handles["file"][mine]
            codes = np.append(given.files["code"], np.int32(-1))[file]
            bound = zip(packed.handles[mine].tolist(), codes.tolist(), strict=True)
            self._handles.keep(rank, dict(bound))
        if given.by_time:
            kept = [
                Opened(0, 0, library, library, 0, False, int(one["begins"]), int(one["closes"]))
                for library, one in zip(LIBRARIES, given.reach, strict=True)
                if one["closes"] > one["begins"]
            ]
        else:
            slots, depths = np.nonzero(given.outer["rank"] == rank)
            kept = [
                Opened(
                    int(threads[slot]),
                    depth,
                    int(one["layer"]),
                    int(one["via"]),
                    int(one["within"]),
                    bool(one["inside"]),
                    0,
                    0,
                )
                for slot, depth, one in zip(
                    slots.tolist(), depths.tolist(), given.outer[slots, depths], strict=True
                )
            ]
            kept.sort(key=lambda o: (o.thread, o.depth))
        self._nesting.keep(rank, kept)


def _pack(s: Signatures) -> _Packed:
    named = np.concatenate((s.file, s.rename_to))
    files = distinct(named[named >= 0])
    handles, threads = distinct(s.handle[s.handle >= 0]), distinct(s.thread)
    table = np.zeros(len(s), kernel.SIGNATURE)
    for name in ("value", "bytes", "thread", "func", "flags", "layer", "kind", "depth", "rule", "binds"):
        table[name] = getattr(s, name)
    for name, codes in (("file", s.file), ("renamed", s.rename_to)):
        table[name] = np.where(codes >= 0, np.searchsorted(files, codes), -1)
    table["handle"] = np.where(s.handle >= 0, np.searchsorted(handles, s.handle), -1)
    table["thread_slot"] = np.searchsorted(threads, s.thread)
    _, table["own"] = unsurrounded(s.layer, None)
    table["rule"][(s.thread < 0) | (s.depth < 0)] = kernel.ODD
    return _Packed(s, table, files, handles, threads, max(0, int(s.depth.max(initial=0))) + 1)


def _places(codes: NDArray[np.int32], wanted: NDArray[np.int32]) -> Ints:
    """Where each of `wanted` stands in `codes`, which hold them all."""
    order = np.argsort(codes)
    found: Ints = order[np.searchsorted(codes[order], wanted)]
    return found
