"""Similar phases, merged: a run that writes 355 states has one row of 355, not 355 rows.

A phase is like the first one of a row if both are of one app, and

- bytes read and bytes written each differ by at most a third of the larger of the two phases;
- reads, writes, metadata operations and flushes each differ by at most a third of the calls of the larger;
- at most twice as many processes take part in one as in the other.

Their position does not matter: alternating checkpoints and plots are two rows. Nor do times: calls of the same
bytes are slow at one time and fast at another, and the rows of two runs of a program shall be the same. How far apart
the phases of a row begin is the median of the distances between them, if three in four of these differ from it by a
quarter at most; else they come at no steady distance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.measurements import Measurements, Phases
from vani.analyzers.tables.int_table import group

__all__ = ["PhaseRows", "each_alone", "period_s", "rows_of"]

_THIRD = 3
_TWICE = 2
_STEADY = 0.25
_MOST = 0.75

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PhaseRows:
    """Phases by row; rows in order of their first phase, app after app."""

    row: Ints
    """Shape (phases,): -1 for a phase without a call."""
    start: Ints
    """Shape (phases,): start of each phase's first call in ns."""
    end: Ints
    """Shape (phases,): end of its last call."""
    processes: Ints
    """Shape (phases,)."""

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
    """Seconds from the start of one phase to that of the next; None for one phase, or without a steady distance."""
    apart = np.diff(start)
    if not len(apart):
        return None
    middle = float(np.median(apart))
    steady = np.abs(apart - middle) <= _STEADY * middle
    return middle / 1e9 if steady.mean() >= _MOST else None
