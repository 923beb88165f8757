"""Access pattern of data operations, per process and file (tables VI, VII: "access pattern").

Reads and writes of a process on a file are two streams, which begin anew when the process opens the file. A data
operation is, compared with the one before it in its stream,

- strided, if it is one of three or more operations in a row at one distance that do not just continue one another;
- consecutive, if it begins where that one ended: behind all that it asked for, or, for a read that reached the end of
  its file, there. That end shows in the file position, where both operations go on from it (`read`, not `pread`) and
  no seek lay between, so that the second one can only begin within what the first one asked for because that was
  cut; otherwise it must be known from writes, truncations or job.yaml (`vani.analyzers.facts.Ends`). So files that
  are read to their end, and ends that are read again and again, are consecutive;
- sequential, if it begins further on, and neither the operation before nor the one after it goes back;
- random otherwise: it goes back, or is the way forth between two that do (half of random jumps lead forward).

The first operation of a stream has no predecessor: it is of the class of its successor, consecutive where there is
none. Appended data is consecutive. An operation whose offset is unknown continues the one before (no seek
lay between) or jumps to where the trace cannot tell (sequential, after a seek to the end). Unit: operations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.batch import Batch, cells_of
from vani.analyzers.facts import Ends, Facts
from vani.analyzers.keyed import NO_VALUE, Dense, Keyed, Pairs, count_pairs, stable_order
from vani.analyzers.keys import pack, unpack
from vani.analyzers.world import Context, World
from vani.calls import Flag, Kind

__all__ = [
    "CONSECUTIVE",
    "NAMES",
    "RANDOM",
    "SEQUENTIAL",
    "STRIDED",
    "AccessPattern",
    "PatternCounts",
    "PatternResult",
    "Strides",
]

CONSECUTIVE, SEQUENTIAL, STRIDED, RANDOM = range(4)
_WITHIN = 1 << 16
NAMES = ("consecutive", "sequential", "strided", "random")
_FROM_POSITION = frozenset(
    ["read", "write", "readv", "writev", "fread", "fwrite", "fread_unlocked", "fwrite_unlocked", "vfprintf"]
)
"""Functions that move data at the file position and advance it (POSIX.1-2017)."""

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class PatternResult:
    """`cells`: a column per class by listed cell. `layers`: the same by app * _WITHIN + layers around it. `strides`: by
    (file, bytes), of listed files."""

    cells: Keyed
    layers: Keyed
    strides: Pairs


@dataclass(frozen=True)
class Strides:
    """How often the operations of listed files lie so far apart; shape (n,) each."""

    file: Ints
    stride: Ints
    """Bytes."""
    count: Ints


@dataclass(frozen=True)
class PatternCounts:
    """Data operations of each class, by the `NAMES` of classes."""

    phase: Ints
    """Shape (cells,), as `file`: -1 for none, or none that is listed."""
    file: Ints
    operations: Mapping[str, Ints]
    """Of each cell, by class."""
    app: Ints
    """Shape (rows,), as `within`."""
    within: Ints
    """Layers that the operations of an app lie within, a bit per layer."""
    under: Mapping[str, Ints]
    """Of each row, by class."""
    strides: Strides


class AccessPattern:
    """See the module's docstring."""

    name = "access_pattern"
    result = PatternCounts
    columns = frozenset({"rank", "func", "kind", "file", "offset", "bytes", "start_ns", "within"})

    def begin(self, context: Context, facts: Facts | None) -> _Collector:
        return _Collector(context, facts)

    def combine(self, parts: Sequence[PatternResult]) -> PatternResult:
        return PatternResult(
            Keyed.merged([p.cells for p in parts]),
            Keyed.merged([p.layers for p in parts]),
            Pairs.merged([p.strides for p in parts]),
        )

    def finish(self, combined: PatternResult, world: World, facts: Facts) -> PatternCounts:
        cells, layers, strides = combined.cells, combined.layers, combined.strides
        phase, file = cells_of(cells.keys, world, facts)
        app, within = unpack(layers.keys, (len(world.apps), _WITHIN))
        return PatternCounts(
            phase,
            file,
            {name: cells[name] for name in NAMES},
            app,
            within,
            {name: layers[name] for name in NAMES},
            Strides(strides.first, strides.second, strides.count),
        )


@dataclass
class _Run:
    """Data operations in order of process, file and record; shape (n,) each."""

    key: Ints
    """(process * (files + 1) + file + 1) * 2 + direction."""
    cell: Ints
    within: NDArray[np.int16]
    begin: Ints
    size: Ints
    append: Bools
    jumped: Bools
    """A seek to an unknown place came before."""
    first: Bools
    """The first operation of a stream."""
    counted: Bools
    """Already counted; still here because its successors are compared with it."""
    start: Ints
    """Nanoseconds."""
    follows: Bools
    """Goes on from the file position, and advances it."""
    seeks: Ints
    """Seeks on its file before it, from a moment on that is the same for all operations on the file."""

    def take(self, rows: Ints) -> _Run:
        return _Run(*(getattr(self, f.name)[rows] for f in fields(_Run)))

    @staticmethod
    def joined(held: _Run, new: _Run) -> _Run:
        """What was held, before the new operations of its streams."""
        at = np.searchsorted(new.key, held.key)
        return _Run(*(np.insert(getattr(new, f.name), at, getattr(held, f.name)) for f in fields(_Run)))


class _Events:
    """Streams that had an event (an open, a jump) since their last data operation."""

    def __init__(self) -> None:
        self._pending = np.empty(0, np.int64)

    def since(self, file: Ints, row: Ints, stream: Ints, data: Ints, rows: int) -> Bools:
        """Mark the first operation of each stream behind an event on its file.

        Parameters
        ----------
        file, row
            Of the events: process and file, and row in the batch. Both streams of a file (reads, writes) see them.
        stream, data
            Of the data operations: file * 2 + direction, ascending, and row.
        rows
            Length of the batch.
        """
        marked = np.zeros(len(stream), np.bool_)
        both = np.concatenate((2 * file, 2 * file + 1))
        at = np.zeros(len(both), np.int64)
        if len(both) and len(stream):
            low = stream[0]
            at = np.searchsorted(
                (stream - low) * rows + data, (both - low) * rows + np.concatenate((row, row))
            )
        late = self._pending
        at = np.concatenate((at, np.searchsorted(stream, late)))
        both = np.concatenate((both, late))
        # What comes after the last data operation of a stream waits for the next batch.
        met = np.zeros(len(both), np.bool_)
        inside = at < len(stream)
        met[inside] = stream[at[inside]] == both[inside]
        marked[at[met]] = True
        self._pending = np.unique(both[~met])
        return marked

    def forget(self, width: int, process: int) -> None:
        """Drop what belongs to processes that have no more calls."""
        self._pending = self._pending[self._pending // width == process]


class _Seeks:
    """How many seeks a batch has on each file of each process."""

    def __init__(self, batch: Batch, seeks: Bools) -> None:
        self._batch = batch
        self._until = np.cumsum(seeks[batch.by_process_and_file]) if seeks.any() else None

    def before(self, rows: Ints) -> Ints:
        """Seeks before each call, from a moment on that is the same for all calls on its file."""
        if self._until is None:
            return np.zeros(len(rows), np.int64)
        count = np.empty(len(self._until), np.int64)
        count[self._batch.by_process_and_file] = self._until - self._base
        found: Ints = count[rows]
        return found

    @cached_property
    def _base(self) -> Ints:
        """Seeks in the calls of other processes and files, for calls in order of process and file."""
        assert self._until is not None
        at = np.flatnonzero(self._batch.process_file_starts)
        return np.repeat(np.append(0, self._until[at[1:] - 1]), np.diff(np.append(at, len(self._until))))

    def of(self, process_file: Ints) -> Ints:
        """Seeks on files of processes, in all."""
        if self._until is None:
            return np.zeros(len(process_file), np.int64)
        at = np.flatnonzero(self._batch.process_file_starts)
        key = self._batch.process_file[self._batch.by_process_and_file[at]]
        total = np.diff(np.append(0, self._until[np.append(at[1:], len(self._until)) - 1]))
        place = np.minimum(np.searchsorted(key, process_file), len(key) - 1)
        return np.where(key[place] == process_file, total[place], 0)


class _Collector:
    """The class of an operation depends on two before and up to three behind it: they are held from batch to batch."""

    def __init__(self, context: Context, facts: Facts | None) -> None:
        self._app, self._apps = context.app, len(context.world.apps)
        self._listed_as = None if facts is None else facts.listed_as
        self._ends: Ends | None = None if facts is None else facts.ends
        self._from_position = np.array([f in _FROM_POSITION for f in context.world.functions] or [False])
        self._files = context.world.files + 1
        self._cells: list[Keyed] = []
        self._layers: list[Keyed] = []
        self._strides: list[Pairs] = []
        self._held: _Run | None = None
        self._jumps, self._opens = _Events(), _Events()

    def add(self, batch: Batch) -> None:
        if not len(batch):
            return
        data = batch.kind <= Kind.WRITE
        named = batch.file >= 0
        if not named.all():
            nameless = np.flatnonzero(data & ~named)
            cells = batch.listed_cell.keys[batch.listed_cell.codes[nameless]]
            self._count(cells, batch.within[nameless], np.zeros(len(nameless), np.int64))
        rows = np.flatnonzero(data & named)
        kind = batch.kind[rows]
        key = batch.process_file[rows] * 2 + kind
        order = stable_order(key)
        rows, key = rows[order], key[order]
        flags = batch.flags
        seeks = (flags & Flag.SEEK) != 0
        jumps = seeks & (batch.offset == NO_VALUE)
        jumped = self._since(self._jumps, batch, jumps & named, key, rows)
        opened = self._since(self._opens, batch, ((flags & Flag.OPEN) != 0) & named, key, rows)
        size = batch.bytes[rows]
        counts = _Seeks(batch, seeks & named)
        first = np.append(True, key[1:] != key[:-1])[: len(key)]
        if self._held is not None:
            first[np.searchsorted(key, self._held.key[np.isin(self._held.key, key[first])])] = False
        new = _Run(
            key,
            batch.listed_cell.keys[batch.listed_cell.codes[rows]],
            batch.within[rows],
            batch.offset[rows],
            np.where(size == NO_VALUE, 0, size),
            (flags[rows] & Flag.APPEND) != 0,
            jumped,
            first | opened,
            np.zeros(len(key), np.bool_),
            batch.start[rows],
            self._from_position[batch.function[rows]],
            counts.before(rows),
        )
        if self._held is not None:
            new = _Run.joined(self._held, new)
        self._take(new, going_on=int(batch.process[-1]))
        if self._held is not None:
            self._held.seeks -= counts.of(self._held.key // 2)

    @staticmethod
    def _since(events: _Events, batch: Batch, happened: Bools, stream: Ints, data: Ints) -> Bools:
        row = np.flatnonzero(happened)
        return events.since(batch.process_file[row], row, stream, data, len(batch))

    def _take(self, run: _Run, *, going_on: int) -> None:
        """Count what can no longer change, hold the rest; `going_on` is the process that may still have calls."""
        n = len(run.key)
        if not n:
            self._held = None
            self._jumps.forget(2 * self._files, going_on)
            self._opens.forget(2 * self._files, going_on)
            return
        kind, delta = classify(
            run.key, run.begin, run.size, run.append, run.jumped, run.first, self._behind_cut(run)
        )
        closes = np.append(run.key[1:] != run.key[:-1], True)
        index = np.arange(n)
        last = index[closes][np.cumsum(np.append(0, closes[:-1]))]
        behind = last - index
        is_open = run.key // (2 * self._files) == going_on
        # The first of a stream is of the class of its successor, which depends on two more.
        ready = ~run.counted & (~is_open | (behind >= 2 + run.first))
        rows = np.flatnonzero(ready)
        self._count(run.cell[rows], run.within[rows], kind[rows])
        strides = np.flatnonzero(ready & (kind == STRIDED) & (delta != NO_VALUE))
        file = run.key[strides] // 2 % self._files - 1
        if self._listed_as is not None:
            listed = self._listed_as[file] >= 0
            strides, file = strides[listed], file[listed]
        if len(strides):
            self._strides.append(count_pairs(file, delta[strides]))
            if len(self._strides) > 32:
                self._strides = [Pairs.merged(self._strides)]
        run.counted |= ready
        keep = np.flatnonzero(is_open & (behind <= 3))
        self._held = run.take(keep) if len(keep) else None
        self._jumps.forget(2 * self._files, going_on)
        self._opens.forget(2 * self._files, going_on)

    def _behind_cut(self, run: _Run) -> Bools:
        """Operations that begin where the one before was cut by the end of the file."""
        found = np.zeros(len(run.key), np.bool_)
        begin = run.begin
        inside = (run.key[1:] == run.key[:-1]) & ~run.first[1:] & (begin[:-1] != NO_VALUE)
        inside &= (begin[1:] >= begin[:-1]) & (begin[1:] < begin[:-1] + run.size[:-1])
        rows = np.flatnonzero(inside) + 1
        if not len(rows):
            return found
        goes_on = run.follows[rows] & run.follows[rows - 1] & (run.seeks[rows] == run.seeks[rows - 1])
        found[rows[goes_on]] = True
        rows = rows[~goes_on & (run.key[rows] % 2 == Kind.READ)]
        ends = self._ends
        if ends is not None and len(ends.known) and len(rows):
            file = run.key[rows] // 2 % self._files - 1
            known = ends.known[file] & (run.start[rows] >= ends.since[file])
            rows, file = rows[known], file[known]
            found[rows[begin[rows] == ends.at(file, run.start[rows])]] = True
        return found

    def _count(self, cell: Ints, within: NDArray[Any], kind: Ints) -> None:
        if not len(cell):
            return
        for keys, store in (
            (cell, self._cells),
            (pack((self._app, within), (self._apps, _WITHIN)), self._layers),
        ):
            dense = Dense.of(keys)
            table = np.bincount(dense.codes * 4 + kind, minlength=4 * len(dense.keys)).reshape(-1, 4)
            store.append(Keyed(dense.keys, {n: table[:, i] for i, n in enumerate(NAMES)}))
            if len(store) > 64:
                store[:] = [Keyed.merged(store)]

    def result(self) -> PatternResult:
        if self._held is not None:
            self._take(self._held, going_on=-1)
        return PatternResult(
            Keyed.merged(self._cells), Keyed.merged(self._layers), Pairs.merged(self._strides)
        )


def classify(
    key: Ints,
    begin: Ints,
    size: Ints,
    append: Bools,
    jumped: Bools,
    first: Bools,
    behind_cut: Bools,
) -> tuple[Ints, Ints]:
    """Class of each operation and its distance from the one before (`NO_VALUE` where there is none).

    Parameters
    ----------
    key
        Process, file and direction, ascending; in recorded order within.
    begin, size
        Offset (`NO_VALUE` where unknown) and bytes.
    append
        The data was appended.
    jumped
        A seek to an unknown place came before.
    first
        The first operation of a stream.
    behind_cut
        It begins where the end of the file cut the one before.
    """
    n = len(key)
    starts = np.append(True, key[1:] != key[:-1]) | first
    known = begin != NO_VALUE
    paired = np.zeros(n, np.bool_)
    paired[1:] = ~starts[1:] & known[1:] & known[:-1]
    delta = np.full(n, NO_VALUE)
    delta[1:][paired[1:]] = (begin[1:] - begin[:-1])[paired[1:]]
    before = np.zeros(n, np.int64)
    before[1:] = begin[:-1] + size[:-1]
    continues = paired & ((begin == before) | behind_cut)
    back = paired & (begin < before) & ~behind_cut
    beside = np.zeros(n, np.bool_)
    beside[1:] = back[:-1] & ~starts[1:]
    beside[:-1] |= back[1:]
    kind = np.where(continues, CONSECUTIVE, np.where(paired & (begin > before) & ~beside, SEQUENTIAL, RANDOM))
    # Without both offsets nothing can be compared: it goes on, unless a seek led to where the trace cannot tell.
    kind[~paired] = np.where(jumped, SEQUENTIAL, CONSECUTIVE)[~paired]
    again = np.zeros(n, np.bool_)
    again[1:] = (
        paired[1:] & paired[:-1] & (delta[1:] == delta[:-1]) & ~continues[1:] & ~append[1:] & (delta[1:] != 0)
    )
    strided = again.copy()
    strided[:-1] |= again[1:]
    strided[:-2] |= again[2:]
    kind[append] = CONSECUTIVE
    kind[strided] = STRIDED
    alone = np.append(starts[1:], True)
    heirs = np.flatnonzero(first & ~strided & ~append & ~alone)
    kind[heirs] = kind[heirs + 1]
    return kind, delta
