"""Footprint: distinct bytes of files that were touched (contract: union of the extents over all processes).

1,280 processes that read one 4 KiB file have a footprint of 4 KiB. Appended data whose offset no
single process knows is new by definition and is added. Unit: bytes. More than a million separate extents exceed
the memory reserved for them, and the footprint is then unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch
from vani.analyzers.calls.call_columns import phases_and_files
from vani.analyzers.tables.factorized import Factorized
from vani.analyzers.tables.int_table import NO_VALUE, IntTable
from vani.analyzers.tables.intervals import Intervals
from vani.analyzers.tables.keys import pack, unpack
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context, Workload
from vani.calls import Flag, Kind

_MOST_EXTENTS = 1_000_000

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FootprintResult:
    """`extents` by phase, file and direction (0 read, 1 write); `others` by phase and file: appended bytes, and calls
    of unknown offset.

    `given_up` is set if there were too many extents to keep.
    """

    extents: Intervals
    others: IntTable
    given_up: bool = False


@dataclass(frozen=True, eq=False)
class Touched:
    """Extents that all processes together read and wrote, excluding bytes past the end of a file.

    A row has one or more extents of a phase, file and kind, which are ordered and disjoint. Several
    rows may have the same phase, file and kind.
    """

    phase: NDArray[np.int32]
    """Shape (rows,), like the next four."""
    file: NDArray[np.int32]
    kind: NDArray[np.int8]
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
    def each_alone(
        phase: NDArray[Any], file: NDArray[Any], kind: NDArray[Any], start: Ints, end: Ints
    ) -> Touched:
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

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _Collector:
        del context, findings
        return _Collector()

    def combine(self, parts: Sequence[FootprintResult]) -> FootprintResult:
        extents, given_up = Intervals(), any(p.given_up for p in parts)
        # In sequence, because merging all at once would take several times their memory. Long parts come last.
        for part in sorted(parts, key=lambda part: len(part.extents)):
            extents = Intervals() if given_up else Intervals.joined([extents, part.extents])
            given_up = given_up or len(extents) > _MOST_EXTENTS
        return _capped(FootprintResult(extents, IntTable.merged([p.others for p in parts]), given_up))

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


def _capped(result: FootprintResult) -> FootprintResult:
    if result.given_up or len(result.extents) > _MOST_EXTENTS:
        return FootprintResult(Intervals(), result.others, given_up=True)
    return result


class _Collector:
    def __init__(self) -> None:
        self._extents: list[Intervals] = []
        self._others: list[IntTable] = []
        self._unmerged = 0
        self._given_up = False

    def add(self, batch: Batch) -> None:
        blind = batch.unplaced
        if len(blind):
            phase_files = batch.groups.phase_file
            dense = Factorized.of(phase_files.codes[batch.groups.codes[blind]])
            appended = ((batch.flags[blind] & Flag.APPEND) != 0) & (batch.bytes[blind] != NO_VALUE)
            self._others.append(
                IntTable(
                    phase_files.keys[dense.keys],
                    {
                        "appended": dense.sum(np.maximum(batch.bytes[blind], 0), appended),
                        "unplaced": dense.count(~appended),
                    },
                )
            )
        if self._given_up:
            return
        touched = batch.touched
        if not len(touched):
            return

        def key(group: Ints) -> Ints:
            code, side = unpack(group, (batch.phase_file_width, 2))
            return pack((batch.groups.phase_file.keys[code], side), (batch.phase_file_width, 2))

        self._extents.append(touched.under(key))
        self._unmerged += len(touched)
        # The first part is already merged, and is merged again once there are many others.
        if self._unmerged - len(self._extents[0]) > _MOST_EXTENTS // 4 or len(self._extents) > 32:
            self._extents = [Intervals.joined(self._extents)]
            self._unmerged = len(self._extents[0])
            if self._unmerged > _MOST_EXTENTS:
                self._given_up, self._extents = True, []

    def result(self) -> FootprintResult:
        return _capped(
            FootprintResult(Intervals.joined(self._extents), IntTable.merged(self._others), self._given_up)
        )
