"""Extents: which bytes of a file each process wrote and read. Dependencies by extents are derived from them.

Kept for files through which processes can depend on each other (`SurveyFindings.linked`), under their last names,
for calls of known offset and size. If there are few such calls, each is kept with its start time;
otherwise a process's writes and reads of a file are merged over the whole run. At most a million extents are
kept. Unit: bytes, nanoseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch
from vani.analyzers.calls.call_columns import phases_and_files
from vani.analyzers.tables.factorized import Factorized
from vani.analyzers.tables.int_table import NO_VALUE
from vani.analyzers.tables.intervals import Intervals, merge, merge_runs
from vani.analyzers.tables.keys import pack, unpack
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context, Workload
from vani.calls import Kind
from vani.kernels.library import call, columns

Ints = NDArray[np.int64]

_FEW_CALLS = 1 << 16
"""Maximum number of calls that are kept individually."""
_MOST_EXTENTS = 1 << 20
"""Maximum number of extents, 24 bytes each."""


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

    process: NDArray[np.int32]
    file: NDArray[np.int32]
    """Code of the last name."""
    kind: NDArray[np.int8]
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
        if sum(map(len, extents_of_parts)) <= _MOST_EXTENTS:
            return ExtentsResult(Intervals.joined(extents_of_parts))
        merged = Intervals()
        for part in extents_of_parts:
            # One at a time, because merging all at once would take several times their memory.
            merged = Intervals.joined([merged, part])
            if len(merged) > _MOST_EXTENTS:
                return ExtentsResult(given_up=True)
        return ExtentsResult(merged)

    def aggregate(self, combined: ExtentsResult, workload: Workload, findings: SurveyFindings) -> ProcessExtents:
        del findings
        extents = combined.extents
        process, file, kind = unpack(extents.group, (workload.processes, workload.files + 1, 2))
        return ProcessExtents(
            process.astype(np.int32),
            (file - 1).astype(np.int32),
            kind.astype(np.int8),
            extents.start,
            extents.end,
            combined.start_ns,
            combined.given_up,
        )


def _together(parts: Sequence[Intervals]) -> Intervals:
    if not parts:
        return Intervals()
    return Intervals(*(np.concatenate([getattr(p, n) for p in parts]) for n in ("group", "start", "end")))


class _Collector:
    def __init__(self, context: Context, findings: SurveyFindings) -> None:
        self._linked = findings.linked
        self._any = bool(findings.linked.any())
        self._workload, self._findings = context.workload, findings
        self._widths = (context.workload.processes, context.workload.files + 1, 2)
        self._final = context.workload.final_name

    def _key(self, process: Any, file: Ints, kind: NDArray[Any]) -> Ints:
        return pack((process, self._final[file] + 1, kind), self._widths)

    def _rows(self, batch: Batch, order: Ints | slice) -> Ints:
        """Calls whose extents count, in that order."""
        file, size = batch.file[order], batch.bytes[order]
        linked = (batch.kind[order] <= Kind.WRITE) & (file >= 0) & self._linked[np.maximum(file, 0)]
        placed = np.flatnonzero(linked & (batch.offset[order] != NO_VALUE) & (size > 0))
        return placed if isinstance(order, slice) else order[placed]


class _OneByOne(_Collector):
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


class _Merged(_Collector):
    def __init__(self, context: Context, findings: SurveyFindings) -> None:
        super().__init__(context, findings)
        self._parts: list[Intervals] = []
        self._unmerged = 0
        self._given_up = False

    def add(self, batch: Batch) -> None:
        if self._given_up or not len(batch):
            return
        process = batch.groups.process
        extents_of_batch = self._of_one(batch) if process.min() == process.max() else self._of_several(batch)
        if not len(extents_of_batch):
            return
        self._parts.append(extents_of_batch)
        self._unmerged += len(extents_of_batch)
        if self._unmerged > _MOST_EXTENTS // 4 or len(self._parts) > 32:
            self._shrink(int(process[batch.groups.codes[-1]]))

    def _of_one(self, batch: Batch) -> Intervals:
        """Extents from the footprint, joined per file because the footprint distinguishes phases."""
        touched = batch.touched
        _, file = phases_and_files(batch.groups.phase_file.keys, self._workload, self._findings)
        linked = (file >= 0) & self._linked[np.maximum(file, 0)]
        if not linked.all():
            touched = touched.where(linked[unpack(touched.group, (batch.phase_file_width, 2))[0]])

        def key(group: Ints) -> Ints:
            code, kind = unpack(group, (batch.phase_file_width, 2))
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
        keys = Factorized.of(self._key(groups.process[linked], file[linked], groups.kind[linked]))
        side = np.full(len(file), -1)
        side[linked] = keys.codes
        out = call(
            "extents",
            codes=batch.groups.codes,
            offset=batch.offset,
            bytes=batch.bytes,
            side=side,
            sides=len(keys.keys),
        )
        if out is not None:
            code, start, end = columns(out["extents"])
            return merge(keys.keys[code], start, end)
        rows = self._rows(batch, batch.streams[2])
        key = self._key(batch.process[rows], batch.file[rows], batch.kind[rows])
        start = batch.offset[rows]
        return merge_runs(key, start, start + batch.bytes[rows])

    def _shrink(self, process: int | None = None) -> None:
        joined = Intervals.joined(self._parts)
        # The last process's extents may still merge, and the result must not depend on where a
        # batch ends. Allow at most twice as many, to bound memory.
        whole = (
            len(joined) if process is None else int((unpack(joined.group, self._widths)[0] != process).sum())
        )
        self._given_up |= whole > _MOST_EXTENTS or len(joined) > 2 * _MOST_EXTENTS
        self._parts, self._unmerged = [] if self._given_up else [joined], 0

    def result(self) -> ExtentsResult:
        self._shrink()
        return ExtentsResult(_together(self._parts), given_up=self._given_up)
