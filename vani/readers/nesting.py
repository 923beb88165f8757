"""Nesting: the library calls around each file-system call.

An outer call is recorded before the calls that it makes (format document, section 5.3), so a call of depth d + 1
belongs to the nearest preceding call of depth d on the same thread. In traces without depths, a call belongs to the
library calls whose intervals contain its own.

Newer traces also name each call's origin: the library whose code made the call. With depths, the origin adds that
library, whose own calls may be missing from the trace. Without depths, it replaces times: a call by the executable
is inside no library call, and a call by a library belongs to that library's nearest preceding call on the same thread.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vani.calls import Flag, Layer
from vani.readers.positions import stable_order

LIBRARIES = tuple(range(Layer.MPIIO, Layer.NETCDF + 1))
"""Library layers; a library uses those with lower numbers."""


def unsurrounded(
    layer: NDArray[np.int8], origin: NDArray[np.int8] | None
) -> tuple[NDArray[np.int8], NDArray[np.int16]]:
    """`via` and `within` of calls that are inside no traced call, shape (n,) each."""
    own = (np.int16(1) << layer.astype(np.int16)).astype(np.int16)
    if origin is None:
        return layer, own
    by_library = made_by_library(layer, origin)
    via = np.where(by_library, origin, layer)
    return via, np.where(by_library, own | (np.int16(1) << via.astype(np.int16)), own).astype(np.int16)


def made_by_library(layer: NDArray[np.int8], origin: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Whether each call was made by a library of a higher layer than its own; shape (n,), bool."""
    by_library: NDArray[np.bool_] = (origin > layer) & (origin >= Layer.MPIIO) & (origin <= Layer.NETCDF)
    return by_library


def outermost(
    own: NDArray[np.int8], around: NDArray[np.int8], layer: NDArray[np.int8], origin: NDArray[np.int8]
) -> NDArray[np.int8]:
    """`via` of calls within others, shape (n,); `own` is their layer, `around` the layer of the calls around them.

    MPI finishes non-blocking file operations in calls such as MPI_Wait, which belong to no file library themselves.
    """
    via: NDArray[np.int8] = np.where((around == Layer.MPI) & made_by_library(layer, origin), own, around)
    return via


class Opened(NamedTuple):
    """A call of the previous batch that may have made calls of this one."""

    thread: int
    depth: int
    layer: int
    via: int
    within: int
    inside: bool
    start: int
    end: int


class Nesting:
    """Finds the layers of the calls around each call, batch by batch."""

    def __init__(self, *, by_time: bool) -> None:
        """`by_time`: intervals decide, because no depth is stored."""
        self.by_time = by_time
        self._rank = -1
        self._open: list[Opened] = []
        self._last: list[Opened] = []
        """The last call of each library and thread of the last rank, for traces in which origins replace times."""

    @property
    def knows_origins(self) -> bool:
        """Whether the previous batch had a call with a known origin."""
        return bool(self._last)

    def before(self, rank: int) -> list[Opened]:
        """Calls of the previous batch that may have made calls of `rank`."""
        return self._open if rank == self._rank else []

    def keep(self, rank: int, opened: list[Opened]) -> None:
        """Save the calls of `rank` that may make calls of the next batch, by thread and depth."""
        self._rank, self._open = rank, opened

    def resolve(
        self,
        rank: NDArray[np.int32],
        thread: NDArray[np.int32],
        depth: NDArray[np.int8],
        layer: NDArray[np.int8],
        start: NDArray[np.int64],
        duration: NDArray[np.int64],
        flags: NDArray[np.int16],
        origin: NDArray[np.int8] | None = None,
    ) -> tuple[NDArray[np.int8], NDArray[np.int16]]:
        """Find the layer of the outermost call around each call, and all layers around it.

        Sets `Flag.NESTED` in `flags` in place. `origin` has the origin of each call, see `call_sites.Origins.of`.

        Returns
        -------
        via
            Shape (n,): layer of the outermost call around, or the call's own layer if there is none.
        within
            Shape (n,): a bit (1 << layer) for the call's own layer and for each layer around it.
        """
        if int(rank[0]) != self._rank:
            self._open = []
        if self.by_time:
            _, own = unsurrounded(layer, None)
            via, within = self._around(rank, layer, own, start, start + duration)
            if origin is not None or self._last:
                via, within = self._behind(rank, thread, layer, origin, via, within)
        else:
            via, within = self._below(rank, thread, depth, layer, origin, flags)
        self._rank = int(rank[-1])
        return via, within

    def _below(
        self,
        rank: NDArray[np.int32],
        thread: NDArray[np.int32],
        depth: NDArray[np.int8],
        layer: NDArray[np.int8],
        origin: NDArray[np.int8] | None,
        flags: NDArray[np.int16],
    ) -> tuple[NDArray[np.int8], NDArray[np.int16]]:
        # Open calls of the previous batch come first, as if they belonged to this one.
        ghosts = len(self._open)
        alone, own = unsurrounded(layer, origin)
        rank = np.concatenate((np.full(ghosts, rank[0], np.int32), rank))
        thread = np.concatenate((np.array([o.thread for o in self._open], np.int32), thread))
        depth = np.concatenate((np.array([o.depth for o in self._open], np.int8), depth))
        layer = np.concatenate((np.array([o.layer for o in self._open], np.int8), layer))
        key = rank.astype(np.int64) << 32 | (thread.astype(np.int64) & 0xFFFFFFFF)
        order = stable_order(key)
        key, depth, layer = key[order], depth[order], layer[order]
        within = np.concatenate((np.array([o.within for o in self._open], np.int16), own))[order]
        inside = np.concatenate(
            (np.array([o.inside for o in self._open], np.bool_), np.zeros(len(own), np.bool_))
        )[order]
        via = np.concatenate((np.array([o.via for o in self._open], np.int8), alone))[order]
        if origin is not None:
            origin = np.concatenate((np.full(ghosts, -1, np.int8), origin))[order]
        new = order >= ghosts
        index = np.arange(len(key))
        starts = np.append(True, key[1:] != key[:-1])
        file_system = layer <= Layer.STDIO
        for level in range(1, int(depth.max()) + 1):
            rows = np.flatnonzero((depth == level) & new)
            if not len(rows):
                continue
            parent = np.maximum.accumulate(np.where((depth == level - 1) | starts, index, 0))[rows]
            real = depth[parent] == level - 1
            rows, parent = rows[real], parent[real]
            if origin is None:
                via[rows] = via[parent]
            else:
                via[rows] = outermost(via[rows], via[parent], layer[rows], origin[rows])
            within[rows] |= within[parent]
            inside[rows] = file_system[parent] | inside[parent]
        nested = np.flatnonzero(inside & file_system & new)
        flags[order[nested] - ghosts] |= Flag.NESTED
        self._open = self._chains(key, depth, layer, via, within, inside)
        back_via, back_within = np.empty_like(via), np.empty_like(within)
        back_via[order], back_within[order] = via, within
        return back_via[ghosts:], back_within[ghosts:]

    @staticmethod
    def _chains(
        key: NDArray[np.int64],
        depth: NDArray[np.int8],
        layer: NDArray[np.int8],
        via: NDArray[np.int8],
        within: NDArray[np.int16],
        inside: NDArray[np.bool_],
    ) -> list[Opened]:
        """The last call of each thread and depth of the last rank; later calls belong to one of these."""
        chains = []
        last_rank = int(key[-1] >> 32)
        bounds = np.append(np.flatnonzero(np.append(True, key[1:] != key[:-1])), len(key))
        for a, b in pairwise(bounds.tolist()):
            if int(key[a] >> 32) != last_rank:
                continue
            _, from_end = np.unique(depth[a:b][::-1], return_index=True)
            chains += [
                Opened(
                    int(key[row] & 0xFFFFFFFF),
                    int(depth[row]),
                    int(layer[row]),
                    int(via[row]),
                    int(within[row]),
                    bool(inside[row]),
                    0,
                    0,
                )
                for row in (b - 1 - from_end).tolist()
            ]
        return sorted(chains, key=lambda o: (o.thread, o.depth))

    def _around(
        self,
        rank: NDArray[np.int32],
        layer: NDArray[np.int8],
        own: NDArray[np.int16],
        start: NDArray[np.int64],
        end: NDArray[np.int64],
    ) -> tuple[NDArray[np.int8], NDArray[np.int16]]:
        via, within = layer.copy(), own.copy()
        widest = np.full(len(layer), -1, np.int64)
        bounds = np.append(np.flatnonzero(np.append(True, rank[1:] != rank[:-1])), len(rank))
        open_calls = []
        for library in LIBRARIES:
            calls = layer == library
            carried = next((o for o in self._open if o.layer == library), None)
            if not calls.any() and carried is None:
                continue
            for number, (a, b) in enumerate(pairwise(bounds.tolist())):
                before = carried if number == 0 else None
                # The call that ends last is the outermost of its layer: it is recorded before the calls inside it.
                reach = np.where(calls[a:b], end[a:b], np.iinfo(np.int64).min)
                highest = np.maximum.accumulate(reach)
                fresh = calls[a:b] & np.append(True, highest[1:] > highest[:-1])
                place = np.maximum.accumulate(np.where(fresh, np.arange(b - a), -1))
                begins = np.where(
                    place >= 0, start[a:b][place], before.start if before else np.iinfo(np.int64).max
                )
                closes = np.where(
                    place >= 0, end[a:b][place], before.end if before else np.iinfo(np.int64).min
                )
                around = (start[a:b] >= begins) & (end[a:b] <= closes)
                within[a:b][around] |= np.int16(1 << library)
                wider = around & (closes - begins > widest[a:b])
                via[a:b][wider] = library
                widest[a:b][wider] = (closes - begins)[wider]
                if b == len(rank) and closes[-1] > begins[-1]:
                    open_calls.append(Opened(0, 0, library, library, 0, False, int(begins[-1]), int(closes[-1])))
        self._open = open_calls
        return via, within

    def _behind(
        self,
        rank: NDArray[np.int32],
        thread: NDArray[np.int32],
        layer: NDArray[np.int8],
        origin: NDArray[np.int8] | None,
        via: NDArray[np.int8],
        within: NDArray[np.int16],
    ) -> tuple[NDArray[np.int8], NDArray[np.int16]]:
        """Replace `via` and `within`, which were found by times, where origins are known."""
        if int(rank[0]) != self._rank:
            self._last = []
        ghosts = len(self._last)
        if origin is None:
            origin = np.full(len(layer), -1, np.int8)
        alone, own = unsurrounded(layer, origin)
        known = (origin == Layer.USER) | made_by_library(layer, origin)
        via, within = np.where(known, alone, via), np.where(known, own, within)
        key = np.concatenate((np.full(ghosts, rank[0], np.int32), rank)).astype(np.int64) << 32
        key |= np.concatenate((np.array([o.thread for o in self._last], np.int32), thread)).astype(np.int64)
        order = stable_order(key)
        key = key[order]
        layer = np.concatenate((np.array([o.layer for o in self._last], np.int8), layer))[order]
        origin = np.concatenate((np.full(ghosts, -1, np.int8), origin))[order]
        via = np.concatenate((np.array([o.via for o in self._last], np.int8), via))[order]
        within = np.concatenate((np.array([o.within for o in self._last], np.int16), within))[order]
        index = np.arange(len(key))
        starts = np.append(True, key[1:] != key[:-1])
        for library in reversed(LIBRARIES):
            rows = np.flatnonzero((origin == library) & (layer < library))
            if not len(rows):
                continue
            parent = np.maximum.accumulate(np.where((layer == library) | starts, index, 0))[rows]
            real = layer[parent] == library
            rows, parent = rows[real], parent[real]
            via[rows] = via[parent]
            within[rows] |= within[parent]
        self._last = []
        library_calls = np.flatnonzero((key >> 32 == rank[-1]) & (layer >= Layer.MPIIO) & (layer <= Layer.NETCDF))[
            ::-1
        ]
        _, last = np.unique(key[library_calls] << 4 | layer[library_calls], return_index=True)
        for row in library_calls[last].tolist():
            self._last.append(
                Opened(
                    int(key[row] & 0xFFFFFFFF),
                    0,
                    int(layer[row]),
                    int(via[row]),
                    int(within[row]),
                    False,
                    0,
                    0,
                )
            )
        back_via, back_within = np.empty_like(via), np.empty_like(within)
        back_via[order], back_within[order] = via, within
        return back_via[ghosts:], back_within[ghosts:]
