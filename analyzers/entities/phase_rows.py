"""Similar phases, merged: a run that writes 355 states gets one row for 355 phases, not 355 rows.

A phase is similar to the first phase of a row if both belong to one app, and

- bytes read and bytes written each differ by at most a third of the larger of the two phases' totals;
- reads, writes, metadata operations and flushes each differ by at most a third of the larger number of calls;
- one has at most twice as many processes as the other.

Their position does not matter: alternating checkpoints and plots become two rows. Times do not matter either: calls
with the same bytes vary in speed, and the rows of two runs of a program should be the same. The period of
a row is the median distance between its phases' starts, if three in four distances differ from it by
at most a quarter; otherwise the row has no period.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.measurements import Measurements, Phases
from vani.analyzers.tables.int_table import group

_THIRD = 3
_TWICE = 2
_STEADY = 0.25
_MOST = 0.75

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PhaseRows:
    """Row of each phase; rows are ordered by their first phase, app by app."""

    row: Ints
    """Shape (phases,): -1 for a phase without calls."""
    start: Ints
    """Shape (phases,): start of each phase's first call in ns."""
    end: Ints
    """Shape (phases,): end of its last call in ns."""
    processes: Ints
    """Shape (phases,): processes that take part."""

    @property
    def rows(self) -> int:
        return int(self.row.max(initial=-1)) + 1


def each_alone(phases: Phases) -> PhaseRows:
    """One row per phase."""
    count = len(phases)
    return PhaseRows(np.arange(count), phases.start_ns, phases.start_ns, np.zeros(count, np.int64))


_COLUMNS = ("bytes_read", "bytes_written", "first", "last", "reads", "writes", "metadata", "syncs")


def rows_of(measured: Measurements) -> PhaseRows:
    """Merge similar phases."""
    operations, phases = measured.operations, measured.phases
    columns = {name: getattr(operations, name) for name in _COLUMNS}
    by_phase = group(operations.phase, columns, {"first": "min", "last": "max"})
    count = len(phases)
    read, written, start, end, *kinds = (by_phase.at(np.arange(count), name) for name in _COLUMNS)
    processes = measured.processes.in_phase
    calls = np.sum(kinds, axis=0)
    row = np.full(count, -1, np.int64)
    firsts: list[int] = []
    for phase in np.flatnonzero(calls > 0).tolist():
        rows = np.array(firsts, np.int64)
        moved = np.maximum((read + written)[rows], read[phase] + written[phase])
        called = np.maximum(calls[rows], calls[phase])
        alike = (
            (phases.app[rows] == phases.app[phase])
            & (_THIRD * np.abs(read[rows] - read[phase]) <= moved)
            & (_THIRD * np.abs(written[rows] - written[phase]) <= moved)
            & np.all([_THIRD * np.abs(kind[rows] - kind[phase]) <= called for kind in kinds], axis=0)
            & (
                np.maximum(processes[rows], processes[phase])
                <= _TWICE * np.minimum(processes[rows], processes[phase])
            )
        )
        if alike.any():
            row[phase] = int(np.argmax(alike))
        else:
            row[phase] = len(firsts)
            firsts.append(phase)
    return PhaseRows(row, start, end, processes)


def period_s(start: Ints) -> float | None:
    """Seconds from one phase's start to the next one's; None for a single phase, or without a steady period."""
    apart = np.diff(start)
    if not len(apart):
        return None
    middle = float(np.median(apart))
    steady = np.abs(apart - middle) <= _STEADY * middle
    return middle / 1e9 if steady.mean() >= _MOST else None
