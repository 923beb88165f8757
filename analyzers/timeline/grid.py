"""The grid of a heat map: time bins, rows of processes, path patterns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.entities.transfer_sizes import BINS
from vani.analyzers.tables.keys import KINDS
from vani.analyzers.workload.workload import Workload
from vani.calls import Layer
from vani.schema.timeline import HeatRow

Ints = NDArray[np.int64]

MOST_ROWS = 512
MOST_BINS = 150
LIBRARIES = (Layer.MPIIO, Layer.HDF5, Layer.PNETCDF, Layer.NETCDF)
OF_LAYER = (max(LIBRARIES) + 1, KINDS)
"""Widths of keys of layer and kind."""
ALL_CALLS = OF_LAYER[0] * OF_LAYER[1]
"""All counted calls, in addition to keys of layer and kind."""
CODES = ALL_CALLS + 1
SIZE_CLASSES = (3, len(BINS))
"""Widths of keys of direction (0 read, 1 write, 2 unknown size) and size class."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Time bins, rows of processes, and file patterns."""

    bins: int
    bin_ns: int
    row_of_process: Ints
    pattern_of_file: Ints
    """Shape (files,): number of the pattern of each file's path."""
    patterns: int
    processes: int

    @property
    def cells(self) -> tuple[int, int]:
        """Widths of keys of row and bin."""
        return int(self.row_of_process.max(initial=0)) + 1, self.bins

    @property
    def uses(self) -> tuple[int, int]:
        """Widths of keys of process and pattern."""
        return self.processes, self.patterns


def rows_of(workload: Workload, ranks: Sequence[int]) -> list[HeatRow]:
    """One row per process, or per block of neighbouring processes if there are more than `MOST_ROWS`."""
    apps = [workload.apps[a] for a in workload.app_of_trace]
    if len(ranks) > MOST_ROWS:
        step = -(-workload.processes // MOST_ROWS)
        rows = []
        for first in range(0, workload.processes, step):
            last = min(first + step, workload.processes)
            trace = int(np.searchsorted(workload.process_base, first, side="right")) - 1
            base = workload.process_base[trace]
            is_single = last <= base + ranks[trace]
            rows.append(
                HeatRow(
                    app=apps[trace],
                    trace=trace,
                    first_process=first,
                    processes=last - first,
                    ranks=(first - base, last - base - 1) if is_single else None,
                )
            )
        return rows
    step = 1
    while sum(-(-n // step) for n in ranks) > MOST_ROWS:
        step += 1
    return [
        HeatRow(
            app=apps[trace],
            trace=trace,
            first_process=workload.process_base[trace] + first,
            processes=min(step, n - first),
            ranks=(first, min(first + step, n) - 1),
        )
        for trace, n in enumerate(ranks)
        for first in range(0, n, step)
    ]


def patterns_of(paths: Sequence[str]) -> tuple[list[str], Ints]:
    """Distinct paths with `#` instead of numbers, and the index of each file's pattern."""
    number: dict[str, int] = {}
    codes = [number.setdefault(re.sub(r"\d+", "#", path), len(number)) for path in paths]
    return list(number), np.array(codes, np.int64)


def common_pattern(paths: Sequence[str]) -> str:
    """One pattern for paths that differ only in numbers, with `#` for those that differ."""
    if len(paths) == 1:
        return paths[0]
    texts = re.split(r"\d+", paths[0])
    columns = zip(*(re.findall(r"\d+", path) for path in paths), strict=True)
    numbers = [column[0] if len(set(column)) == 1 else "#" for column in columns]
    return "".join(text + n for text, n in zip(texts, [*numbers, ""], strict=True))


def bin_ns(span_ns: int) -> int:
    """The shortest of 1, 2, 5, 10, 20, ... ns that divides the run into at most `MOST_BINS` bins."""
    unit = 1
    while True:
        for length in (unit, 2 * unit, 5 * unit):
            if length * MOST_BINS >= span_ns:
                return length
        unit *= 10
