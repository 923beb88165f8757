"""Extents of files: which bytes were touched, and through which files processes can depend on each other.

**Extents**: which bytes of a file each process wrote and read. Dependencies by extents are derived from them.

Kept for files through which processes can depend on each other (`SurveyFindings.linked`), under their last names,
for calls of known offset and size. If there are few such calls, each is kept with its start time;
otherwise a process's writes and reads of a file are merged over the whole run. At most a million extents are
kept. Unit: bytes, nanoseconds.

**Footprint**: distinct bytes of files that were touched (contract: union of the extents over all processes).

1,280 processes that read one 4 KiB file have a footprint of 4 KiB. Appended data whose offset no
single process knows is new by definition and is added. Unit: bytes. More than a million separate extents exceed
the memory reserved for them, and the footprint is then unknown.

**Exchanges** through files, for process and app dependencies (tables III and IV).

Kept per process and file, for data set files that several processes use and that are both written and read,
under any name (a renamed file counts under its last name): the first write, the first and last read, their
bytes, and the number of calls without a recorded offset or size. If a trace has no write (or no read) of a file,
opens that empty it (or only read it) represent them, because formatted stream I/O leaves no records. Unit:
nanoseconds, bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vani.analyzers import int_table
from vani.analyzers.batch import Batch, phases_and_files
from vani.analyzers.intervals import Intervals, merge, merge_runs
from vani.analyzers.passes import SumsMeasure
from vani.analyzers.workload import Context, SurveyFindings, Workload
from vani.calls import Flag, Kind
from vani.columns import Bools, Int8s, Int32s, Ints, Numbers
from vani.kernels import columns

_FEW_CALLS = 1 << 16
"""Maximum number of calls that are kept individually."""
_MAX_EXTENTS = 1 << 20
"""Maximum number of extents of processes, 24 bytes each."""
_MAX_TOUCHED = 1_000_000
"""Maximum number of extents of all processes together."""


@dataclass(frozen=True, eq=False)
class ExtentsResult:
    """`extents` by process, file + 1 and kind (0 read, 1 write).

    One per call and unordered if `start_ns` is known, otherwise sorted and merged. `given_up`: there were too many to
    keep.
    """

    extents: Intervals = field(default_factory=Intervals)
    start_ns: Ints | None = None
    given_up: bool = False


@dataclass(frozen=True, eq=False)
class ProcessExtents:
    """Extents that each process wrote and read, shape (n,) each, for files that link processes.

    One per call and unordered if `start_ns` is known, otherwise by process, file and kind, and merged.
    """

    process: Int32s
    file: Int32s
    """Code of the last name."""
    kind: Int8s
    """Read or write."""
    start: Ints
    end: Ints
    start_ns: Ints | None
    """Start of the call."""
    given_up: bool
    """Whether there were too many to keep, so that none are here."""


class Extents:
    """See the module's docstring."""

    name = "extents"
    result = ProcessExtents
    columns = frozenset({"rank", "kind", "file", "offset", "bytes", "start_ns"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _OneByOne | _Merged:
        if findings is None:
            raise ValueError("which files link processes is known in the second pass")
        return (_OneByOne if findings.linked_calls <= _FEW_CALLS else _Merged)(context, findings)

    def combine(self, parts: Sequence[ExtentsResult]) -> ExtentsResult:
        if any(p.given_up for p in parts):
            return ExtentsResult(given_up=True)
        extents_of_parts = [p.extents for p in parts]
        times = [p.start_ns for p in parts if p.start_ns is not None]
        if times:
            return ExtentsResult(_together(extents_of_parts), np.concatenate(times))
        joined = _joined(extents_of_parts, _MAX_EXTENTS)
        return ExtentsResult(given_up=True) if joined is None else ExtentsResult(joined)

    def aggregate(self, combined: ExtentsResult, workload: Workload, findings: SurveyFindings) -> ProcessExtents:
        extents = combined.extents
        process, file, kind = int_table.unpack(extents.group, (workload.processes, workload.files + 1, 2))
        return ProcessExtents(
            process.astype(np.int32),
            (file - 1).astype(np.int32),
            kind.astype(np.int8),
            extents.start,
            extents.end,
            combined.start_ns,
            combined.given_up,
        )


def _joined(parts: Sequence[Intervals], most: int) -> Intervals | None:
    """All extents merged; None if there are more than `most`."""
    joined = Intervals()
    # In sequence, because merging all at once would take several times their memory. Long parts come last.
    for part in sorted(parts, key=len):
        joined = Intervals.joined([joined, part])
        if len(joined) > most:
            return None
    return joined


class _Merger:
    """Merges extents that come batch by batch, and gives up if more than `most` remain."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[Intervals] = []
        self._unmerged = 0
        self.given_up = False

    def add(self, extents: Intervals, grows: Callable[[Ints], Bools] | None = None) -> None:
        """Add merged extents; `grows` selects groups whose extents may still merge with later ones."""
        if not len(extents) or self.given_up:
            return
        self._parts.append(extents)
        self._unmerged += len(extents)
        if self._unmerged > self._most // 4 or len(self._parts) > 32:
            self.merged(grows)

    def merged(self, grows: Callable[[Ints], Bools] | None = None) -> Intervals:
        """All extents so far; none if they were given up."""
        joined = Intervals.joined(self._parts)
        # The result must not depend on where a batch ends. Allow at most twice as many, to bound memory.
        settled = len(joined) if grows is None else int(np.count_nonzero(~grows(joined.group)))
        self.given_up |= settled > self._most or len(joined) > 2 * self._most
        self._parts, self._unmerged = [] if self.given_up else [joined], 0
        return Intervals() if self.given_up else joined


def _together(parts: Sequence[Intervals]) -> Intervals:
    if not parts:
        return Intervals()
    return Intervals(*(np.concatenate([getattr(p, n) for p in parts]) for n in ("group", "start", "end")))


class _ExtentsCollector:
    def __init__(self, context: Context, findings: SurveyFindings) -> None:
        self._linked = findings.linked
        self._any = bool(findings.linked.any())
        self._workload, self._findings = context.workload, findings
        self._widths = (context.workload.processes, context.workload.files + 1, 2)
        self._final = context.workload.final_name

    def _key(self, process: Any, file: Ints, kind: Numbers) -> Ints:
        return int_table.pack((process, self._final[file] + 1, kind), self._widths)

    def _rows(self, batch: Batch, order: Ints | slice) -> Ints:
        """Calls whose extents count, in that order."""
        file, size = batch.file[order], batch.bytes[order]
        linked = (batch.kind[order] <= Kind.WRITE) & (file >= 0) & self._linked[np.maximum(file, 0)]
        placed = np.flatnonzero(linked & (batch.offset[order] != int_table.NO_VALUE) & (size > 0))
        return placed if isinstance(order, slice) else order[placed]


class _OneByOne(_ExtentsCollector):
    def __init__(self, context: Context, findings: SurveyFindings) -> None:
        super().__init__(context, findings)
        self._parts: list[Intervals] = []
        self._times: list[Ints] = [np.empty(0, np.int64)]

    def add(self, batch: Batch) -> None:
        rows = self._rows(batch, slice(None)) if self._any else ()
        if not len(rows):
            return
        key = self._key(batch.process[rows], batch.file[rows], batch.kind[rows])
        start = batch.offset[rows]
        self._parts.append(Intervals(key, start, start + batch.bytes[rows]))
        self._times.append(batch.start[rows])

    def result(self) -> ExtentsResult:
        return ExtentsResult(_together(self._parts), np.concatenate(self._times))


class _Merged(_ExtentsCollector):
    def __init__(self, context: Context, findings: SurveyFindings) -> None:
        super().__init__(context, findings)
        self._extents = _Merger(_MAX_EXTENTS)

    def add(self, batch: Batch) -> None:
        if self._extents.given_up or not len(batch):
            return
        process = batch.groups.process
        extents = self._of_one(batch) if process.min() == process.max() else self._of_several(batch)
        last = int(process[batch.groups.codes[-1]])
        self._extents.add(extents, lambda group: int_table.unpack(group, self._widths)[0] == last)

    def _of_one(self, batch: Batch) -> Intervals:
        """Extents from the footprint, joined per file because the footprint distinguishes phases."""
        touched = batch.touched
        _, file = phases_and_files(batch.groups.phase_file.keys, self._workload, self._findings)
        linked = (file >= 0) & self._linked[np.maximum(file, 0)]
        if not linked.all():
            touched = touched.where(linked[int_table.unpack(touched.group, (batch.phase_file_width, 2))[0]])

        def key(group: Ints) -> Ints:
            code, kind = int_table.unpack(group, (batch.phase_file_width, 2))
            return self._key(batch.groups.process[0], file[code], kind)

        touched = touched.under(key)
        # Usually there is one phase, and no file has two names.
        in_order = (np.diff(touched.group[touched.firsts]) > 0).all()
        return touched if in_order else merge(touched.group, touched.start, touched.end)

    def _of_several(self, batch: Batch) -> Intervals:
        groups = batch.groups
        file = groups.file
        linked = np.flatnonzero((groups.kind <= Kind.WRITE) & (file >= 0) & self._linked[np.maximum(file, 0)])
        if not len(linked):
            return Intervals()
        keys = int_table.Factorized.of(self._key(groups.process[linked], file[linked], groups.kind[linked]))
        side = np.full(len(file), -1)
        side[linked] = keys.codes
        out = batch.call("extents", "offset", "bytes", side=side, sides=len(keys.keys))
        if out is not None:
            code, start, end = columns(out["extents"])
            return merge(keys.keys[code], start, end)
        rows = self._rows(batch, batch.streams[2])
        key = self._key(batch.process[rows], batch.file[rows], batch.kind[rows])
        start = batch.offset[rows]
        return merge_runs(key, start, start + batch.bytes[rows])

    def result(self) -> ExtentsResult:
        return ExtentsResult(self._extents.merged(), given_up=self._extents.given_up)


@dataclass(frozen=True, eq=False)
class FootprintResult:
    """`extents` by phase, file and direction (0 read, 1 write); `others` by phase and file: appended bytes, and calls
    of unknown offset.

    `given_up` is set if there were too many extents to keep.
    """

    extents: Intervals
    others: int_table.IntTable
    given_up: bool = False


@dataclass(frozen=True, eq=False)
class Touched:
    """Extents that all processes together read and wrote, excluding bytes past the end of a file.

    A row has one or more extents of a phase, file and kind, which are ordered and disjoint. Several
    rows may have the same phase, file and kind.
    """

    phase: Int32s
    """Shape (rows,), like the next four."""
    file: Int32s
    kind: Int8s
    """Read or write."""
    first: Ints
    """Index of its first extent."""
    length: Ints
    """Total bytes of its extents."""
    start: Ints
    """Shape (extents,)."""
    end: Ints
    others: PlacelessCalls
    given_up: bool
    """Whether there were too many extents to keep, so that none are here."""

    @staticmethod
    def each_alone(phase: Numbers, file: Numbers, kind: Numbers, start: Ints, end: Ints) -> Touched:
        """Extents that may overlap, shape (n,) each, with the offset of every call known: one row each."""
        return Touched(
            phase.astype(np.int32),
            file.astype(np.int32),
            kind.astype(np.int8),
            np.arange(len(start)),
            end - start,
            start,
            end,
            PlacelessCalls(*(np.empty(0, np.int64) for _ in range(4))),
            given_up=False,
        )


@dataclass(frozen=True, eq=False)
class PlacelessCalls:
    """Data operations of unknown offset, per phase and file; shape (n,) each."""

    phase: Ints
    file: Ints
    appended: Ints
    """Bytes."""
    unplaced: Ints
    """Number of operations whose bytes are unknown, too."""


class Footprint:
    """See the module's docstring."""

    name = "footprint"
    result = Touched
    columns = frozenset({"rank", "kind", "file", "offset", "bytes", "start_ns"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _FootprintCollector:
        return _FootprintCollector()

    def combine(self, parts: Sequence[FootprintResult]) -> FootprintResult:
        given_up = any(part.given_up for part in parts)
        extents = None if given_up else _joined([part.extents for part in parts], _MAX_TOUCHED)
        others = int_table.IntTable.merged([part.others for part in parts])
        return FootprintResult(Intervals() if extents is None else extents, others, extents is None)

    def aggregate(self, combined: FootprintResult, workload: Workload, findings: SurveyFindings) -> Touched:
        extents, others, ends = combined.extents, combined.others, findings.ends
        first = extents.firsts
        phase, file, kind = phases_and_files(extents.group[first], workload, findings, 2)
        start, end, last = extents.start, extents.end, ends.last()
        if len(last) and len(file):
            # Reads past the end of a file touch nothing.
            known = (kind == Kind.READ) & (file >= 0) & ends.always[np.maximum(file, 0)]
            limit = np.where(known, last[np.maximum(file, 0)], np.iinfo(np.int64).max)
            after = np.append(first[1:], len(end))
            if (end[after - 1] > limit).any():
                end = np.maximum(np.minimum(end, np.repeat(limit, after - first)), start)
        at = phases_and_files(others.keys, workload, findings)
        without_place = PlacelessCalls(at[0], at[1], others["appended"], others["unplaced"])
        return Touched(
            phase.astype(np.int32),
            file.astype(np.int32),
            kind.astype(np.int8),
            first,
            np.add.reduceat(end - start, first) if len(first) else first,
            start,
            end,
            without_place,
            combined.given_up,
        )


class _FootprintCollector:
    def __init__(self) -> None:
        self._extents, self._others = _Merger(_MAX_TOUCHED), int_table.IntTableBuilder()

    def add(self, batch: Batch) -> None:
        blind, phase_files = batch.unplaced, batch.groups.phase_file
        if len(blind):
            dense = int_table.Factorized.of(phase_files.codes[batch.groups.codes[blind]])
            appended = ((batch.flags[blind] & Flag.APPEND) != 0) & (batch.bytes[blind] != int_table.NO_VALUE)
            columns = {
                "appended": dense.sum(np.maximum(batch.bytes[blind], 0), appended),
                "unplaced": dense.count(~appended),
            }
            self._others.add(phase_files.keys[dense.keys], columns)

        def key(group: Ints) -> Ints:
            code, side = int_table.unpack(group, (batch.phase_file_width, 2))
            return int_table.pack((phase_files.keys[code], side), (batch.phase_file_width, 2))

        if not self._extents.given_up:
            self._extents.add(batch.touched.under(key))

    def result(self) -> FootprintResult:
        return FootprintResult(self._extents.merged(), self._others.table(), self._extents.given_up)


NEVER = np.iinfo(np.int64).max


COLUMNS = (
    "first_write",
    "last_write",
    "first_read",
    "last_read",
    "bytes_written",
    "bytes_read",
    "unplaced_writes",
    "unplaced_reads",
    "unsized_writes",
    "unsized_reads",
    "reads",
    "made",
    "looked",
)


@dataclass(frozen=True, eq=False)
class ExchangeCounts:
    """Reads and writes of each process on the files that link processes; shape (n,) each, process by process."""

    process: Ints
    file: Ints
    """Code of the last name, ascending within a process."""
    columns: Mapping[str, Ints]
    """Columns by name, see `Exchanges`."""


class Exchanges(SumsMeasure):
    """Table `exchanges` by process and file + 1.

    first_write, first_read (`NEVER` if none), last_write, last_read (-`NEVER` if none); bytes_written, bytes_read;
    calls of unknown offset: unplaced_writes, unplaced_reads; of unknown size: unsized_writes, unsized_reads; opens that
    represent writes and reads: made, looked; and the number of reads.
    """

    name = "exchanges"
    result = ExchangeCounts
    columns = frozenset({"rank", "kind", "file", "offset", "bytes", "start_ns"})
    minima, maxima = ("first_write", "first_read"), ("last_write", "last_read")

    def add(self, batch: Batch, sums: int_table.SumsBuilder) -> None:
        findings, workload = batch.known_findings, batch.context.workload
        if not findings.linked.any():
            return
        groups = batch.groups
        file, flags, kind = groups.file, groups.flags, groups.kind
        named = np.maximum(file, 0)
        moves = kind <= Kind.WRITE
        emptied = ((flags & Flag.TRUNCATE) != 0) & findings.written_by_open[named]
        only_read = (flags & (Flag.OPEN | Flag.WRITABLE | Flag.DIRECTORY)) == Flag.OPEN
        looked = only_read & findings.linked_by_open[named] & ~emptied
        rows = np.flatnonzero((moves | emptied | looked) & (file >= 0) & findings.linked[named])
        key = int_table.pack((groups.process, workload.final_name[named] + 1), (workload.processes, workload.files + 1))
        first, last = groups.first_start, groups.last_start
        write = (kind == Kind.WRITE) | emptied
        # A call of unknown size has no certain extent, and a call of zero bytes touches nothing.
        unsized = groups.unsized
        unplaced = np.where(moves, unsized + groups.unplaced_sized, 0)
        columns = (
            np.where(write, first, NEVER),
            np.where(write, last, -NEVER),
            np.where(write, NEVER, first),
            np.where(write, -NEVER, last),
            np.where(write & moves, groups.bytes, 0),
            np.where(write, 0, groups.bytes),
            np.where(write, unplaced, 0),
            np.where(write, 0, unplaced),
            np.where(write, unsized, 0),
            np.where(write, 0, unsized),
            np.where(moves & ~write, groups.count, 0),
            np.where(emptied, groups.count, 0),
            np.where(looked, groups.count, 0),
        )
        sums.add("exchanges", key[rows], {n: c[rows] for n, c in zip(COLUMNS, columns, strict=True)})

    def aggregate(self, combined: int_table.Sums, workload: Workload, findings: SurveyFindings) -> ExchangeCounts:
        table = combined["exchanges"]
        process, file = int_table.unpack(table.keys, (workload.processes, workload.files + 1))
        return ExchangeCounts(process, file - 1, {name: table[name] for name in COLUMNS})
