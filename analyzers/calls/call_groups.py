"""Calls of a batch grouped by everything except offset, size and time, so that a few rows represent many calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.call_columns import CallColumns
from vani.analyzers.int_table import Factorized
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context

_WIDE = 1 << 20
"""Codes above this are renumbered."""
_NARROW = 1 << 7
"""Columns with fewer distinct values are packed unchanged."""

Ints = NDArray[np.int64]


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
        columns: Mapping[str, NDArray[Any]],
        codes: NDArray[Any],
        rows: NDArray[Any] | None,
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

    def _column(self, name: str) -> NDArray[Any]:
        return self._columns[name]

    def places(self, groups: NDArray[np.bool_]) -> Ints:
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
        columns: Mapping[str, NDArray[Any]],
        codes: NDArray[Any],
        rows: NDArray[Any] | None,
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


def group_codes(*columns: NDArray[Any]) -> NDArray[Any]:
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
