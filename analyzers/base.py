"""What a measure is, and what it sees: batches of calls with everything local made global.

The engine reads each partition once for all measures of a pass: every measure gets each batch, in order, then hands
on a small result; results of partitions are combined in any order. Partitions hold whole processes, so what belongs
to one process (its positions, its busy time) never has to be put together from two partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.analyzers.intervals import Intervals, merge_runs
from vani.analyzers.keyed import Dense, Keyed, group
from vani.analyzers.keys import pack, unpack
from vani.analyzers.names import Lives, Renames
from vani.calls import FileClass, Flag, Kind, Layer
from vani.columns import to_numpy

__all__ = [
    "ALL_KINDS",
    "BUCKETS",
    "KINDS",
    "LAYERS",
    "NO_VALUE",
    "Accumulator",
    "Alike",
    "Batch",
    "Collects",
    "Context",
    "Ends",
    "Facts",
    "Measure",
    "Pairs",
    "World",
    "cells_of",
    "count_pairs",
    "stable_order",
]

NO_VALUE = np.iinfo(np.int64).min
"""Stands for null in columns of integers."""

KINDS = 4
"""Kinds of file-system calls: read, write, metadata, sync."""
ALL_KINDS = KINDS
"""Stands for all of them together in keys that end with a kind, whose width is therefore `KINDS + 1`."""

LAYERS = 16
"""Layers in keys: `vani.calls.Layer` has fewer."""

_MOST = np.iinfo(np.int64).max
_WIDE = 1 << 20
_FEW_FIRST = 32

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class World:
    """The workload as the manifests of its stores tell it, before any call is read."""

    paths: Sequence[str]
    """Path of each global file code; traces that name the same path share the code."""
    file_class: NDArray[np.int8]
    apps: tuple[str, ...]
    app_of_trace: tuple[int, ...]
    process_base: tuple[int, ...]
    """First global process number of each trace."""
    processes: int
    shift_ns: tuple[int, ...]
    """Start of each trace after that of the first."""
    span_ns: int
    """End of the last call."""
    known_sizes: Ints
    """Shape (files,): size of a file before the run as job.yaml knows it, else `NO_VALUE`."""
    final_name: Ints
    """Shape (files,): one code for all names among which files were renamed, where the order of calls is not known;
    else each one's own: `Batch.file` gives files by their last name."""
    functions: tuple[str, ...] = ()
    """Names of the functions of all traces, by global code."""
    renames: Renames = field(default_factory=Renames.none)
    lives: Lives | None = None
    """What names stand for when, None where no file of the data set was renamed."""

    @property
    def files(self) -> int:
        return len(self.paths)


@dataclass(frozen=True)
class Context:
    """What a partition's batches need to become global."""

    world: World
    trace: int
    file_codes: NDArray[np.int64]
    """Global code of each of the trace's own file codes."""
    function_codes: NDArray[np.int32] = field(default_factory=lambda: np.zeros(1, np.int32))
    """Global code of each of the trace's own function codes; the last one is that of a function without a name."""

    @property
    def app(self) -> int:
        return self.world.app_of_trace[self.trace]


BUCKETS = 4096
"""Moments at which the ends of files are known, at most: the run is cut into so many pieces of equal length."""


@dataclass(frozen=True)
class Ends:
    """How far each file reached, by time: what is beyond has been asked for in vain."""

    known: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    """Shape (files,): the run made the file, or its size before the run is known, and all that was written is seen."""
    since: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Shape (files,): moment from which the end is known: what was read before may have been there."""
    always: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    """Shape (files,): no read came before that moment."""
    keys: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """file * (BUCKETS + 1) + moment, ascending."""
    reach: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Largest end so far at each key."""
    bucket_ns: int = 1
    level: int = 0
    """A moment is 2 ** level pieces of the run, each of `bucket_ns`."""

    def at(self, file: Ints, time_ns: Ints) -> Ints:
        """End of each file at a moment, 0 before anything was written; valid where `known`."""
        found = np.zeros(len(file), np.int64)
        if len(self.keys):
            moment = np.minimum(time_ns // self.bucket_ns, BUCKETS) >> self.level
            wanted = file * (BUCKETS + 1) + moment
            place = np.searchsorted(self.keys, wanted, side="right") - 1
            same = (place >= 0) & (self.keys[place] // (BUCKETS + 1) == file)
            found[same] = self.reach[place[same]]
        return found

    def last(self, files: int) -> Ints:
        """Largest end that each file ever had, shape (files,); `NO_VALUE` where unknown."""
        found = np.where(self.known, 0, NO_VALUE)
        owner = self.keys // (BUCKETS + 1)
        if len(owner):
            final = np.flatnonzero(np.append(owner[1:] != owner[:-1], True))
            keep = self.known[owner[final]]
            found[owner[final][keep]] = self.reach[final][keep]
        del files
        return found


@dataclass(frozen=True)
class Facts:
    """What the first pass found out, for the second."""

    phase_start: Ints
    """Shape (phases,): start of each phase in ns, app after app, ascending within an app."""
    phase_app: Ints
    first_phase: Ints
    """Shape (apps + 1,): phases of app a are first_phase[a] .. first_phase[a + 1]."""
    ends: Ends = field(default_factory=Ends)
    linked: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    """Shape (files,): files that are both written and read, and by several processes, which can depend on each other
    through them."""
    linked_by_open: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    """Shape (files,): of these, files whose writes or reads left no records, only the opens around them did."""
    written_by_open: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    """Shape (files,): of these, files whose writes left none."""
    threaded: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Processes that run calls at the same time, ascending."""
    listed_as: NDArray[np.int32] | None = None
    """Shape (files + 1,): the code under which `Batch.listed_cell` counts a file: its own if it is listed or no file of
    the data set, else -1. The last is that of no file. None: all files are listed."""
    linked_calls: int = 0
    """Data operations on the files that are `linked`."""

    @property
    def phases(self) -> int:
        return len(self.phase_start)


@dataclass(frozen=True)
class Alike:
    """Calls of a batch in groups that share every attribute but place, size and time: few, where calls are many."""

    codes: Ints
    """Group of each call."""
    row: Ints
    """One call of each group, shape (groups,)."""
    count: Ints
    """Calls of each group."""

    @staticmethod
    def of(codes: Ints, *columns: NDArray[Any]) -> Alike:
        """Groups of calls that agree in `codes` (0 and up, few) and in each of the columns."""
        width = int(codes.max(initial=-1)) + 1
        for column in columns:
            if len(column) and column.min() == column.max():
                continue
            dense = Dense.of(column)
            if len(dense.keys) > 1:
                codes = codes * len(dense.keys) + dense.codes
                width *= len(dense.keys)
            if width > _WIDE:
                few = Dense.of(codes)
                codes, width = few.codes, len(few.keys)
        codes = Dense.of(codes).codes
        row = np.zeros(int(codes.max(initial=-1)) + 1, np.int64)
        row[codes] = np.arange(len(codes))
        return Alike(codes, row, np.bincount(codes, minlength=len(row)))

    def range(self, values: Ints) -> tuple[Ints, Ints]:
        """Smallest and largest value of each group."""
        low, high = np.full(len(self.row), _MOST), np.full(len(self.row), -_MOST)
        np.minimum.at(low, self.codes, values)
        np.maximum.at(high, self.codes, values)
        return low, high

    def sum(self, values: Ints) -> Ints:
        """Exact sum over the calls of each group; `NO_VALUE` counts as 0."""
        return Dense(self.row, self.codes).sum(np.where(values == NO_VALUE, 0, values))


class Batch:
    """The counted file-system calls of a batch: layers posix and stdio, nested ones left out.

    Attributes are numpy arrays of shape (n,). `file` is -1 where none is known; `offset` and `bytes` are `NO_VALUE`
    where null. Times are nanoseconds since the workload began.
    """

    def __init__(self, context: Context, calls: pa.RecordBatch, facts: Facts | None = None) -> None:
        self.context = context
        self.facts = facts
        self._calls = calls
        layer = _numbers(calls, "layer")
        flags = _numbers(calls, "flags")
        counted = (layer <= Layer.STDIO) & ((flags & Flag.NESTED) == 0)
        self._rows: NDArray[np.int64] | None = None if counted.all() else np.flatnonzero(counted)

    def __len__(self) -> int:
        return self._calls.num_rows if self._rows is None else len(self._rows)

    @property
    def complete(self) -> bool:
        """All calls of the partition's batch are counted ones."""
        return self._rows is None

    @property
    def rows(self) -> Ints:
        """Place of each counted call among all calls of the batch."""
        return np.arange(self._calls.num_rows) if self._rows is None else self._rows

    def _column(self, name: str) -> NDArray[Any]:
        values = _numbers(self._calls, name)
        return values if self._rows is None else values[self._rows]

    @cached_property
    def kind(self) -> NDArray[np.int8]:
        return self._column("kind")

    @cached_property
    def function(self) -> NDArray[np.int32]:
        """Code of the function in `World.functions`."""
        codes = self.context.function_codes
        # -1, the code of no function, finds the last entry, as a code beyond the trace's functions does.
        found: NDArray[np.int32] = codes[np.minimum(self._column("func"), len(codes) - 1)]
        return found

    @cached_property
    def layer(self) -> NDArray[np.int8]:
        return self._column("layer")

    @cached_property
    def via(self) -> NDArray[np.int8]:
        return self._column("via")

    @cached_property
    def within(self) -> NDArray[np.int16]:
        return self._column("within")

    @cached_property
    def flags(self) -> NDArray[np.int16]:
        return self._column("flags")

    @cached_property
    def rank(self) -> NDArray[np.int32]:
        return self._column("rank")

    @cached_property
    def process(self) -> Ints:
        return self.rank.astype(np.int64) + self.context.world.process_base[self.context.trace]

    @cached_property
    def named(self) -> Ints:
        """Code of the name that the call gives its file."""
        # -1, the code of no file, finds the last entry.
        found: Ints = np.append(self.context.file_codes, -1)[self._column("file")]
        return found

    @cached_property
    def file(self) -> Ints:
        """Code of the file under its last name."""
        lives = self.context.world.lives
        return self.named if lives is None else lives.of(self.named, self.start, self.flags)

    @cached_property
    def bytes(self) -> Ints:
        return self._column("bytes")

    @cached_property
    def offset(self) -> Ints:
        return self._column("offset")

    @cached_property
    def start(self) -> Ints:
        shift = self.context.world.shift_ns[self.context.trace]
        start: Ints = self._column("start_ns")
        return start + shift if shift else start

    @cached_property
    def duration(self) -> Ints:
        return self._column("duration_ns")

    @cached_property
    def end(self) -> Ints:
        return self.start + self.duration

    @cached_property
    def included(self) -> NDArray[np.bool_]:
        """The call is on a file (or directory) that is no noise: see the contract, "file"."""
        found: NDArray[np.bool_] = np.append(self.context.world.file_class == FileClass.DATASET, False)[
            self.file
        ]
        return found

    @cached_property
    def phase(self) -> Ints:
        """Phase of each call; the number of phases for excluded calls."""
        facts = self._facts
        first, last = facts.first_phase[self.context.app], facts.first_phase[self.context.app + 1]
        starts = facts.phase_start[first:last]
        if len(starts) <= 1:
            found = np.full(len(self), first, np.int64)
        else:
            found = np.maximum(np.searchsorted(starts, self.start, side="right") - 1, 0) + first
        if not self.included.all():
            found[~self.included] = facts.phases
        return found

    @cached_property
    def cell(self) -> Dense:
        """Codes of the (phase, file) pairs of the batch; `cells_of` gives them back."""
        return self._cells(self.file)

    @cached_property
    def listed_cell(self) -> Dense:
        """The same with one cell per phase for all files that are not listed, which is that of no file.

        What is known of these files one by one are the survey, their processes and their extents.
        """
        listed_as = self._facts.listed_as
        if listed_as is None:
            return self.cell
        return self._cells(listed_as[self.file])

    def _cells(self, file: NDArray[Any]) -> Dense:
        return Dense.of(pack((self.phase, file + 1), _cell_widths(self.context.world, self._facts)))

    @property
    def cells(self) -> int:
        """Width of the keys of cells."""
        return prod(_cell_widths(self.context.world, self._facts))

    @cached_property
    def alike(self) -> Alike:
        """The calls put together that agree in process, phase, file, function, kind, layer, flags, via and within."""
        columns = [
            self.flags,
            self.within * np.int16(16) + self.via,
            self.kind + KINDS * self.layer,
            self._column("func"),
        ]
        if len(self) and int(self.process[0]) != int(self.process[-1]):
            columns.append(self.process)
        return Alike.of(self.cell.codes, *columns)

    @cached_property
    def alike_bytes(self) -> Ints:
        """Bytes of all calls of each group of `alike`."""
        return self.alike.sum(self.bytes)

    @cached_property
    def alike_time(self) -> Ints:
        """Duration of all calls of each group of `alike`."""
        return self.alike.sum(self.duration)

    @cached_property
    def unsized(self) -> NDArray[np.bool_]:
        """Data operations whose size the trace does not tell."""
        found: NDArray[np.bool_] = (self.kind <= Kind.WRITE) & (self.bytes == NO_VALUE)
        return found

    @cached_property
    def alike_unsized(self) -> Ints:
        """How many calls of each group of `alike` are `unsized`."""
        groups = len(self.alike.row)
        if not self.unsized.any():
            return np.zeros(groups, np.int64)
        return np.bincount(self.alike.codes[self.unsized], minlength=groups)

    @cached_property
    def sizes(self) -> Pairs:
        """How often each size occurs in the data operations of each group of `alike`, unknown sizes left out."""
        rows = np.flatnonzero((self.kind <= Kind.WRITE) & (self.bytes != NO_VALUE))
        return count_pairs(self.alike.codes[rows], self.bytes[rows])

    @cached_property
    def by_process_and_file(self) -> Ints:
        """Order of the calls by process, then file, in recorded order."""
        return stable_order(self.process_file)

    @cached_property
    def process_file(self) -> Ints:
        """Process and file of each call in one number: process * (World.files + 1) + file + 1."""
        world = self.context.world
        return pack((self.process, self.file + 1), (world.processes, world.files + 1))

    @cached_property
    def process_file_starts(self) -> NDArray[np.bool_]:
        """In that order: where another process or file begins."""
        key = self.process_file[self.by_process_and_file]
        return np.append(True, key[1:] != key[:-1]) if len(key) else np.empty(0, np.bool_)

    @cached_property
    def placed(self) -> tuple[Ints, NDArray[np.bool_]]:
        """Data operations on files, by process and file; and of which the place and the size are known."""
        order = self.by_process_and_file
        rows = order[(self.kind[order] <= Kind.WRITE) & (self.file[order] >= 0)]
        return rows, (self.offset[rows] != NO_VALUE) & (self.bytes[rows] != NO_VALUE)

    @cached_property
    def touched(self) -> Intervals:
        """Extents that all processes together read and wrote, by code of the cell * 2 + direction (0 read, 1 write)."""
        rows, known = self.placed
        if not known.all():
            rows = rows[known]
        begin, side = self.offset[rows], pack((self.cell.codes[rows], self.kind[rows]), (self.cells, 2))
        return merge_runs(side, begin, begin + self.bytes[rows])

    @property
    def _facts(self) -> Facts:
        if self.facts is None:
            raise RuntimeError("phases are known in the second pass only")
        return self.facts

    def all_calls(self, name: str) -> NDArray[Any]:
        """A column of all calls of the batch, those of libraries too."""
        return _numbers(self._calls, name)

    def files_of(self, rows: Ints) -> Ints:
        """Files of some of all calls of the batch, those of libraries too, as `file`."""
        named: Ints = np.append(self.context.file_codes, -1)[self.all_calls("file")[rows]]
        lives = self.context.world.lives
        return named if lives is None else lives.of(named, self.starts_of(rows), self.all_calls("flags")[rows])

    def starts_of(self, rows: Ints) -> Ints:
        """Starts of some of all calls of the batch, those of libraries too, as `start`."""
        start: Ints = self.all_calls("start_ns")[rows]
        return start + self.context.world.shift_ns[self.context.trace]


def _cell_widths(world: World, facts: Facts) -> tuple[int, int]:
    return facts.phases + 1, world.files + 1


def cells_of(keys: Ints, world: World, facts: Facts, *more: int) -> tuple[Ints, ...]:
    """Phase (the number of phases for excluded calls) and file (-1 for none) of keys of `Batch.cell`.

    Parameters
    ----------
    more
        Widths of columns that were packed behind the cell, which are returned behind the file.
    """
    phase, file, *others = unpack(keys, (*_cell_widths(world, facts), *more))
    return phase, file - 1, *others


def _numbers(calls: pa.RecordBatch, name: str) -> NDArray[Any]:
    column = calls.column(name)
    return to_numpy(column, NO_VALUE if column.type == pa.int64() else -1)


def stable_order(keys: Ints) -> Ints:
    """Indices that sort integers, equal ones in their order."""
    if not len(keys):
        return keys
    low, high = int(keys.min()), int(keys.max())
    if low == high:
        return np.arange(len(keys))
    # numpy sorts 16-bit integers by radix, several times faster than wider ones.
    if high - low < 1 << 16:
        return np.argsort((keys - low).astype(np.uint16), kind="stable")
    if high - low <= 8 * len(keys) + 65536:
        dense = Dense.of(keys)
        if len(dense.keys) < 1 << 16:
            return np.argsort(dense.codes.astype(np.uint16), kind="stable")
    return np.argsort(keys, kind="stable")


class Accumulator(Protocol):
    """Collects one partition."""

    def add(self, batch: Batch) -> None:
        """Take the next batch of the partition."""

    def result(self) -> Any:
        """Hand on what was found: small, picklable, and complete."""


class Collects(Protocol):
    """Something that is collected in a pass over all calls."""

    name: str
    columns: frozenset[str]
    """Columns of `vani.calls.CALLS` that it reads besides layer and flags."""

    def begin(self, context: Context, facts: Facts | None) -> Accumulator:
        """Start a partition."""

    def combine(self, parts: Sequence[Any]) -> Any:
        """Put results of partitions together, or what it put together before; associative, and free of order.

        `parts` may be empty.
        """


class Measure(Collects, Protocol):
    """One thing that is measured in calls; its module's docstring defines it."""

    def finish(self, combined: Any, world: World, facts: Facts) -> Any:
        """What the profile is made of: the combined result of all partitions as typed columns.

        Nobody else knows of what the keys of the tables before were made.
        """


@dataclass
class Pairs:
    """Counts under pairs of integers, such as (cell, size)."""

    first: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    second: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    count: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    @staticmethod
    def merged(parts: Sequence[Pairs], *, packed: bool = False) -> Pairs:
        """Add up counts of equal pairs; sorted by first, then second.

        Parameters
        ----------
        packed
            Leave the columns in the smallest types that hold them: to be looked at, not to calculate with.
        """
        parts = [p for p in parts if len(p.first)]
        if not parts:
            return Pairs()
        distinct = np.unique(np.concatenate([np.unique(p.first) for p in parts]))
        if len(distinct) > _FEW_FIRST:
            return count_pairs(
                *(np.concatenate([getattr(p, n) for p in parts]) for n in ("first", "second", "count"))
            )
        # One after the other: all at once would take several times the memory.
        found = []
        for one in distinct.tolist():
            rows = [p.first == one for p in parts]
            second, count = (
                np.concatenate([getattr(p, n)[r] for p, r in zip(parts, rows, strict=True)])
                for n in ("second", "count")
            )
            merged = group(second, {"count": count})
            pairs = Pairs(np.full(len(merged), one), merged.keys, merged["count"])
            found.append(pairs._packed() if packed else pairs)
        return Pairs(*(np.concatenate([getattr(p, n) for p in found]) for n in ("first", "second", "count")))

    def _packed(self) -> Pairs:
        columns = {"first": self.first, "second": self.second, "count": self.count}
        return Pairs(**Keyed(self.first, columns).packed().columns)


def count_pairs(first: Ints, second: Ints, weight: Ints | None = None) -> Pairs:
    """Count (or add up the weights of) equal pairs."""
    if not len(first):
        return Pairs()
    a, b = Dense.of(first), Dense.of(second)
    both = Dense.of(a.codes * len(b.keys) + b.codes)
    count = both.count() if weight is None else both.sum(weight)
    return Pairs(a.keys[both.keys // len(b.keys)], b.keys[both.keys % len(b.keys)], count)
