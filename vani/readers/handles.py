"""Codes for the ids with which calls name open files, and the files of these ids."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


class Handles(Protocol):
    """Assigns codes to ids of open files."""

    def codes(self, layer: int, column: pa.Array) -> NDArray[np.int32]:
        """Codes of many ids, shape (n,)."""


class HandleTable:
    """Codes for the ids with which a layer's calls name open files."""

    def __init__(self) -> None:
        self._code: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._code)

    def codes(self, layer: int, column: pa.Array) -> NDArray[np.int32]:
        """Codes of many ids, shape (n,)."""
        codes = [self._code.setdefault(f"{layer} {text}", len(self._code)) for text in column.to_pylist()]
        return np.array(codes, dtype=np.int32)


class OpenHandles:
    """Finds the file of calls that name it by an id, which an earlier call of the rank bound to a path."""

    def __init__(self, handles: int) -> None:
        self._count = handles
        self._rank = -1
        self._bound: dict[int, int] = {}

    def before(self, rank: int) -> dict[int, int]:
        """The file of each id that earlier calls of `rank` bound, or -1."""
        return self._bound if rank == self._rank else {}

    def keep(self, rank: int, bound: dict[int, int]) -> None:
        """Save the files of ids that calls of `rank` bound last, -1 for none."""
        now = self.before(rank) | bound
        self._rank, self._bound = rank, {handle: file for handle, file in now.items() if file >= 0}

    def resolve(
        self,
        rank: NDArray[np.int32],
        handle: NDArray[np.int32],
        binds: NDArray[np.bool_],
        file: NDArray[np.int32],
    ) -> None:
        """Fill `file` in place for calls that have a handle and do not bind one."""
        rows = np.flatnonzero(handle >= 0)
        if len(rows):
            key = rank[rows].astype(np.int64) * self._count + handle[rows]
            order = np.argsort(key, kind="stable")
            rows, key = rows[order], key[order]
            index = np.arange(len(rows))
            starts = np.append(True, key[1:] != key[:-1])
            bind = binds[rows]
            source = np.maximum.accumulate(np.where(bind | starts, index, 0))
            bound = np.where(bind[source], file[rows[source]], -1)
            carried = np.flatnonzero(starts & ~bind & (rank[rows] == self._rank))
            if len(carried) and self._bound:
                before = np.full(len(rows), -1, dtype=np.int32)
                before[carried] = [self._bound.get(h, -1) for h in handle[rows[carried]].tolist()]
                # A call before its group's first bind uses the file bound in the previous batch.
                bound = np.where(bind[source], bound, before[source])
            unbound = ~bind
            file[rows[unbound]] = bound[unbound]
            last = int(rank[-1])
            if last != self._rank:
                self._rank, self._bound = last, {}
            ends = np.append(starts[1:], True) & (rank[rows] == last)
            at = np.flatnonzero(ends)
            self._bound.update(zip(handle[rows[at]].tolist(), file[rows[at]].tolist(), strict=True))
        elif len(rank) and int(rank[-1]) != self._rank:
            self._rank, self._bound = int(rank[-1]), {}
