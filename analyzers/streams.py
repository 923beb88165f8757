"""Streams: a process's reads, or writes, of a file, and the events between these data operations.

`measures/access_pattern.py` defines the classes of data operations by their start offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vani.analyzers.int_table import NO_VALUE, SIDES, Factorized, key_widths, pack, unpack
from vani.columns import Bools, Int8s, Int16s, Ints, Numbers, distinct
from vani.kernels import OperationBit, dtype_of

CONSECUTIVE, SEQUENTIAL, STRIDED, RANDOM = range(4)
NAMES = ("consecutive", "sequential", "strided", "random")



def distances(starts: Bools, begin: Ints) -> Ints:
    """Distance in bytes from the start of the stream's previous operation; `NO_VALUE` if unknown.

    `starts`: start of a stream or of a new part of it; `begin`: offset (`NO_VALUE` if unknown); shape (n,) each.
    """
    delta = np.full(len(begin), NO_VALUE)
    np.subtract(begin[1:], begin[:-1], out=delta[1:])
    unknown = begin == NO_VALUE
    delta[1:][starts[1:] | unknown[1:] | unknown[:-1]] = NO_VALUE
    return delta


def classify(
    starts: Bools,
    delta: Ints,
    size: Ints,
    append: Bools,
    jumped: Bools,
    first: Bools,
    behind_cut: Bools,
) -> Int8s:
    """Class of each operation; stream by stream, each in recorded order, shape (n,) each.

    Parameters
    ----------
    starts, delta
        See `distances`.
    size
        Size in bytes.
    append
        Whether the data was appended.
    jumped
        Whether a seek to an unknown position came before.
    first
        Whether it is the first operation of a stream.
    behind_cut
        Whether it begins where the end of the file cut the previous operation short.
    """
    n = len(delta)
    paired, before = delta != NO_VALUE, np.append(0, size[:-1])
    continues = paired & ((delta == before) | behind_cut)
    back = paired & (delta < before) & ~behind_cut
    next_to_back = np.zeros(n, np.bool_)
    next_to_back[1:] = back[:-1] & ~starts[1:]
    next_to_back[:-1] |= back[1:]
    kind = np.where(paired & (delta > before) & ~next_to_back, np.int8(SEQUENTIAL), np.int8(RANDOM))
    # Without both offsets, nothing can be compared: the access continues unless a seek led to an unrecorded position.
    kind[continues | append | ~paired] = CONSECUTIVE
    kind[jumped & ~paired & ~append] = SEQUENTIAL
    again = np.zeros(n, np.bool_)
    again[1:] = paired[1:] & (delta[1:] == delta[:-1]) & ~continues[1:] & ~append[1:] & (delta[1:] != 0)
    strided = again.copy()
    strided[:-1] |= again[1:]
    strided[:-2] |= again[2:]
    kind[strided] = STRIDED
    alone = np.append(starts[1:], True)
    heirs = np.flatnonzero(first & ~strided & ~append & ~alone)
    kind[heirs] = kind[heirs + 1]
    return kind


_OPERATION_BITS = {
    OperationBit.APPENDED: "append",
    OperationBit.JUMPED: "jumped",
    OperationBit.FIRST: "first",
    OperationBit.COUNTED: "counted",
    OperationBit.FROM_POSITION: "follows",
}
"""Columns of `Operations` that the kernel stores as bits."""


@dataclass
class Operations:
    """Data operations that are kept, in order of process, file and record; shape (n,) each."""

    key: Ints
    """Key of process and file (`Batch.process_file`) and direction, see `SIDES`."""
    phase_file: Ints
    within: Int16s
    begin: Ints
    size: Ints
    append: Bools
    jumped: Bools
    """Whether a seek to an unknown position came before."""
    first: Bools
    """Whether it is the first operation of a stream."""
    counted: Bools
    """Whether it was counted already; it is kept because its successors are compared with it."""
    start: Ints
    """Nanoseconds."""
    follows: Bools
    """Whether it starts at the file position, and advances it."""
    seeks: Ints
    """Number of seeks on its file before it, counted from a time common to all operations on the file."""

    @staticmethod
    def of_none() -> Operations:
        """No operations."""
        types = (*[np.int64] * 2, np.int16, *[np.int64] * 2, *[np.bool_] * 4, np.int64, np.bool_, np.int64)
        return Operations(*(np.empty(0, t) for t in types))


@dataclass(frozen=True, eq=False)
class KernelOperations:
    """`Operations` in the kernel's form."""

    key: Ints
    phase_file: Ints
    within: Int16s
    operations: Numbers
    """Structs of the kernel `pattern`."""

    @staticmethod
    def of(columns: Operations) -> KernelOperations:
        operations = np.zeros(len(columns.key), dtype_of("pattern", "held"))
        for name in ("begin", "size", "start", "seeks"):
            operations[name] = getattr(columns, name)
        for bit, name in _OPERATION_BITS.items():
            operations["bits"] |= bit * getattr(columns, name).astype(np.int64)
        return KernelOperations(columns.key, columns.phase_file, columns.within, operations)

    def as_columns(self) -> Operations:
        """Convert to numpy columns."""
        columns: dict[str, Numbers] = {n: self.operations[n].copy() for n in ("begin", "size", "start", "seeks")}
        columns |= {name: (self.operations["bits"] & bit) != 0 for bit, name in _OPERATION_BITS.items()}
        return Operations(self.key, self.phase_file, self.within, **columns)


@dataclass(frozen=True, eq=False)
class Calls:
    """Calls of a batch in which streams are found: `group`, `begin`, `size` and `start` of each, and the properties
    that calls of a group share. `keys`, `count`, `rows`: see `Batch.streams`."""

    keys: Ints
    count: Ints
    rows: Ints
    group: Numbers
    begin: Ints
    size: Ints
    start: Ints
    phase_file: Ints
    within: Int16s
    append: Bools
    follows: Bools

    @staticmethod
    def of_none() -> Calls:
        """No calls."""
        types = (*[np.int64] * 8, np.int16, np.bool_, np.bool_)
        return Calls(*(np.empty(0, t) for t in types))


class Run:
    """Data operations, stream by stream: in each stream, operations kept from earlier batches precede new ones."""

    def __init__(self, calls: Calls, earlier: Operations) -> None:
        self._calls, self._earlier = calls, earlier
        self.keys = distinct(calls.keys, earlier.key)
        """Keys of the streams, ascending."""
        new, old = np.zeros((2, len(self.keys)), np.int64)
        new[np.searchsorted(self.keys, calls.keys)] = calls.count
        np.add.at(old, np.searchsorted(self.keys, earlier.key), 1)
        self.ends = np.cumsum(new + old)
        """Index after the last operation of each stream."""
        begins = self.ends - new - old
        self._behind = np.repeat(np.cumsum(new) - new, old)
        self.earlier_at = self._behind + np.arange(len(earlier.key))
        """Indices of the operations kept from earlier batches."""
        self._row = np.insert(calls.rows, self._behind, 0)
        self.group = self._column(calls.group, len(calls.phase_file) + np.arange(len(earlier.key)))
        """Group of each operation; each kept one is a separate group, after the others."""
        self.phase_file = np.append(calls.phase_file, earlier.phase_file)
        self.within = np.append(calls.within, earlier.within)
        """Layers of each group, from `_appends` and `_follows`."""
        appends, self._follows = np.append(calls.append, earlier.append), np.append(calls.follows, earlier.follows)
        self.begin = self._column(calls.begin, earlier.begin)
        self.size = self._column(calls.size, earlier.size)
        self.size[self.size == NO_VALUE] = 0
        self.append = appends[self.group] if appends.any() else np.zeros(len(self.group), np.bool_)
        self.starts, self.first, self.jumped = np.zeros((3, len(self.group)), np.bool_)
        self.starts[begins] = True
        self.first[begins[old == 0]] = True
        self.first[self.earlier_at], self.jumped[self.earlier_at] = earlier.first, earlier.jumped

    def __len__(self) -> int:
        return len(self.group)

    def _column(self, new: Numbers, earlier: Numbers) -> Numbers:
        if not len(new):
            return earlier.copy()
        column = new[self._row]
        column[self.earlier_at] = earlier
        return column

    def place(self, new: Ints) -> Ints:
        """Indices of some new operations, given by their indices among the new ones."""
        return new + np.searchsorted(self._behind, new, side="right")

    def stream(self, at: Ints) -> Ints:
        """Stream number of some operations."""
        return np.searchsorted(self.ends, at, side="right")

    def follows(self, at: Ints) -> Bools:
        """Whether operations start at the file position, and advance it."""
        follows: Bools = self._follows[self.group[at]]
        return follows

    def start(self, at: Ints) -> Ints:
        """Start times of some operations in ns."""
        earlier, new, starts = self._apart(at)
        starts[earlier] = self._earlier.start[self.group[at[earlier]] - len(self._calls.phase_file)]
        starts[new] = self._calls.start[self._row[at[new]]]
        return starts

    def seeks(self, at: Ints, seeks: Seeks) -> Ints:
        """Seeks before some operations; see `Operations.seeks`."""
        earlier, new, counts = self._apart(at)
        counts[earlier] = self._earlier.seeks[self.group[at[earlier]] - len(self._calls.phase_file)]
        counts[new] = seeks.before(self.keys[self.stream(at[new])] // 2, self._row[at[new]])
        return counts

    def _apart(self, at: Ints) -> tuple[Ints, Ints, Ints]:
        """Masks of kept and new operations among some, and an array of zeros for them."""
        is_earlier = self.group[at] >= len(self._calls.phase_file)
        return np.flatnonzero(is_earlier), np.flatnonzero(~is_earlier), np.zeros(len(at), np.int64)

    def take(self, at: Ints, counted: Bools, seeks: Seeks) -> Operations:
        """Select operations, with their `counted` marks, and count their seeks from the next batch on."""
        group, key = self.group[at], self.keys[self.stream(at)]
        columns = {name: getattr(self, name)[at] for name in ("begin", "size", "append", "jumped", "first")}
        return Operations(
            key=key,
            phase_file=self.phase_file[group],
            within=self.within[group],
            counted=counted,
            start=self.start(at),
            follows=self._follows[group],
            seeks=self.seeks(at, seeks) - seeks.of(key // 2),
            **columns,
        )


class Events:
    """Streams that had an event (an open, a jump) since their last data operation."""

    def __init__(self) -> None:
        self.pending = np.empty(0, np.int64)
        """Keys of these streams, ascending."""

    def since(self, file: Ints, row: Ints, calls: Calls) -> Ints:
        """The first operation of each stream after an event on its file, as indices among the data operations.

        Parameters
        ----------
        file, row
            Process and file, and row in the batch, of each event. It affects both streams of a file (reads, writes).
        """
        if not len(file) + len(self.pending):
            return np.empty(0, np.int64)
        stream = np.repeat(calls.keys, calls.count)
        both = np.concatenate([pack((file, direction), SIDES) for direction in (0, 1)])
        at = np.zeros(len(both), np.int64)
        if len(both) and len(stream):
            # A batch has few processes, so keys are relative to its first stream.
            low, of_row = stream[0], key_widths(len(calls.group))
            after = pack((np.maximum(both - low, 0), np.concatenate((row, row))), of_row)
            at = np.searchsorted(pack((stream - low, calls.rows), of_row), after)
        late = self.pending
        at = np.concatenate((at, np.searchsorted(stream, late)))
        both = np.concatenate((both, late))
        # An event after the last data operation of a stream waits for the next batch.
        met = np.zeros(len(both), np.bool_)
        inside = at < len(stream)
        met[inside] = stream[at[inside]] == both[inside]
        self.pending = distinct(both[~met])
        return at[met]

    def among(self, streams: Ints) -> Bools:
        """Whether each of the streams, ascending, had an event."""
        among = np.zeros(len(streams), np.bool_)
        among[np.searchsorted(streams, self.pending)] = True
        return among

    def forget(self, widths: tuple[int, int, int], process: int) -> None:
        """Drop the events of processes that have no more calls.

        `widths` are those of the keys of process, file + 1 and direction.
        """
        self.pending = self.pending[unpack(self.pending, widths)[0] == process]


class Seeks:
    """Number of seeks of a batch on each file of each process."""

    def __init__(self, file: Ints, row: Ints) -> None:
        """`file`, `row`: process and file, and row in the batch, of the seeks in recorded order."""
        self._file, self._row = file, row

    def before(self, file: Ints, row: Ints) -> Ints:
        """Number of seeks on a file before a row of the batch."""
        first = self._count(file, np.zeros(len(file), np.int64))
        return self._count(file, row) - first

    def of(self, file: Ints) -> Ints:
        """Total number of seeks on each process's file."""
        return self.before(file, np.full(len(file), int(self._row.max(initial=-1)) + 1))

    def _count(self, file: Ints, row: Ints) -> Ints:
        """Number of seeks before each position, by file and row."""
        files, ordered = self._ordered
        code = np.searchsorted(files, file)
        beyond = np.append(files, -1)[code] != file
        count = np.searchsorted(ordered, code * self._rows + np.minimum(row, self._rows - 1))
        count[beyond] = 0
        return count

    @cached_property
    def _rows(self) -> int:
        return int(self._row.max(initial=0)) + 2

    @cached_property
    def _ordered(self) -> tuple[Ints, Ints]:
        """Files, ascending; and for each seek one number, ascending, made of the index among them and the row."""
        dense = Factorized.of(self._file)
        return dense.keys, np.sort(dense.codes * self._rows + self._row, kind="stable")
