"""Some thousand calls at a time, with when they took place: row groups of a store's files, or what a pass noted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch
from vani.analyzers.passes.calls_in_time import COLUMNS, CallsInTime, calls_in_time
from vani.analyzers.passes.scratch_file import Place, ScratchFile
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context
from vani.store.read import RowGroup, calls_of

__all__ = ["NoteTimes", "NotedGroup", "StoredGroup", "TimedGroup", "calls_between"]

_GROUPS_AT_ONCE = 4
_ALWAYS = 1 << 62
"""ns; no call is later, nor that much before the beginning."""

Ints = NDArray[np.int64]


class TimedGroup(Protocol):
    """Calls of one process or some; times are those of the workload's clock, ns."""

    @property
    def rows(self) -> int: ...

    @property
    def first(self) -> int:
        """Earliest start."""

    @property
    def last(self) -> int:
        """Latest start."""

    @property
    def reach(self) -> int:
        """No call ends later."""


@dataclass(frozen=True, eq=False)
class StoredGroup:
    """A row group of a file of a store."""

    trace: int
    shift_ns: int
    """From the clock of the trace to that of the workload."""
    group: RowGroup

    @property
    def rows(self) -> int:
        return self.group.rows

    @property
    def first(self) -> int:
        return self.group.first_start + self.shift_ns

    @property
    def last(self) -> int:
        return self.group.last_start + self.shift_ns

    @property
    def reach(self) -> int:
        return self.last + self.group.longest


@dataclass(frozen=True, eq=False)
class NotedGroup:
    """`CallsInTime`, packed: codes, from one start to the next, and durations, each in a type that holds them all."""

    rows: int
    first: int
    last: int
    reach: int
    types: tuple[np.dtype[Any], np.dtype[Any], np.dtype[Any]]
    packed: bytes | Place

    @staticmethod
    def of(calls: CallsInTime, file: ScratchFile | None) -> NotedGroup:
        """Pack calls, which are in order of their starts; into the file if there is one."""
        step = np.diff(calls.start, prepend=calls.start[:1])
        columns = [_narrow(one) for one in (calls.code, step, calls.end - calls.start)]
        parts = [one.data.cast("B") for one in columns]
        code, steps, durations = (one.dtype for one in columns)
        return NotedGroup(
            len(calls),
            int(calls.start[0]),
            int(calls.start[-1]),
            int(calls.end.max()),
            (code, steps, durations),
            b"".join(parts) if file is None else file.append(parts),
        )

    def calls(self) -> CallsInTime:
        """The calls, unpacked."""
        packed = self.packed.read() if isinstance(self.packed, Place) else self.packed
        found, at = [], 0
        for dtype in self.types:
            found.append(np.frombuffer(packed, dtype, self.rows, at))
            at += self.rows * dtype.itemsize
        code, step, duration = found
        start = np.cumsum(step, dtype=np.int64) + self.first
        fits = np.iinfo(code.dtype).max <= np.iinfo(np.int32).max
        return CallsInTime(code.astype(np.int32) if fits else code.astype(np.int64), start, start + duration)


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    """The same numbers, none of them below 0, in as few bytes as hold them all."""
    most = int(values.max())
    for dtype in (np.uint8, np.uint16, np.int32, np.uint32):
        if most <= np.iinfo(dtype).max:
            return values.astype(dtype)
    return np.ascontiguousarray(values, np.int64)


class NoteTimes:
    """Collects `NotedGroup`s in a pass over calls.

    Parameters
    ----------
    listed
        Shape (files,): number of a listed file, -1 for others.
    file
        Where they are put; None: they stay in memory.
    rows
        Calls of a group, at most.
    """

    columns = frozenset(COLUMNS)

    def __init__(self, listed: Ints, file: ScratchFile | None, rows: int) -> None:
        self._listed, self._file, self._rows = listed, file, rows

    def begin(self, context: Context, findings: SurveyFindings | None) -> _Noting:
        del context
        assert findings is not None
        return _Noting(self._listed, findings, self._file, self._rows)

    def combine(self, parts: Sequence[list[NotedGroup]]) -> list[NotedGroup]:
        return [one for part in parts for one in part]


class _Noting:
    def __init__(self, listed: Ints, findings: SurveyFindings, file: ScratchFile | None, rows: int) -> None:
        self._listed, self._findings, self._file, self._rows = listed, findings, file, rows
        self._found: list[NotedGroup] = []

    def add(self, batch: Batch) -> None:
        calls = calls_in_time(batch, self._findings, self._listed, begin=-_ALWAYS, end=_ALWAYS)
        for at in range(0, len(calls), self._rows):
            self._found.append(NotedGroup.of(calls.between_rows(at, at + self._rows), self._file))

    def result(self) -> list[NotedGroup]:
        return self._found


def calls_between(
    groups: Sequence[TimedGroup],
    contexts: Sequence[Context],
    findings: SurveyFindings,
    listed: Ints,
    *,
    begin: int,
    end: int,
    ordered: bool,
) -> Iterator[CallsInTime]:
    """The calls of groups within a stretch of time, cut at its ends; in order of their starts if `ordered`.

    Row groups that follow each other in a file are read together.
    """
    at = 0
    while at < len(groups):
        one = groups[at]
        at += 1
        if isinstance(one, NotedGroup):
            yield one.calls().within(begin, end)
            continue
        assert isinstance(one, StoredGroup)
        together = [one.group]
        for other in groups[at : at + _GROUPS_AT_ONCE - 1]:
            if not isinstance(other, StoredGroup) or other.group.file != one.group.file:
                break
            together.append(other.group)
        at += len(together) - 1
        for calls in calls_of(together, COLUMNS):
            batch = Batch(contexts[one.trace], calls, findings)
            yield calls_in_time(batch, findings, listed, begin=begin, end=end, ordered=ordered)
