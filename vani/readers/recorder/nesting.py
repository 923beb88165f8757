"""Who called whom: the library call in which a file-system call was made.

An outer call is recorded before the calls it made (format document, section 5.3), so a call of depth d + 1 belongs
to the nearest call of depth d before it on the same thread.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vani.calls import Flag, Layer
from vani.readers.positions import stable_order

__all__ = ["Nesting"]


class Nesting:
    """Finds the layer of the outermost call around each call, batch after batch."""

    def __init__(self, *, by_time: bool) -> None:
        """`by_time`: no depth is stored, intervals decide."""
        self._by_time = by_time
        self._rank = -1
        self._root: dict[int, int] = {}

    def resolve(
        self,
        rank: NDArray[np.int32],
        thread: NDArray[np.int32],
        depth: NDArray[np.int8],
        layer: NDArray[np.int8],
        start: NDArray[np.int64],
        duration: NDArray[np.int64],
        flags: NDArray[np.int16],
    ) -> NDArray[np.int8]:
        """Layers of the outermost calls, shape (n,); marks `Flag.NESTED` in `flags` in place."""
        if self._by_time:
            return self._around(rank, layer, start, duration)
        if not depth.any():
            self._remember(rank, thread, depth, layer)
            return layer
        key = rank.astype(np.int64) << 32 | thread.astype(np.int64)
        single = key[0] == key[-1] and not (key != key[0]).any()
        order = None if single else stable_order(key)
        if order is not None:
            key, depth, layer_in, marks = key[order], depth[order], layer[order], flags[order]
        else:
            layer_in, marks = layer, flags
        index = np.arange(len(key))
        starts = np.append(True, key[1:] != key[:-1])
        root = np.maximum.accumulate(np.where((depth == 0) | starts, index, 0))
        via = layer_in[root].copy()
        orphan = np.flatnonzero(starts & (depth > 0))
        for at in orphan.tolist():
            if key[at] >> 32 == self._rank:
                known = self._root.get(int(key[at]) & 0xFFFFFFFF)
                if known is not None:
                    via[root == at] = known
        file_system = layer_in <= Layer.STDIO
        inner = file_system & (depth > 0)
        inside = np.zeros(len(key), np.bool_)
        for level in range(1, int(depth.max()) + 1):
            rows = np.flatnonzero(depth == level)
            if not len(rows):
                continue
            parent = np.maximum.accumulate(np.where((depth == level - 1) | starts, index, 0))[rows]
            real = depth[parent] == level - 1
            inside[rows] = real & (file_system[parent] | inside[parent])
        nested = inner & inside
        if nested.any():
            rows = np.flatnonzero(nested)
            flags[rows if order is None else order[rows]] |= Flag.NESTED
        del marks
        if order is not None:
            back = np.empty_like(via)
            back[order] = via
            via = back
        self._remember(rank, thread, depth if order is None else None, layer, via)
        return via

    def _remember(
        self,
        rank: NDArray[np.int32],
        thread: NDArray[np.int32],
        depth: NDArray[np.int8] | None,
        layer: NDArray[np.int8],
        via: NDArray[np.int8] | None = None,
    ) -> None:
        last = int(rank[-1])
        if last != self._rank:
            self._rank, self._root = last, {}
        tail = slice(max(0, len(rank) - 4096), None)
        seen = layer if via is None else via
        for number, value in dict(zip(thread[tail].tolist(), seen[tail].tolist(), strict=True)).items():
            self._root[number & 0xFFFFFFFF] = value
        del depth

    def _around(
        self,
        rank: NDArray[np.int32],
        layer: NDArray[np.int8],
        start: NDArray[np.int64],
        duration: NDArray[np.int64],
    ) -> NDArray[np.int8]:
        library = (layer >= Layer.MPIIO) & (layer <= Layer.NETCDF)
        if not library.any():
            return layer
        end = start + duration
        via = layer.copy()
        bounds = np.flatnonzero(np.append(True, rank[1:] != rank[:-1]))
        for a, b in zip(bounds, np.append(bounds[1:], len(rank)), strict=True):
            reach = np.where(library[a:b], end[a:b], np.iinfo(np.int64).min)
            highest = np.maximum.accumulate(reach)
            fresh = np.append(True, highest[1:] > highest[:-1]) & library[a:b]
            outer = np.maximum.accumulate(np.where(fresh, np.arange(b - a), 0))
            inside = library[a:b][outer] & (start[a:b] >= start[a:b][outer]) & (end[a:b] <= end[a:b][outer])
            via[a:b] = np.where(inside, layer[a:b][outer], via[a:b])
        return via
