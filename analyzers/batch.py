"""A batch of calls, in the form that measures use.

Local codes of files, processes and functions are made global. Calls are grouped by everything except offset, size and
time, so that a few rows represent many calls.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from vani.analyzers.int_table import KINDS, NO_VALUE, SIDES, Factorized, Pairs, count_pairs, pack, unpack
from vani.analyzers.intervals import Intervals, merge, merge_runs
from vani.analyzers.workload import Context, SurveyFindings, Workload
from vani.calls import FileClass, Flag, Kind, Layer
from vani.columns import Bools, Int32s, Ints, Numbers, raw, to_numpy
from vani.kernels import call, columns
from vani.kernels.signatures import COLUMNS, NULLABLE, Signatures, signatures


class StoredColumn(cached_property[Numbers]):
    """A column of `vani.calls.CALLS`, converted on first use."""

    def __init__(self, name: str) -> None:
        super().__init__(lambda calls: calls._column(name))


class CallColumns(ABC):
    """Attributes of calls, or of groups of calls, as numpy arrays of shape (n,).

    `file` is -1 if unknown. Times are nanoseconds since the start of the workload.
    """

    kind = StoredColumn("kind")
    layer = StoredColumn("layer")
    via = StoredColumn("via")
    within = StoredColumn("within")
    flags = StoredColumn("flags")
    rank = StoredColumn("rank")

    def __init__(self, context: Context, findings: SurveyFindings | None) -> None:
        self.context = context
        self.findings = findings

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _column(self, name: str) -> Numbers:
        """A column of `vani.calls.CALLS`."""

    @cached_property
    def function(self) -> Int32s:
        """Code of the function in `Workload.functions`."""
        codes = self.context.function_codes
        # -1 (no function) and codes beyond the trace's functions both select the last entry.
        function: Int32s = codes[np.minimum(self._column("func"), len(codes) - 1)]
        return function

    @cached_property
    def process(self) -> Ints:
        return self.rank.astype(np.int64) + self.context.workload.process_base[self.context.trace]

    @cached_property
    def start(self) -> Ints:
        shift = self.context.workload.shift_ns[self.context.trace]
        start: Ints = self._column("start_ns")
        return start + shift if shift else start

    @cached_property
    def named(self) -> Ints:
        """Code of the name under which the call refers to its file."""
        # -1 (no file) selects the last entry.
        named: Ints = np.append(self.context.file_codes, -1)[self._column("file").astype(np.int64)]
        return named

    @cached_property
    def file(self) -> Ints:
        """Code of the file under its final name."""
        lives = self.context.workload.lives
        return self.named if lives is None else lives.of(self.named, self.start, self.flags)

    @cached_property
    def included(self) -> Bools:
        """Whether the call is on a file (or directory) of the data set: see the contract, "file"."""
        in_dataset = np.append(self.context.workload.file_class == FileClass.DATASET, False)
        included: Bools = in_dataset[self.file]
        return included

    @cached_property
    def phase(self) -> Ints:
        """Phase of each call; the number of phases for excluded calls."""
        findings = self.known_findings
        first, starts = findings.first_phase[self.context.app], self._phase_starts
        if len(starts) <= 1:
            phase = np.full(len(self), first, np.int64)
        else:
            phase = np.maximum(np.searchsorted(starts, self.start, side="right") - 1, 0) + first
        if not self.included.all():
            phase[~self.included] = findings.phases
        return phase

    @cached_property
    def phase_file_key(self) -> Ints:
        """Key of phase and file; see `phases_and_files`."""
        return self._key_of(self.file)

    @cached_property
    def listed_phase_file_key(self) -> Ints:
        """Key of phase and file, in which unlisted files count as no file.

        Of unlisted files, only the survey's results, their processes and their extents are kept individually.
        """
        listed_as = self.known_findings.listed_as
        return self.phase_file_key if listed_as is None else self._key_of(listed_as[self.file])

    def _key_of(self, file: Numbers) -> Ints:
        return pack((self.phase, file + 1), _phase_file_widths(self.context.workload, self.known_findings))

    @property
    def phase_file_width(self) -> int:
        """Width of keys of phase and file."""
        phases, files = _phase_file_widths(self.context.workload, self.known_findings)
        return phases * files

    @cached_property
    def process_file(self) -> Ints:
        """Key of process and file + 1."""
        workload = self.context.workload
        return pack((self.process, self.file + 1), (workload.processes, workload.files + 1))

    @property
    def known_findings(self) -> SurveyFindings:
        """The findings, in the second pass."""
        if self.findings is None:
            raise RuntimeError("phases are known in the second pass only")
        return self.findings

    @property
    def _phase_starts(self) -> Ints:
        findings, app = self.known_findings, self.context.app
        return findings.phase_start[findings.first_phase[app] : findings.first_phase[app + 1]]


def _phase_file_widths(workload: Workload, findings: SurveyFindings) -> tuple[int, int]:
    return findings.phases + 1, workload.files + 1


def phases_and_files(keys: Ints, workload: Workload, findings: SurveyFindings, *more: int) -> tuple[Ints, ...]:
    """Phase (the number of phases for excluded calls) and file (-1 for none), from keys of phase and file.

    Parameters
    ----------
    more
        Widths of columns that were packed after phase and file, which are returned after the file.
    """
    phase, file, *columns = unpack(keys, (*_phase_file_widths(workload, findings), *more))
    return phase, file - 1, *columns


_WIDE = 1 << 20
"""Codes above this are renumbered."""
_NARROW = 1 << 7
"""Columns with fewer distinct values are packed unchanged."""



class CallGroups(CallColumns):
    """Groups of calls, shape (groups,); calls of a group share process, file, phase, function, kind, layer and flags.

    Parameters
    ----------
    columns
        Columns of `vani.calls.CALLS` for one call of each group.
    codes
        Group of each call, shape (calls,).
    rows
        Index of each call among all calls of the batch, shape (calls,); None if these are all calls.
    count
        Number of calls in each group.
    bytes, unsized
        Bytes in the calls of each group, and the number of its data calls of unknown size.
    """

    def __init__(
        self,
        context: Context,
        findings: SurveyFindings | None,
        columns: Mapping[str, Numbers],
        codes: Numbers,
        rows: Numbers | None,
        count: Ints,
        bytes: Ints,
        unsized: Ints,
    ) -> None:
        super().__init__(context, findings)
        self._columns = columns
        self.codes, self.rows, self.count = codes, rows, count
        self.bytes, self.unsized = bytes, unsized

    def __len__(self) -> int:
        return len(self.count)

    def _column(self, name: str) -> Numbers:
        return self._columns[name]

    def places(self, groups: Bools) -> Ints:
        """Indices, among all calls of the batch, of the calls in some groups, ascending."""
        chosen = np.flatnonzero(groups[self.codes]) if groups.any() else np.empty(0, np.int64)
        return chosen if self.rows is None else self.rows[chosen].astype(np.int64)


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums and extremes over the calls of each group, shape (groups,)."""

    bytes: Ints
    time: Ints
    """Total duration in ns."""
    unsized: Ints
    """Number of data operations of unknown size."""
    unplaced: Ints
    """Number of calls with unknown offset."""
    unplaced_sized: Ints
    """Number of calls with unknown offset and more than 0 bytes."""
    first_start: Ints
    """In ns, like the next two."""
    last_start: Ints
    last_end: Ints


class CountedGroups(CallGroups):
    """Groups of the counted calls of a batch, with their sums."""

    def __init__(
        self,
        context: Context,
        findings: SurveyFindings | None,
        columns: Mapping[str, Numbers],
        codes: Numbers,
        rows: Numbers | None,
        count: Ints,
        sums: GroupSums,
    ) -> None:
        super().__init__(context, findings, columns, codes, rows, count, sums.bytes, sums.unsized)
        self.time = sums.time
        self.unplaced, self.unplaced_sized = sums.unplaced, sums.unplaced_sized
        self.first_start, self.last_start, self.last_end = sums.first_start, sums.last_start, sums.last_end

    @cached_property
    def phase_file(self) -> Factorized:
        """Codes of the pairs of phase and file."""
        return Factorized.of(self.phase_file_key)


class GroupedCalls(CallColumns):
    """Calls in groups: what measures need that depend on neither order nor places."""

    @property
    @abstractmethod
    def groups(self) -> CountedGroups:
        """The counted file-system calls."""

    @property
    @abstractmethod
    def uncounted_groups(self) -> CallGroups:
        """Groups of the calls that are not counted: library calls and nested ones."""

    @property
    @abstractmethod
    def sizes(self) -> Pairs:
        """Sizes of each group's data operations with their counts; unknown sizes are omitted."""


def group_codes(*columns: Numbers) -> Numbers:
    """Number rows so that rows that agree in all columns share a code; integers, shape (n,) each."""
    codes, width = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
        if low == high:
            continue
        if high - low < _NARROW:
            numbers, count = column - column.dtype.type(low), high - low + 1
        else:
            factorized = Factorized.of(column)
            numbers, count = factorized.codes, len(factorized.keys)
        codes *= count
        codes += numbers
        width *= count
        if width > _WIDE:
            factorized = Factorized.of(codes)
            codes, width = factorized.codes, len(factorized.keys)
    return Factorized.of(codes).codes


_NOT_SHARED = frozenset({"offset", "bytes", "start_ns", "duration_ns"})
_MOST = np.iinfo(np.int64).max


class Batch(GroupedCalls):
    """The counted file-system calls of a batch: layers posix and stdio, without nested calls.

    Attributes are numpy arrays of shape (n,). `file` is -1 if unknown; `offset` and `bytes` are `NO_VALUE`
    for null. Times are nanoseconds since the start of the workload.
    """

    bytes = StoredColumn("bytes")
    offset = StoredColumn("offset")
    duration = StoredColumn("duration_ns")

    def __init__(self, context: Context, calls: pa.RecordBatch, findings: SurveyFindings | None = None) -> None:
        super().__init__(context, findings)
        self._calls = calls
        self._all: dict[str, Numbers] = {}

    def __len__(self) -> int:
        return self._calls.num_rows if self._rows is None else len(self._rows)

    def call(self, kernel: str, *names: str, **given: Any) -> dict[str, Numbers] | None:
        """Call a kernel with the group and some attributes of each call, and what is given (`vani.kernels.call`)."""
        own = {name: getattr(self, name) for name in names}
        return call(kernel, codes=self.groups.codes, **own, **given)

    @property
    def complete(self) -> bool:
        """Whether all calls of the batch are counted."""
        return self._rows is None

    @property
    def rows(self) -> Numbers:
        """Index of each counted call among all calls of the batch."""
        return np.arange(self._calls.num_rows) if self._rows is None else self._rows

    @cached_property
    def start(self) -> Ints:
        known = self._signatures
        return super().start if known is None else known.columns["start_ns"]

    @cached_property
    def end(self) -> Ints:
        end: Ints = self.start + self.duration
        return end

    def _column(self, name: str) -> Numbers:
        known = self._signatures
        # The kernel's start times are the workload's.
        if known is not None and name in known.columns and name != "start_ns":
            return known.columns[name]
        column = self.all_calls(name)
        return column if self._rows is None else column[self._rows]

    # All calls, including library calls and nested ones.

    def all_calls(self, name: str) -> Numbers:
        """A column of all calls of the batch, including library calls."""
        if name not in self._all:
            column = self._calls.column(name)
            self._all[name] = to_numpy(column, NO_VALUE if column.type == pa.int64() else -1)
        return self._all[name]

    def flagged(self, flag: Flag) -> Ints:
        """Indices, among all calls of the batch, of those with a flag."""
        return np.sort(
            np.concatenate([g.places((g.flags & flag) != 0) for g in (self.groups, self.uncounted_groups)])
        )

    def files_of(self, rows: Ints) -> Ints:
        """Files of selected calls among all calls of the batch, coded like `file`."""
        named: Ints = np.append(self.context.file_codes, -1)[self.all_calls("file")[rows]]
        lives = self.context.workload.lives
        if lives is None:
            return named
        return lives.of(named, self.starts_of(rows), self.all_calls("flags")[rows])

    def starts_of(self, rows: Ints) -> Ints:
        """Start times of selected calls among all calls of the batch, like `start`."""
        start: Ints = self.all_calls("start_ns")[rows]
        return start + self.context.workload.shift_ns[self.context.trace]

    # Groups of calls.

    @cached_property
    def groups(self) -> CountedGroups:
        """The counted calls grouped by process, phase, file, function, kind, layer, flags, via and within.

        During the survey, phases are unknown and not grouped by; neither are columns that a pass does not read.
        """
        known = self._signatures
        if known is None:
            return self._groups_by_numpy()
        counted = known.counted
        place = counted.row if counted.rows is None else counted.rows[counted.row]
        sums = GroupSums(
            known.bytes,
            known.time,
            known.unsized,
            known.placeless,
            known.displaced,
            known.first,
            known.last,
            known.end,
        )
        shared = dict(counted.columns)
        if "start_ns" in self._calls.schema.names:
            shared["start_ns"] = self.all_calls("start_ns")[place]
        return CountedGroups(self.context, self.findings, shared, counted.codes, counted.rows, counted.count, sums)

    def _groups_by_numpy(self) -> CountedGroups:
        names = self._calls.schema.names
        by: list[Numbers] = [self.file, self.flags, self.kind + KINDS * self.layer, self.process]
        if self.findings is not None:
            by += [self.phase, self.within * np.int16(16) + self.via, self._column("func")]
        codes = group_codes(*by)
        row = np.zeros(int(codes.max(initial=-1)) + 1, np.int64)
        row[codes] = np.arange(len(codes))
        shared = {name: self._column(name)[row] for name in names if name not in _NOT_SHARED - {"start_ns"}}
        grouped = Factorized(row, codes)
        nothing = np.zeros(len(codes), np.int64)
        size = self.bytes if "bytes" in names else nothing
        start = self.start if "start_ns" in names else nothing
        duration = self.duration if "duration_ns" in names else nothing
        unplaced = self.offset == NO_VALUE if "offset" in names else nothing > 0
        unsized = size == NO_VALUE
        first, last, end = np.full(len(row), _MOST), np.full(len(row), -_MOST), np.full(len(row), -_MOST)
        np.minimum.at(first, codes, start)
        np.maximum.at(last, codes, start)
        np.maximum.at(end, codes, start + duration)
        sums = GroupSums(
            grouped.sum(np.where(unsized, 0, size)),
            grouped.sum(duration),
            grouped.count(unsized & (self.kind <= Kind.WRITE)),
            grouped.count(unplaced),
            grouped.count(unplaced & (size > 0)),
            first,
            last,
            end,
        )
        return CountedGroups(self.context, self.findings, shared, codes, self._rows, grouped.count(), sums)

    @cached_property
    def uncounted_groups(self) -> CallGroups:
        known = self._signatures
        if known is not None:
            others = known.others
            return CallGroups(
                self.context,
                self.findings,
                others.columns,
                others.codes,
                others.rows,
                others.count,
                known.other_bytes,
                known.other_unsized,
            )
        uncounted = np.ones(self._calls.num_rows, np.bool_)
        uncounted[slice(None) if self._rows is None else self._rows] = False
        rows = np.flatnonzero(uncounted).astype(np.int32)
        names = [name for name in self._calls.schema.names if name not in _NOT_SHARED]
        shared = {name: self.all_calls(name)[rows] for name in names}
        codes, count = np.arange(len(rows), dtype=np.int32), np.ones(len(rows), np.int64)
        size = self.all_calls("bytes")[rows] if "bytes" in self._calls.schema.names else np.zeros(len(rows), np.int64)
        unsized = (size == NO_VALUE) & (self.all_calls("kind")[rows] <= Kind.WRITE)
        return CallGroups(
            self.context,
            self.findings,
            shared,
            codes,
            rows,
            count,
            np.where(size == NO_VALUE, 0, size),
            unsized.astype(np.int64),
        )

    @cached_property
    def _signatures(self) -> Signatures | None:
        """Groups of calls from a kernel; None if numpy must find them."""
        if self.context.workload.lives is not None:
            # Which file a name denotes depends on the time.
            return None
        starts = np.empty(0, np.int64) if self.findings is None else self._phase_starts
        calls, names = self._calls, self._calls.schema.names
        read = {name: raw(calls.column(at)) for at, name in enumerate(names) if name in COLUMNS}
        known = {name: column.values for name, column in read.items() if column.bits is None}
        if any(name not in known for name in read if name not in NULLABLE):
            return None
        self._all.update(known)
        return signatures(
            read,
            calls.num_rows,
            starts,
            self.context.workload.shift_ns[self.context.trace],
            most_layer=Layer.STDIO,
            nested=Flag.NESTED,
        )

    @cached_property
    def _rows(self) -> Numbers | None:
        """Index of each counted call among all calls of the batch; None if all are counted."""
        if self._signatures is not None:
            return self._signatures.counted.rows
        counted = (self.all_calls("layer") <= Layer.STDIO) & ((self.all_calls("flags") & Flag.NESTED) == 0)
        return None if counted.all() else np.flatnonzero(counted)

    # Values derived from the calls for several measures.

    @cached_property
    def sizes(self) -> Pairs:
        data = self.groups.kind <= Kind.WRITE
        rows = np.flatnonzero(data[self.groups.codes] & (self.bytes != NO_VALUE))
        return count_pairs(self.groups.codes[rows], self.bytes[rows])

    @cached_property
    def streams(self) -> tuple[Ints, Ints, Ints]:
        """Data operations on files by process, file and direction: keys (of `process_file` and direction) and the
        number of operations of each, shape (streams,) each; and the operations, key by key, in recorded order."""
        groups = self.groups
        data = np.flatnonzero((groups.kind <= Kind.WRITE) & (groups.file >= 0))
        streams = Factorized.of(pack((groups.process_file[data], groups.kind[data]), SIDES))
        count = streams.sum(groups.count[data])
        # Other calls come last. numpy uses radix sort for 16-bit integers.
        number = np.full(len(groups), len(count), np.uint16 if len(count) < 1 << 16 else np.int64)
        number[data] = streams.codes
        order = np.argsort(number[groups.codes], kind="stable")
        return streams.keys, count, order[: count.sum()]

    @cached_property
    def unplaced(self) -> Ints:
        """Data operations on files with unknown offset or size, in any order."""
        groups = self.groups
        data = (groups.kind <= Kind.WRITE) & (groups.file >= 0)
        if not (data & ((groups.unplaced > 0) | (groups.unsized > 0))).any():
            return np.empty(0, np.int64)
        return np.flatnonzero(data[groups.codes] & ((self.offset == NO_VALUE) | (self.bytes == NO_VALUE)))

    @cached_property
    def touched(self) -> Intervals:
        """Extents that all processes together read and wrote, by 2 * code of phase and file + direction (1: write)."""
        groups = self.groups
        data = (groups.kind <= Kind.WRITE) & (groups.file >= 0)
        sides = 2 * len(groups.phase_file.keys)
        side = np.where(data, 2 * groups.phase_file.codes + groups.kind, -1)
        out = self.call("extents", "offset", "bytes", side=side, sides=sides)
        if out is not None:
            return merge(*columns(out["extents"]))
        _, _, rows = self.streams
        if len(self.unplaced):
            rows = rows[(self.offset[rows] != NO_VALUE) & (self.bytes[rows] != NO_VALUE)]
        begin = self.offset[rows]
        return merge_runs(side[groups.codes[rows]], begin, begin + self.bytes[rows])
