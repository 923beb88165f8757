"""Times of calls, for busy time, which is computed over all processes together in time order.

The measuring pass records times in memory, or, if there are many calls, in one temporary file per batch. The times
of a store's files are instead read from these again, row group by row group.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vani.analyzers.batch import Batch
from vani.analyzers.int_table import KINDS, pack
from vani.analyzers.workload import Context, SurveyFindings
from vani.calls import FileClass, Flag, Layer
from vani.columns import Int32s, Ints, Numbers
from vani.errors import NoRoomError, os_errors_as
from vani.kernels import call
from vani.store.read import RowGroup, calls_of

_COLUMNS = ("rank", "layer", "kind", "flags", "file", "start_ns", "duration_ns")
_ALWAYS = 1 << 62
"""Limit in ns: no call is later, or further before the start."""



@dataclass
class CallTimes:
    """Times of calls; shape (n,) each."""

    code: Int32s | Ints
    """Key of phase, number of the listed file + 1 (0 for others), and kind, see `widths_of`."""
    start: Ints
    """ns."""
    end: Ints

    def __len__(self) -> int:
        return len(self.code)

    @staticmethod
    def joined(parts: Sequence[CallTimes]) -> CallTimes:
        """Concatenated calls of several parts, unordered."""
        parts = [part for part in parts if len(part)]
        if not parts:
            return CallTimes(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64))
        if len(parts) == 1:
            return parts[0]
        return CallTimes(*(np.concatenate([getattr(p, n) for p in parts]) for n in ("code", "start", "end")))

    def between_rows(self, begin: int, stop: int) -> CallTimes:
        """Some consecutive rows."""
        return CallTimes(self.code[begin:stop], self.start[begin:stop], self.end[begin:stop])

    def within(self, begin: int, end: int) -> CallTimes:
        """The calls within a time span, cut at its ends."""
        if not len(self) or (self.start[0] >= begin and int(self.end.max()) <= end):
            return self
        start, stop = np.maximum(self.start, begin), np.minimum(self.end, end)
        inside = start < stop
        return CallTimes(self.code[inside], start[inside], stop[inside])

    def take_until(self, moment: int) -> CallTimes:
        """Remove and return the calls that begin before a time; calls are ordered by start."""
        at = int(np.searchsorted(self.start, moment))
        early = self.between_rows(0, at)
        self.code, self.start, self.end = self.code[at:], self.start[at:], self.end[at:]
        return early

    def cut_at(self, moment: int) -> tuple[CallTimes, CallTimes]:
        """Split calls that begin before a time into the parts before and after it."""
        over = self.end > moment
        after = CallTimes(self.code[over], np.full(int(over.sum()), moment), self.end[over])
        return CallTimes(self.code, self.start, np.minimum(self.end, moment)), after


def widths_of(findings: SurveyFindings, listed: Ints) -> tuple[int, int, int]:
    """Widths of keys of phase, number of the listed file + 1, and kind."""
    return findings.phases + 1, int(listed.max(initial=-1)) + 2, KINDS


def times_of(
    batch: Batch, findings: SurveyFindings, listed: Ints, *, begin: int, end: int, ordered: bool = True
) -> CallTimes:
    """The calls of a batch within a time span, cut at its ends; ordered by start if `ordered`.

    Parameters
    ----------
    listed
        Shape (files,): number of a listed file, -1 for others.
    """
    context, widths = batch.context, widths_of(findings, listed)
    number = np.append(listed, -1) + 1
    if context.workload.lives is None:
        file = np.append(context.file_codes, len(listed))
        app = context.app
        out = call(
            "intervals",
            **{name: batch.all_calls(name) for name in _COLUMNS if name != "rank"},
            number=number[file],
            included=np.append(context.workload.file_class == FileClass.DATASET, False)[file],
            files=len(file) - 1,
            width=widths[1],
            phase_starts=findings.phase_start[findings.first_phase[app] : findings.first_phase[app + 1]],
            first_phase=findings.first_phase[app],
            excluded=findings.phases,
            most_layer=Layer.STDIO,
            nested=Flag.NESTED,
            shift=context.workload.shift_ns[context.trace],
            low=begin,
            high=end,
        )
        if out is not None:
            columns = out["code"], out["start"], out["end"]
            return _in_order(*columns) if ordered and out["falls"][0] else CallTimes(*columns)
    start, stop = np.maximum(batch.start, begin), np.minimum(batch.end, end)
    inside = start < stop
    key = pack((batch.phase[inside], number[batch.file[inside]], batch.kind[inside]), widths)
    return _in_order(key, start[inside], stop[inside])


def _in_order(code: Int32s | Ints, start: Ints, end: Ints) -> CallTimes:
    if (start[1:] >= start[:-1]).all():
        return CallTimes(code, start, end)
    order = np.argsort(start, kind="stable")
    return CallTimes(code[order], start[order], end[order])


@dataclass(frozen=True, eq=False)
class StoredTimes:
    """A row group in a store's file; times are on the workload's clock in ns."""

    trace: int
    shift_ns: int
    """Shift from the trace's clock to the workload's, in ns."""
    group: RowGroup

    @property
    def rows(self) -> int:
        return self.group.rows

    @property
    def first(self) -> int:
        """Earliest start."""
        return self.group.first_start + self.shift_ns

    @property
    def last(self) -> int:
        """Latest start."""
        return self.group.last_start + self.shift_ns

    @property
    def reach(self) -> int:
        """Upper bound of the calls' ends."""
        return self.last + self.group.longest


@dataclass(frozen=True, eq=False)
class NotedTimes:
    """Rows of a table of times: `code`, `start` and `duration` of calls, ordered by start."""

    rows: int
    first: int
    last: int
    reach: int
    table: Numbers | Path
    """The table in memory, or the file that contains it."""
    row: int
    """Index of the first row."""

    def within(self, begin: int, end: int) -> CallTimes:
        """The calls within a time span, cut at its ends."""
        table = np.load(self.table, mmap_mode="r") if isinstance(self.table, Path) else self.table
        rows = table[self.row : self.row + self.rows]
        code, start = rows["code"], rows["start"].astype(np.int64)
        code = code.astype(np.int32 if code.dtype.itemsize < 4 else np.int64)
        return CallTimes(code, start, start + rows["duration"].astype(np.int64)).within(begin, end)


TimedGroup = StoredTimes | NotedTimes
"""Calls of one or more processes."""


def times_in(
    group: TimedGroup, contexts: Sequence[Context], findings: SurveyFindings, listed: Ints, *, begin: int, end: int,
    ordered: bool,
) -> Iterator[CallTimes]:  # fmt: skip
    """Calls of a group within a time span, cut at its ends; ordered by start if `ordered`."""
    if isinstance(group, NotedTimes):
        yield group.within(begin, end)
        return
    for calls in calls_of([group.group], _COLUMNS):
        batch = Batch(contexts[group.trace], calls, findings)
        yield times_of(batch, findings, listed, begin=begin, end=end, ordered=ordered)


class NoteTimes:
    """Records the times of calls, as an additional measure.

    Parameters
    ----------
    listed
        Shape (files,): number of a listed file, -1 for others.
    rows
        Maximum number of calls in a group.
    folder
        Folder for one file of times per batch; None keeps them in memory.
    """

    columns = frozenset(_COLUMNS)

    def __init__(self, listed: Ints, rows: int, folder: Path | None) -> None:
        self._listed, self._rows, self._folder = listed, rows, folder

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _Collector:
        assert findings is not None
        return _Collector(self._listed, findings, self._rows, self._folder)

    def combine(self, parts: Sequence[list[NotedTimes]]) -> list[NotedTimes]:
        return [group for part in parts for group in part]


class _Collector:
    def __init__(self, listed: Ints, findings: SurveyFindings, rows: int, folder: Path | None) -> None:
        self._listed, self._findings, self._rows, self._folder = listed, findings, rows, folder
        self._noted: list[NotedTimes] = []

    def add(self, batch: Batch) -> None:
        calls = times_of(batch, self._findings, self._listed, begin=-_ALWAYS, end=_ALWAYS)
        if not len(calls):
            return
        table = _table(calls)
        place = table if self._folder is None else _saved(table, self._folder)
        for row in range(0, len(calls), self._rows):
            group = calls.between_rows(row, row + self._rows)
            first, last, reach = int(group.start[0]), int(group.start[-1]), int(group.end.max())
            self._noted.append(NotedTimes(len(group), first, last, reach, place, row))

    def result(self) -> list[NotedTimes]:
        return self._noted


def _table(calls: CallTimes) -> Numbers:
    """The calls as a table with narrow types: about 13 bytes each."""
    duration = calls.end - calls.start
    code_type, duration_type = (np.min_scalar_type(int(column.max())) for column in (calls.code, duration))
    table = np.empty(len(calls), [("code", code_type), ("start", np.int64), ("duration", duration_type)])
    table["code"], table["start"], table["duration"] = calls.code, calls.start, duration
    return table


def _saved(table: Numbers, folder: Path) -> Path:
    """Write the table to a new file in the folder.

    Raises
    ------
    NoRoomError
        The folder has no more room.
    """
    with needs_room(folder):
        descriptor, name = tempfile.mkstemp(suffix=".npy", dir=folder)
        with os.fdopen(descriptor, "wb") as file:
            np.save(file, table)
    return Path(name)


def needs_room(folder: Path) -> AbstractContextManager[None]:
    """Raise `NoRoomError` if the block cannot write temporary data into the folder."""
    todo = "free some space, or name another folder with VANI_CACHE"
    return os_errors_as(NoRoomError, "cannot write temporary data here", where=folder, todo=todo)
