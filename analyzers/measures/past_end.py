"""Bytes that reads requested past the end of their file (contract, `past_end`), which cannot have been moved.

The end of a file is known from when the run created it, or if job.yaml has its size, while the offset and size
of every write to it are known. It is the furthest end that writes and truncations of any process had reached when
the read ended (to a 4,096th of the run, coarser if thousands of files are written throughout it, and never
too early). So the figure is a lower bound, except for what no trace
shows: writes that the tracer misses (aio_write, pwritev, stores to mapped memory), and the disagreement of the
ranks' clocks. Unit: bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch
from vani.analyzers.calls.call_columns import phases_and_files
from vani.analyzers.tables.factorized import Factorized
from vani.analyzers.tables.int_table import NO_VALUE, IntTable, IntTableBuilder
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context, Workload
from vani.calls import Kind
from vani.kernels.library import call

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class BeyondEnds:
    """Per phase and listed file; shape (n,) each."""

    phase: Ints
    file: Ints
    """-1 for no file or an unlisted one."""
    beyond: Ints
    """Bytes that reads requested past the end."""
    reads: Ints
    """Number of reads on files with a known end."""


class PastEnd:
    """Columns per listed phase and file: bytes past the end, and reads on files with a known end."""

    name = "past_end"
    result = BeyondEnds
    columns = frozenset({"rank", "kind", "file", "offset", "bytes", "start_ns", "duration_ns"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _Collector:
        del context
        if findings is None:
            raise ValueError("ends of files are known in the second pass")
        return _Collector(findings)

    def combine(self, parts: Sequence[IntTable]) -> IntTable:
        return IntTable.merged(parts)

    def aggregate(self, combined: IntTable, workload: Workload, findings: SurveyFindings) -> BeyondEnds:
        phase, file = phases_and_files(combined.keys, workload, findings)
        return BeyondEnds(phase, file, combined["beyond"], combined["reads"])


class _Collector:
    def __init__(self, findings: SurveyFindings) -> None:
        self._ends = findings.ends
        self._reads = IntTableBuilder()

    def add(self, batch: Batch) -> None:
        if not len(self._ends.known):
            return
        groups = batch.groups
        named = np.maximum(groups.file, 0)
        reads_known = (groups.kind == Kind.READ) & (groups.file >= 0) & self._ends.known[named]
        if not reads_known.any():
            return
        out = call(
            "past_end",
            codes=batch.groups.codes,
            offset=batch.offset,
            bytes=batch.bytes,
            start=batch.start,
            duration=batch.duration,
            file=np.where(reads_known, named, -1),
            **self._ends.for_kernel(),
        )
        beyond, reads = self._by_call(batch, reads_known) if out is None else (out["beyond"], out["reads"])
        some = reads > 0
        self._reads.add(groups.listed_phase_file_key[some], {"beyond": beyond[some], "reads": reads[some]})

    def _by_call(self, batch: Batch, reading: NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """Bytes past the end and number of reads, by group; `reading`: groups that read files with a known end."""
        codes, file = batch.groups.codes, batch.groups.file
        rows = np.flatnonzero(reading[codes] & (batch.bytes != NO_VALUE) & (batch.offset != NO_VALUE))
        rows = rows[np.flatnonzero(batch.end[rows] >= self._ends.since[file][codes[rows]])]
        begin, size, grouped = batch.offset[rows], batch.bytes[rows], Factorized(np.arange(len(file)), codes[rows])
        end = self._ends.at(file[codes[rows]], batch.end[rows])
        beyond = begin + size - np.maximum(begin, end)
        return grouped.sum(np.clip(beyond, 0, size)), grouped.count()

    def result(self) -> IntTable:
        return self._reads.table()
