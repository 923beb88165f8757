"""Reads, and writes, of a process on a file: streams of data operations, and what happens between these."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.batch import Batch
from vani.analyzers.keys import SIDES, beside, pack, unpack
from vani.kernels.pattern import (
    APPENDED,
    BEGIN,
    COUNTED,
    FIRST,
    FROM_POSITION,
    HELD_BITS,
    JUMPED,
    SEEKS,
    SIZE,
    START,
)

__all__ = ["Events", "HeldOperations", "Operations", "Seeks"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass
class Operations:
    """Data operations in order of process, file and record; shape (n,) each."""

    key: Ints
    """Of process and file (`Batch.process_file`) and direction, see `SIDES`."""
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

    @staticmethod
    def of_none() -> Operations:
        """No operations."""
        types = (*[np.int64] * 2, np.int16, *[np.int64] * 2, *[np.bool_] * 4, np.int64, np.bool_, np.int64)
        return Operations(*(np.empty(0, t) for t in types))

    def take(self, rows: Ints) -> Operations:
        return Operations(*(getattr(self, f.name)[rows] for f in fields(Operations)))

    @staticmethod
    def joined(held: Operations, new: Operations) -> Operations:
        """What was held, before the new operations of its streams."""
        at = np.searchsorted(new.key, held.key)
        return Operations(
            *(np.insert(getattr(new, f.name), at, getattr(held, f.name)) for f in fields(Operations))
        )


@dataclass(frozen=True, eq=False, repr=False)
class HeldOperations:
    """`Operations` as a kernel has them."""

    key: Ints
    cell: Ints
    within: NDArray[np.int16]
    operations: Ints
    """See `vani.kernels.pattern.Held`."""

    @staticmethod
    def of(held: Operations) -> HeldOperations:
        bits = JUMPED * held.jumped + FIRST * held.first + COUNTED * held.counted
        bits = bits + APPENDED * held.append + FROM_POSITION * held.follows
        source = np.zeros(len(bits), np.int64)
        columns = (held.begin, held.size, held.start, held.seeks, source, bits)
        return HeldOperations(held.key, held.cell, held.within, np.stack(columns, axis=1))

    def as_columns(self) -> Operations:
        """For numpy."""
        bits = self.operations[:, HELD_BITS]
        appended, jumped, first, counted, follows = (
            (bits & bit) != 0 for bit in (APPENDED, JUMPED, FIRST, COUNTED, FROM_POSITION)
        )
        begin, size, start, seeks = (self.operations[:, i].copy() for i in (BEGIN, SIZE, START, SEEKS))
        return Operations(
            self.key,
            self.cell,
            self.within,
            begin,
            size,
            appended,
            jumped,
            first,
            counted,
            start,
            follows,
            seeks,
        )


class Events:
    """Streams that had an event (an open, a jump) since their last data operation."""

    def __init__(self) -> None:
        self.pending = np.empty(0, np.int64)
        """Their keys, ascending."""

    def since(self, file: Ints, row: Ints, stream: Ints, data: Ints, rows: int) -> Bools:
        """Mark the first operation of each stream behind an event on its file.

        Parameters
        ----------
        file, row
            Of the events: process and file, and row in the batch. Both streams of a file (reads, writes) see them.
        stream, data
            Of the data operations: key of file and direction, ascending, and row.
        rows
            Length of the batch.
        """
        marked = np.zeros(len(stream), np.bool_)
        both = np.concatenate([pack((file, direction), SIDES) for direction in (0, 1)])
        at = np.zeros(len(both), np.int64)
        if len(both) and len(stream):
            # A batch has few processes: keys are taken from its first stream on.
            low, of_row = stream[0], beside(rows)
            after = pack((np.maximum(both - low, 0), np.concatenate((row, row))), of_row)
            at = np.searchsorted(pack((stream - low, data), of_row), after)
        late = self.pending
        at = np.concatenate((at, np.searchsorted(stream, late)))
        both = np.concatenate((both, late))
        # What comes after the last data operation of a stream waits for the next batch.
        met = np.zeros(len(both), np.bool_)
        inside = at < len(stream)
        met[inside] = stream[at[inside]] == both[inside]
        marked[at[met]] = True
        self.pending = np.unique(both[~met])
        return marked

    def among(self, streams: Ints) -> Bools:
        """Which of some streams, ascending, those that had one among them."""
        found = np.zeros(len(streams), np.bool_)
        found[np.searchsorted(streams, self.pending)] = True
        return found

    def forget(self, widths: tuple[int, int, int], process: int) -> None:
        """Drop what belongs to processes that have no more calls.

        `widths`: of keys of process, file + 1 and direction.
        """
        self.pending = self.pending[unpack(self.pending, widths)[0] == process]


class Seeks:
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
    def _starts(self) -> Ints:
        """Where another process or file begins, in that order."""
        key = self._batch.process_file[self._batch.by_process_and_file]
        return np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])

    @cached_property
    def _base(self) -> Ints:
        """Seeks in the calls of other processes and files, for calls in order of process and file."""
        assert self._until is not None
        at = self._starts
        return np.repeat(np.append(0, self._until[at[1:] - 1]), np.diff(np.append(at, len(self._until))))

    def of(self, process_file: Ints) -> Ints:
        """Seeks on files of processes, in all."""
        if self._until is None:
            return np.zeros(len(process_file), np.int64)
        at = self._starts
        key = self._batch.process_file[self._batch.by_process_and_file[at]]
        total = np.diff(np.append(0, self._until[np.append(at[1:], len(self._until)) - 1]))
        place = np.minimum(np.searchsorted(key, process_file), len(key) - 1)
        return np.where(key[place] == process_file, total[place], 0)
