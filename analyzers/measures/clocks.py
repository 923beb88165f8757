"""Disagreement of the ranks' clocks, as proven by calls that wait for every rank.

No rank leaves an MPI_Barrier on MPI_COMM_WORLD before the last one has entered it. If it does so on its own clock, the
clocks disagree by at least the difference. The first 256 such calls of every rank are compared. Unit: nanoseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vani.analyzers.calls.batch import Batch
from vani.analyzers.tables.int_table import How, IntTable, group
from vani.analyzers.tables.keys import beside, pack, unpack
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context, Workload
from vani.calls import Flag

_FIRST = 256
_CALLS = beside(_FIRST)
"""Widths of keys of trace and call."""
_HOW: dict[str, How] = {"latest_start": "max", "earliest_end": "min"}


@dataclass(frozen=True, eq=False)
class ClockSkew:
    """Lower bound of the disagreement of the ranks' clocks."""

    traces: Sequence[int | None]
    """Bound for each trace in ns; None if no call shows it."""

    @property
    def most(self) -> int:
        return max((skew or 0 for skew in self.traces), default=0)


class Clocks:
    """Columns by trace and number of the call: latest_start, earliest_end, ranks."""

    name = "clocks"
    result = ClockSkew
    columns = frozenset({"rank", "start_ns", "duration_ns"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _Collector:
        del findings
        return _Collector(context.trace)

    def combine(self, parts: Sequence[IntTable]) -> IntTable:
        return IntTable.merged(parts, _HOW)

    def aggregate(self, combined: IntTable, workload: Workload, findings: SurveyFindings) -> ClockSkew:
        del findings
        trace, _ = unpack(combined.keys, (len(workload.process_base), _FIRST))
        ranks = np.diff([*workload.process_base, workload.processes]).tolist()
        return ClockSkew([_skew_ns(combined.where(trace == number), own) for number, own in enumerate(ranks)])


class _Collector:
    def __init__(self, trace: int) -> None:
        self._trace = trace
        self._parts: list[IntTable] = []
        self._rank, self._seen = -1, 0

    def add(self, batch: Batch) -> None:
        rows = batch.flagged(Flag.WORLD)
        if not len(rows):
            return
        rank = batch.all_calls("rank")[rows]
        start = batch.all_calls("start_ns")[rows]
        end = start + batch.all_calls("duration_ns")[rows]
        opens = np.append(True, rank[1:] != rank[:-1])
        first = np.maximum.accumulate(np.where(opens, np.arange(len(rows)), 0))
        number = np.arange(len(rows)) - first
        number[rank == self._rank] += self._seen
        self._seen = int(number[-1]) + 1
        self._rank = int(rank[-1])
        early = number < _FIRST
        if early.any():
            self._parts.append(
                group(
                    pack((self._trace, number[early]), _CALLS),
                    {
                        "latest_start": start[early],
                        "earliest_end": end[early],
                        "ranks": np.ones(int(early.sum()), np.int64),
                    },
                    _HOW,
                )
            )

    def result(self) -> IntTable:
        return IntTable.merged(self._parts, _HOW)


def _skew_ns(barriers: IntTable, ranks: int) -> int | None:
    """Lower bound of the disagreement of a trace's clocks; None if no call shows it."""
    whole = barriers["ranks"] == ranks
    if not whole.any() or ranks < 2:
        return None
    return max(0, int((barriers["latest_start"] - barriers["earliest_end"])[whole].max()))
