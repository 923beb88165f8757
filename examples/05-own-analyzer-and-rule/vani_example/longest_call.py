"""The longest file-system call of the workload. Unit: nanoseconds; 0 without any call."""

from __future__ import annotations

from collections.abc import Sequence

from vani.analyzers.batch import Batch
from vani.analyzers.workload import Context, SurveyFindings, Workload


class LongestCall:
    """One number per partition, combined by `max`; the profile has it as `extensions.longest_call`."""

    name = "longest_call"
    columns = frozenset({"duration_ns"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _Collector:
        del context, findings
        return _Collector()

    def combine(self, parts: Sequence[int]) -> int:
        return max(parts, default=0)

    def aggregate(self, combined: int, workload: Workload, findings: SurveyFindings) -> dict[str, int]:
        del workload, findings
        return {"duration_ns": combined}


class _Collector:
    def __init__(self) -> None:
        self._longest = 0

    def add(self, batch: Batch) -> None:
        if len(batch):
            self._longest = max(self._longest, int(batch.duration.max()))

    def result(self) -> int:
        return self._longest
