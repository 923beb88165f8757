"""A batch of calls as they were recorded: those of libraries and nested ones, too."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.analyzers.tables.int_table import NO_VALUE
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context
from vani.calls import Flag, Layer
from vani.columns import raw, to_numpy
from vani.kernels.signatures import COLUMNS, NULLABLE, Groups, Signatures, signatures

__all__ = ["RecordedCalls"]

Ints = NDArray[np.int64]


class RecordedCalls:
    """All calls of a batch, and the groups that a kernel finds in them."""

    def __init__(self, context: Context, calls: pa.RecordBatch, findings: SurveyFindings | None = None) -> None:
        self.context = context
        self.findings = findings
        self._calls = calls
        self._read: dict[str, NDArray[Any]] = {}
        """Columns of all calls; `_taken`: of the counted ones, see `Batch`."""
        self._taken: dict[str, NDArray[Any]] = {}
        self._is_example = False

    @cached_property
    def _signatures(self) -> Signatures | None:
        """Groups of calls that share every attribute but place, size and time; None if numpy has to find them."""
        if self._is_example or self.context.workload.lives is not None:
            # What a name stands for depends on the moment.
            return None
        starts = np.empty(0, np.int64) if self.findings is None else self._phase_starts
        calls, names = self._calls, self._calls.schema.names
        columns = {name: raw(calls.column(at)) for at, name in enumerate(names) if name in COLUMNS}
        known = {name: column.values for name, column in columns.items() if column.bits is None}
        if any(name not in known for name in columns if name not in NULLABLE):
            return None
        self._read.update(known)
        return signatures(
            columns,
            calls.num_rows,
            starts,
            self.context.workload.shift_ns[self.context.trace],
            most_layer=Layer.STDIO,
            nested=Flag.NESTED,
        )

    @property
    def _findings(self) -> SurveyFindings:
        if self.findings is None:
            raise RuntimeError("phases are known in the second pass only")
        return self.findings

    def all_calls(self, name: str) -> NDArray[Any]:
        """A column of all calls of the batch, those of libraries too."""
        if name not in self._read:
            self._read[name] = _numbers(self._calls, name)
        return self._read[name]

    @property
    def others(self) -> Groups | None:
        """Groups of the calls that are not counted, those of libraries mostly; None where numpy makes none."""
        return None if self._signatures is None else self._signatures.others

    @cached_property
    def _flags_there(self) -> int:
        """Flags that any of all calls of the batch have; where numpy finds the groups, it may be any."""
        known = self._signatures
        if known is None:
            return -1
        counted, others = (
            np.bitwise_or.reduce(groups.columns["flags"]) for groups in (known.counted, known.others)
        )
        return int(counted | others)

    def flagged(self, flag: Flag) -> Ints:
        """Places, among all calls of the batch, of those with a flag."""
        if not self._flags_there & flag:
            return np.empty(0, np.int64)
        known = self._signatures
        if known is not None and not (known.counted.columns["flags"] & flag).any():
            # Mostly calls of libraries, which are few.
            codes, rows = known.others.codes, known.others.rows
            mine = ((known.others.columns["flags"] & flag) != 0)[codes]
            return np.flatnonzero(mine) if rows is None else rows[mine].astype(np.int64)
        return np.flatnonzero((self.all_calls("flags") & flag) != 0)

    def files_of(self, rows: Ints) -> Ints:
        """Files of some of all calls of the batch, those of libraries too, as `file`."""
        named: Ints = np.append(self.context.file_codes, -1)[self.all_calls("file")[rows]]
        lives = self.context.workload.lives
        return (
            named if lives is None else lives.of(named, self.starts_of(rows), self.all_calls("flags")[rows])
        )

    def starts_of(self, rows: Ints) -> Ints:
        """Starts of some of all calls of the batch, those of libraries too, as `start`."""
        start: Ints = self.all_calls("start_ns")[rows]
        return start + self.context.workload.shift_ns[self.context.trace]

    @property
    def _phase_starts(self) -> Ints:
        findings, app = self._findings, self.context.app
        return findings.phase_start[findings.first_phase[app] : findings.first_phase[app + 1]]


def _numbers(calls: pa.RecordBatch, name: str) -> NDArray[Any]:
    column = calls.column(name)
    return to_numpy(column, NO_VALUE if column.type == pa.int64() else -1)
