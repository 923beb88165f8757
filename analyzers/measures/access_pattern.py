"""Access pattern of data operations, per process and file (tables VI, VII: "access pattern").

A process's reads and writes of a file are two streams, which restart when the process opens the file. Compared with
its predecessor in the stream, a data operation is

- strided, if it is one of three or more operations in a row at equal distances that do not just continue each other;
- consecutive, if it begins where its predecessor ended: after all bytes that it requested, or, for a read that reached
  the end of its file, at that end. If both operations start at the file position (`read`, not `pread`) without a seek
  in between, the position shows that end: the second one can begin inside the first one's request only because the
  request was cut short. Otherwise the end must be known from writes, truncations or job.yaml (`Ends`). So reads of a
  file to its end, and repeated reads at the end, are consecutive;
- sequential, if it begins further on, and neither its predecessor nor its successor goes back;
- random otherwise: it goes back, or goes forward between two that go back (half of random jumps lead forward).

The first operation of a stream has no predecessor: it gets the class of its successor, or consecutive without one.
Appended data is consecutive. An operation of unknown offset continues its predecessor (without a seek
in between) or jumps to an unrecorded position (sequential, after a seek to the end). Unit: operations.

Bytes are in order if their operation is not random, or moves 1 MiB or more: what precedes so large an operation does
not matter to a disk. Unit: bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from vani.analyzers import streams
from vani.analyzers.batch import Batch, CallGroups, phases_and_files
from vani.analyzers.int_table import NO_VALUE, IntTable, Sums, grouped, pack, unpack
from vani.analyzers.measures.accesses import by_column, widths_of
from vani.analyzers.passes import SumsCollector, SumsMeasure
from vani.analyzers.workload import Context, Ends, SurveyFindings, Workload
from vani.calls import Flag, Kind, Layer
from vani.columns import Bools, Int8s, Ints, Numbers, distinct
from vani.kernels import PatternBit, columns

_WITHIN = 1 << 16
LARGE = 1 << 20
"""Bytes of an operation that is in order wherever it begins (as in the kernel `pattern`)."""
_SIDE_AND_LAYER = (2, 2)
"""Widths of keys of direction, and of POSIX or STDIO."""
_FROM_POSITION = frozenset(
    ["read", "write", "readv", "writev", "fread", "fwrite", "fread_unlocked", "fwrite_unlocked", "vfprintf"]
)
"""Functions that move data at the file position and advance it (POSIX.1-2017)."""

_EACH = np.eye(len(streams.NAMES), dtype=np.int64)
"""One operation of each class."""
_BITS_OF_KIND = np.zeros(max(Kind) + 1, np.uint8)
_BITS_OF_KIND[[Kind.READ, Kind.WRITE]] = PatternBit.IS_DATA, PatternBit.IS_DATA | PatternBit.IS_WRITE



@cache
def _bits_of_flags() -> NDArray[np.uint8]:
    """Bits by the value of the flags, as unsigned numbers."""
    flags = np.arange(1 << 16, dtype=np.uint16)
    bits = np.zeros(len(flags), np.uint8)
    for flag, bit in (
        (Flag.SEEK, PatternBit.IS_SEEK),
        (Flag.OPEN, PatternBit.IS_OPEN),
        (Flag.APPEND, PatternBit.IS_APPEND),
    ):
        bits[(flags & flag) != 0] |= bit.value
    return bits


@dataclass(frozen=True, eq=False)
class Strides:
    """Distances between operations on listed files, with their counts; shape (n,) each."""

    file: Ints
    stride: Ints
    """Bytes."""
    count: Ints


@dataclass(frozen=True, eq=False)
class PatternCounts:
    """Data operations of each class, by the classes' `NAMES`."""

    phase: Ints
    """Shape (pairs of phase and file,), like `file`, which is -1 for no file or an unlisted one."""
    file: Ints
    operations: Mapping[str, Ints]
    """Operations of each phase and file, by class."""
    app: Ints
    """Shape (rows,), like `within`."""
    within: Ints
    """Layers that contain an app's operations, one bit per layer."""
    under: Mapping[str, Ints]
    """Operations of each row, by class."""
    strides: Strides
    ordered: IntTable | None = None
    """Bytes in order, as in `AccessTable.sums`; None if they are there."""


class AccessPattern(SumsMeasure):
    """Tables with a column per class: `phase_files` by phase and listed file, `layers` by app and surrounding layers;
    table `ordered` by phase and listed file, direction, layer: `amount`; pairs `strides` of listed file and bytes."""

    name = "access_pattern"
    result = PatternCounts
    columns = frozenset({"rank", "func", "kind", "file", "offset", "bytes", "start_ns", "within"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _Collector:
        return _Collector(self, context, findings)

    def aggregate(self, combined: Sums, workload: Workload, findings: SurveyFindings) -> PatternCounts:
        phase_files, layers, strides = combined["phase_files"], combined["layers"], combined.counts("strides")
        phase, file = phases_and_files(phase_files.keys, workload, findings)
        app, within = unpack(layers.keys, (len(workload.apps), _WITHIN))
        operations, under = ({name: table[name] for name in streams.NAMES} for table in (phase_files, layers))
        by_file = Strides(strides.first, strides.second, strides.count)
        table = combined["ordered"]
        of, file_of, kind, layer = phases_and_files(table.keys, workload, findings, *_SIDE_AND_LAYER)
        row = pack((0 * of, file_of + 1, kind, layer), widths_of(workload))
        ordered = grouped(np.where(of < findings.phases, by_column(row, "ordered"), -1), table.columns)
        return PatternCounts(phase, file, operations, app, within, under, by_file, ordered)


class _Collector(SumsCollector):
    """Keeps operations from batch to batch: an operation's class depends on two before it and up to three after it."""

    def __init__(self, measure: AccessPattern, context: Context, findings: SurveyFindings | None) -> None:
        super().__init__(measure)
        self._app, self._apps = context.app, len(context.workload.apps)
        self._listed_as = None if findings is None else findings.listed_as
        self._ends = Ends() if findings is None else findings.ends
        self._from_position = np.array([f in _FROM_POSITION for f in context.workload.functions] or [False])
        self._follows = np.where(self._from_position, PatternBit.FOLLOWS, 0).astype(np.uint8)
        self._widths = (context.workload.processes, context.workload.files + 1, 2)
        """Widths of keys of process, file + 1 and direction."""
        self._pending: streams.Operations | streams.KernelOperations | None = None
        self._jumps, self._opens = streams.Events(), streams.Events()

    def add(self, batch: Batch) -> None:
        if not len(batch) or self._add_compiled(batch):
            return
        groups, codes = batch.groups, batch.groups.codes
        phase_files, flags, within = groups.listed_phase_file_key, groups.flags, groups.within
        nameless = (groups.kind <= Kind.WRITE) & (groups.file < 0)
        if nameless.any():
            counts = np.zeros((int(nameless.sum()), len(streams.NAMES)), np.int64)
            counts[:, streams.CONSECUTIVE] = groups.count[nameless]
            self._add_table(phase_files[nameless], within[nameless], counts)
        calls = streams.Calls(
            *batch.streams,
            codes,
            batch.offset,
            batch.bytes,
            batch.start,
            phase_files,
            within,
            (flags & Flag.APPEND) != 0,
            self._from_position[groups.function],
        )
        seeks = ((flags & Flag.SEEK) != 0) & (groups.file >= 0)
        opens = ((flags & Flag.OPEN) != 0) & (groups.file >= 0)
        sought = np.flatnonzero(seeks[codes])
        opened = np.flatnonzero(opens[codes]) if opens.any() else sought[:0]
        jumps = sought[batch.offset[sought] == NO_VALUE]
        earlier = self._as_columns()
        run = streams.Run(calls, earlier)
        for events, rows, marks in ((self._jumps, jumps, run.jumped), (self._opens, opened, run.first)):
            marks[run.place(events.since(groups.process_file[codes[rows]], rows, calls))] = True
        seeks_of = streams.Seeks(groups.process_file[codes[sought]], sought)
        self._pending = self._take(run, earlier, seeks_of, going_on=int(groups.process[codes[-1]]))

    def _as_columns(self) -> streams.Operations:
        """The kept operations as columns."""
        earlier = self._pending or streams.Operations.of_none()
        return earlier.as_columns() if isinstance(earlier, streams.KernelOperations) else earlier

    def _add_compiled(self, batch: Batch) -> bool:
        """Do the same with a kernel; False if numpy must do it."""
        groups, codes = batch.groups, batch.groups.codes
        earlier = self._pending or streams.Operations.of_none()
        if isinstance(earlier, streams.Operations):
            earlier = streams.KernelOperations.of(earlier)
        named = groups.file >= 0
        pending = (earlier.key, self._jumps.pending, self._opens.pending)
        keys = distinct(groups.process_file[named], *(k // 2 for k in pending))
        stream_keys = np.add.outer(2 * keys, (0, 1)).ravel()
        process, file = unpack(keys, self._widths[:2])
        file -= 1
        going_on = process == groups.process[codes[-1]]
        of = np.where(going_on, PatternBit.GOES_ON, 0)
        is_listed = True if self._listed_as is None else self._listed_as[file] >= 0
        of |= np.where(is_listed, PatternBit.LISTED, 0)
        jumps, opens = (events.among(stream_keys).view(np.uint8) for events in (self._jumps, self._opens))
        out = batch.call(
            *("pattern", "offset", "bytes", "start"),
            bits=self._bits(groups),
            place=np.where(named, np.searchsorted(keys, groups.process_file), -1),
            held=earlier.operations,
            held_stream=np.searchsorted(stream_keys, earlier.key),
            file=file,
            of=of.astype(np.uint8),
            jumps=jumps,
            opens=opens,
            **self._ends.for_kernel(),
        )
        if out is None:
            return False
        counts = out["counts"].reshape(-1, len(streams.NAMES))
        counted = counts.any(axis=1)
        self._add_table(groups.listed_phase_file_key[counted], groups.within[counted], counts[counted])
        classes = out["held_class"]
        known = classes >= 0
        self._add_table(earlier.phase_file[known], earlier.within[known], _EACH[classes[known]])
        at = np.flatnonzero(counted & (groups.kind <= Kind.WRITE))
        self._add_bytes(groups.listed_phase_file_key[at], groups.kind[at], groups.within[at], out["ordered"][at])
        size = earlier.operations["size"]
        at = np.flatnonzero(known & ((classes != streams.RANDOM) | (size >= LARGE)))
        self._add_bytes(earlier.phase_file[at], earlier.key[at] % 2, earlier.within[at], size[at])
        self._add_strides(np.stack(columns(out["strides"]), axis=1))
        # Copies, because the arrays have room for all calls.
        remaining = int(out["kept"][0])
        operations, stream = out["run"][:remaining].copy(), out["kept_stream"][:remaining]
        source = operations["source"]
        example = codes[np.maximum(source, 0)]
        phase_files, within = groups.listed_phase_file_key[example], groups.within[example]
        old = source < 0
        phase_files[old], within[old] = (c[-1 - source[old]] for c in (earlier.phase_file, earlier.within))
        self._pending = streams.KernelOperations(stream_keys[stream], phase_files, within, operations)
        may_come = np.repeat(going_on, 2)
        self._jumps.pending, self._opens.pending = (
            stream_keys[(pending != 0) & may_come] for pending in (jumps, opens)
        )
        return True

    def _bits(self, groups: CallGroups) -> Numbers:
        kind, flags = groups.kind, groups.flags
        bits: Numbers = _BITS_OF_KIND[np.minimum(kind, len(_BITS_OF_KIND) - 1)]
        bits |= _bits_of_flags()[flags.view(np.uint16)]
        bits |= self._follows[groups.function]
        return bits

    def _take(
        self, run: streams.Run, earlier: streams.Operations, seeks: streams.Seeks, *, going_on: int
    ) -> streams.Operations | None:
        """Count what can no longer change, and return the rest, if any. Process `going_on` may have more calls."""
        self._jumps.forget(self._widths, going_on)
        self._opens.forget(self._widths, going_on)
        starts = run.starts | run.first
        delta = streams.distances(starts, run.begin)
        cut = self._behind_cut(run, delta, seeks)
        kind = streams.classify(starts, delta, run.size, run.append, run.jumped, run.first, cut)
        process, named, _ = unpack(run.keys, self._widths)
        # Later operations may change the last two, and a stream's first, which gets the class of its successor.
        goes_on = np.flatnonzero(process == going_on)
        last = (run.ends[goes_on] - np.arange(1, 5)[:, None]).T.ravel()
        behind = np.tile(np.arange(4), len(goes_on))
        of = np.repeat(goes_on, 4)
        there = last >= np.append(0, run.ends)[of]
        last, behind = last[there], behind[there]
        counted = np.zeros(len(run), np.bool_)
        counted[run.earlier_at] = earlier.counted
        ready = ~counted
        ready[last[behind < 2 + run.first[last]]] = False
        self._count(run, kind, np.flatnonzero(ready))
        strides = np.flatnonzero(ready & (kind == streams.STRIDED) & (delta != NO_VALUE))
        file = np.repeat(named - 1, np.diff(run.ends, prepend=0))[strides]
        if self._listed_as is not None:
            listed = self._listed_as[file] >= 0
            strides, file = strides[listed], file[listed]
        self._add_strides(np.stack((file, delta[strides], np.ones(len(file), np.int64)), axis=1))
        keep = np.sort(last)
        return run.take(keep, (counted | ready)[keep], seeks) if len(keep) else None

    def _behind_cut(self, run: streams.Run, delta: Ints, seeks: streams.Seeks) -> Bools:
        """Operations that begin where the end of the file cut their predecessor short."""
        behind = np.zeros(len(run), np.bool_)
        rows = np.flatnonzero((delta[1:] >= 0) & (delta[1:] < run.size[:-1])) + 1
        if not len(rows):
            return behind
        goes_on = run.follows(rows) & run.follows(rows - 1)
        both = rows[goes_on]
        goes_on[goes_on] = run.seeks(both, seeks) == run.seeks(both - 1, seeks)
        behind[rows[goes_on]] = True
        _, named, direction = unpack(run.keys, self._widths)
        reads = ~goes_on & (direction == Kind.READ)[run.stream(rows)]
        rows = rows[reads]
        ends = self._ends
        if len(ends.known) and len(rows):
            file, start = named[run.stream(rows)] - 1, run.start(rows)
            known = ends.known[file] & (start >= ends.since[file])
            rows, file, start = rows[known], file[known], start[known]
            behind[rows[run.begin[rows] == ends.at(file, start)]] = True
        return behind

    def _add_strides(self, strides: Ints) -> None:
        """`strides`: file, distance and count, shape (n, 3)."""
        self.sums.count("strides", *strides.T)

    def _count(self, run: streams.Run, kind: Int8s, rows: Ints) -> None:
        table = np.bincount(
            run.group[rows] * len(streams.NAMES) + kind[rows], minlength=len(streams.NAMES) * len(run.phase_file)
        ).reshape(-1, len(streams.NAMES))
        counted = table.any(axis=1)
        self._add_table(run.phase_file[counted], run.within[counted], table[counted])
        rows = rows[(kind[rows] != streams.RANDOM) | (run.size[rows] >= LARGE)]
        group, side = run.group[rows], run.keys[run.stream(rows)] % 2
        self._add_bytes(run.phase_file[group], side, run.within[group], run.size[rows])

    def _add_bytes(self, phase_file: Ints, side: Numbers, within: Numbers, size: Ints) -> None:
        """Add bytes in order, shape (n,) each."""
        layer = np.where((within >> Layer.POSIX & 1) == 1, Layer.POSIX, Layer.STDIO)
        key = (phase_file * _SIDE_AND_LAYER[0] + side) * _SIDE_AND_LAYER[1] + layer
        some = size > 0
        self.sums.add("ordered", key[some], {"amount": size[some]})

    def _add_table(self, phase_file: Ints, within: Numbers, counts: Ints) -> None:
        """`counts`: operations by class, shape (n, classes)."""
        columns = {name: counts[:, i] for i, name in enumerate(streams.NAMES)}
        around = pack((self._app, within), (self._apps, _WITHIN))
        self.sums.add("phase_files", phase_file, columns)
        self.sums.add("layers", around, columns)

    def result(self) -> Sums:
        nothing = np.empty(0, np.int64)
        earlier = self._as_columns()
        self._take(streams.Run(streams.Calls.of_none(), earlier), earlier, streams.Seeks(nothing, nothing), going_on=-1)
        self._pending = None
        return super().result()
