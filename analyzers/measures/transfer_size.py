"""Exact sizes of data operations: counts of each size, per phase and file (tables VI, VII: "granularity").

Unit: bytes. `Operations` counts operations without a recorded size as unsized.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch
from vani.analyzers.calls.call_columns import phases_and_files
from vani.analyzers.tables.keys import pack
from vani.analyzers.tables.pair_counts import Pairs, PairsBuilder
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context, Workload


@dataclass(frozen=True, eq=False)
class SizeBins:
    """Data operations by the source's own bins, per phase and file; shape (n,) each."""

    names: tuple[str, ...]
    ends: NDArray[np.int64]
    """Inclusive upper end of each bin except the last one, in bytes."""
    phase: NDArray[np.int64]
    file: NDArray[np.int64]
    kind: NDArray[np.int64]
    """Read or write."""
    bin: NDArray[np.int64]
    """Index in `names`."""
    count: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SizeCounts:
    """Data operations of each size, per phase and listed file; shape (n,) each."""

    phase: NDArray[np.int32]
    file: NDArray[np.int32]
    """-1 for no file or an unlisted one."""
    kind: NDArray[np.int8]
    """Read or write."""
    size: NDArray[np.int64]
    count: NDArray[np.int64]
    bins: SizeBins | None = None
    """Bins of all operations, if the sizes above do not cover all of them."""


class TransferSize:
    """Counts by (key of listed phase and file and direction, size); direction is 0 for reads, 1 for writes."""

    name = "transfer_size"
    result = SizeCounts
    columns = frozenset({"rank", "kind", "file", "bytes", "start_ns", "via", "within"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _Collector:
        del context, findings
        return _Collector()

    def combine(self, parts: Sequence[Pairs]) -> Pairs:
        return Pairs.merged(parts)

    def aggregate(self, combined: Pairs, workload: Workload, findings: SurveyFindings) -> SizeCounts:
        phase, file, kind = phases_and_files(combined.first, workload, findings, 2)
        return SizeCounts(
            phase.astype(np.int32),
            file.astype(np.int32),
            kind.astype(np.int8),
            combined.second,
            combined.count,
        )


class _Collector:
    def __init__(self) -> None:
        self._sizes = PairsBuilder()

    def add(self, batch: Batch) -> None:
        if not len(batch):
            return
        groups, sizes = batch.groups, batch.sizes
        columns = (groups.listed_phase_file_key[sizes.first], groups.kind[sizes.first])
        self._sizes.add(pack(columns, (batch.phase_file_width, 2)), sizes.second, sizes.count)

    def result(self) -> Pairs:
        return self._sizes.pairs()
