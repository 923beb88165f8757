"""Nesting: the library calls around each file-system call.

An outer call is recorded before the calls that it makes (format document, section 5.3), so a call of depth d + 1
belongs to the nearest preceding call of depth d on the same thread. In traces without depths, a call belongs to the
library calls whose intervals contain its own.

Newer traces also name each call's origin: the library whose code made the call. With depths, the origin adds that
library, whose own calls may be missing from the trace. Without depths, it replaces times: a call by the executable
is inside no library call, and a call by a library belongs to that library's nearest preceding call on the same thread.
"""

from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from vani.calls import Flag, Layer
from vani.columns import Bools, Columns, Int8s, Int16s, Int32s, Ints, Numbers
from vani.readers.positions import stable_order

T = TypeVar("T", bound=np.generic)

LIBRARIES = tuple(range(Layer.MPIIO, Layer.NETCDF + 1))
"""Library layers; a library uses those with lower numbers."""


def unsurrounded(layer: Int8s, origin: Int8s | None) -> tuple[Int8s, Int16s]:
    """`via` and `within` of calls that are inside no traced call, shape (n,) each."""
    own = (np.int16(1) << layer.astype(np.int16)).astype(np.int16)
    if origin is None:
        return layer, own
    by_library = made_by_library(layer, origin)
    via = np.where(by_library, origin, layer)
    return via, np.where(by_library, own | (np.int16(1) << via.astype(np.int16)), own).astype(np.int16)


def made_by_library(layer: Int8s, origin: Int8s) -> Bools:
    """Whether each call was made by a library of a higher layer than its own; shape (n,), bool."""
    return (origin > layer) & (origin >= Layer.MPIIO) & (origin <= Layer.NETCDF)


def outermost(own: Int8s, around: Int8s, layer: Int8s, origin: Int8s) -> Int8s:
    """`via` of calls within others, shape (n,); `own` is their layer, `around` the layer of the calls around them.

    MPI finishes non-blocking file operations in calls such as MPI_Wait, which belong to no file library themselves.
    """
    return np.where((around == Layer.MPI) & made_by_library(layer, origin), own, around)


class Opened(NamedTuple):
    """A call of the previous batch that may have made calls of this one."""

    thread: int = 0
    depth: int = 0
    layer: int = 0
    via: int = 0
    within: int = 0
    inside: bool = False
    start: int = 0
    end: int = 0
    origin: int = -1


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
        rank: Int32s,
        thread: Int32s,
        depth: Int8s,
        layer: Int8s,
        start: Ints,
        duration: Ints,
        flags: Int16s,
        origin: Int8s | None = None,
    ) -> tuple[Int8s, Int16s]:
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
        known = origin is not None or bool(self._last)
        origin = np.full(len(layer), -1, np.int8) if origin is None else origin
        if self.by_time:
            _, own = unsurrounded(layer, None)
            via, within = self._around(rank, layer, own, start, start + duration)
            if known:
                via, within = self._behind(rank, thread, layer, origin, via, within)
        else:
            via, within = self._below(rank, thread, depth, layer, origin, flags)
        self._rank = int(rank[-1])
        return via, within

    def _below(
        self, rank: Int32s, thread: Int32s, depth: Int8s, layer: Int8s, origin: Int8s, flags: Int16s
    ) -> tuple[Int8s, Int16s]:
        via, within = unsurrounded(layer, origin)
        columns: Columns = {"thread": thread, "depth": depth, "layer": layer, "via": via, "within": within}
        calls = _Calls(self._open, rank, columns | {"inside": np.zeros(len(layer), np.bool_), "origin": origin})
        depth, layer, via, within, inside = (calls[name] for name in ("depth", "layer", "via", "within", "inside"))
        file_system = layer <= Layer.STDIO
        for level in range(1, int(depth.max()) + 1):
            rows, parent = calls.parents((depth == level) & calls.is_new, depth == level - 1)
            if not len(rows):
                continue
            via[rows] = outermost(via[rows], via[parent], layer[rows], calls["origin"][rows])
            within[rows] |= within[parent]
            inside[rows] = file_system[parent] | inside[parent]
        nested = np.flatnonzero(inside & file_system & calls.is_new)
        flags[calls.order[nested] - calls.ghosts] |= Flag.NESTED
        # The last call of each thread and depth; later calls belong to one of these.
        self._open = calls.last_of(np.flatnonzero(calls.key >> 32 == calls.key[-1] >> 32), depth)
        return calls.in_order(via), calls.in_order(within)

    def _around(self, rank: Int32s, layer: Int8s, own: Int16s, start: Ints, end: Ints) -> tuple[Int8s, Int16s]:
        via, within = layer.copy(), own.copy()
        widest = np.full(len(layer), -1, np.int64)
        bounds = np.append(np.flatnonzero(np.append(True, rank[1:] != rank[:-1])), len(rank))
        never = Opened(start=np.iinfo(np.int64).max, end=np.iinfo(np.int64).min)
        open_calls = []
        for library in LIBRARIES:
            calls = layer == library
            carried = next((o for o in self._open if o.layer == library), None)
            if not calls.any() and carried is None:
                continue
            for number, (a, b) in enumerate(pairwise(bounds.tolist())):
                before = carried if carried is not None and number == 0 else never
                # The call that ends last is the outermost of its layer: it is recorded before the calls inside it.
                highest = np.maximum.accumulate(np.where(calls[a:b], end[a:b], never.end))
                fresh = calls[a:b] & np.append(True, highest[1:] > highest[:-1])
                place = np.maximum.accumulate(np.where(fresh, np.arange(b - a), -1))
                begins = np.where(place >= 0, start[a:b][place], before.start)
                closes = np.where(place >= 0, end[a:b][place], before.end)
                around = (start[a:b] >= begins) & (end[a:b] <= closes)
                within[a:b][around] |= np.int16(1 << library)
                wider = around & (closes - begins > widest[a:b])
                via[a:b][wider] = library
                widest[a:b][wider] = (closes - begins)[wider]
                if b == len(rank) and closes[-1] > begins[-1]:
                    open_calls.append(Opened(layer=library, via=library, start=int(begins[-1]), end=int(closes[-1])))
        self._open = open_calls
        return via, within

    def _behind(
        self, rank: Int32s, thread: Int32s, layer: Int8s, origin: Int8s, via: Int8s, within: Int16s
    ) -> tuple[Int8s, Int16s]:
        """Replace `via` and `within`, which were found by times, where origins are known."""
        if int(rank[0]) != self._rank:
            self._last = []
        alone, own = unsurrounded(layer, origin)
        known = (origin == Layer.USER) | made_by_library(layer, origin)
        via, within = np.where(known, alone, via), np.where(known, own, within)
        columns: Columns = {"thread": thread, "layer": layer, "via": via, "within": within, "origin": origin}
        calls = _Calls(self._last, rank, columns)
        layer, via, within = (calls[name] for name in ("layer", "via", "within"))
        for library in reversed(LIBRARIES):
            rows, parent = calls.parents((calls["origin"] == library) & (layer < library), layer == library)
            via[rows] = via[parent]
            within[rows] |= within[parent]
        of_library = (layer >= Layer.MPIIO) & (layer <= Layer.NETCDF)
        self._last = calls.last_of(np.flatnonzero((calls.key >> 32 == rank[-1]) & of_library), layer)
        return calls.in_order(via), calls.in_order(within)


class _Calls:
    """Columns of calls, those of the previous batch that are still open first, in order of rank and thread."""

    def __init__(self, opened: list[Opened], rank: Int32s, columns: Columns) -> None:
        self.ghosts = len(opened)
        whole = {
            name: np.concatenate((np.array([getattr(o, name) for o in opened], column.dtype), column))
            for name, column in columns.items()
        }
        key = np.concatenate((np.full(self.ghosts, rank[0], np.int32), rank)).astype(np.int64) << 32
        key |= whole["thread"].astype(np.int64) & 0xFFFFFFFF
        self.order = stable_order(key)
        self.key = key[self.order]
        self._columns = {name: column[self.order] for name, column in whole.items()}
        self.is_new = self.order >= self.ghosts
        self._starts = np.append(True, self.key[1:] != self.key[:-1])

    def __getitem__(self, name: str) -> Numbers:
        return self._columns[name]

    def parents(self, inner: Bools, outer: Bools) -> tuple[Ints, Ints]:
        """Calls among `inner` with a preceding call of the same thread among `outer`, and the nearest of these."""
        rows = np.flatnonzero(inner)
        if not len(rows):
            return rows, rows
        parent = np.maximum.accumulate(np.where(outer | self._starts, np.arange(len(outer)), 0))[rows]
        real = outer[parent]
        return rows[real], parent[real]

    def last_of(self, rows: Ints, kind: Int8s) -> list[Opened]:
        """The last call of each thread and kind among `rows`, which are of one rank; by thread and kind."""
        backwards = rows[::-1]
        thread = self.key & 0xFFFFFFFF
        _, last = np.unique(256 * thread[backwards] + kind[backwards], return_index=True)
        names = [name for name in self._columns if name not in ("thread", "origin")]
        return [
            Opened(thread=int(thread[row]), **{name: self._columns[name][row].item() for name in names})
            for row in backwards[last].tolist()
        ]

    def in_order(self, column: NDArray[T]) -> NDArray[T]:
        """A column of the calls of this batch, in their order."""
        back = np.empty_like(column)
        back[self.order] = column
        return back[self.ghosts :]
