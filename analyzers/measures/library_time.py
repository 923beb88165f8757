"""Time in calls of I/O libraries, and in the file-system calls made under them (tables VI, VII).

Per process and library (MPI-IO, HDF5, PnetCDF, netCDF), the union of its calls' intervals: calls of a library within
its own calls count once, and so do simultaneous calls of several threads. The part outside file-system calls
is data exchange between processes, waiting, and packing. The same is measured for all libraries together, which
gives a process's time in I/O calls of any kind; and for posix and stdio in processes that run calls concurrently,
whose durations do not add up. Unit: nanoseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch
from vani.analyzers.tables.int_table import IntTable
from vani.analyzers.tables.keys import pack, unpack
from vani.analyzers.tables.running_union import OfProcesses, RunningUnion, RunningUnions
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context, Workload
from vani.calls import Layer

LIBRARIES = (Layer.MPIIO, Layer.HDF5, Layer.PNETCDF, Layer.NETCDF)
ANY = 7
"""All libraries together."""
WIDTH = 8
"""Libraries, and `ANY`."""
_CODE = (2, WIDTH)
"""Widths of keys of whether calls are file-system calls made under a library, and of layer or `ANY`; under any library,
only calls on data set files."""

Ints = NDArray[np.int64]
_FIRST, _LAST = min(LIBRARIES), max(LIBRARIES)
_BITS = sum(1 << layer for layer in LIBRARIES)


@dataclass(frozen=True, eq=False)
class LibraryTimes:
    """Time of processes in ns, shape (processes, WIDTH) each; columns are layers or `ANY`."""

    calls: Ints
    """In library calls; in posix and stdio calls if the process runs calls concurrently."""
    under: Ints
    """In file-system calls made under a library; under `ANY`, only those on data set files."""


class LibraryTime:
    """Column `time` by process, whether under a library (0 or 1), and layer or `ANY`."""

    name = "library_time"
    result = LibraryTimes
    columns = frozenset({"rank", "file", "start_ns", "duration_ns", "within"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _Collector:
        return _Collector(context, np.empty(0, np.int64) if findings is None else findings.threaded)

    def combine(self, parts: Sequence[IntTable]) -> IntTable:
        return IntTable.merged(parts)

    def aggregate(self, combined: IntTable, workload: Workload, findings: SurveyFindings) -> LibraryTimes:
        del findings
        times = np.zeros((workload.processes, *_CODE), np.int64)
        times[unpack(combined.keys, (workload.processes, *_CODE))] = combined["time"]
        return LibraryTimes(times[:, 0], times[:, 1])


class _Collector:
    def __init__(self, context: Context, threaded: Ints) -> None:
        self._widths = (context.workload.processes, *_CODE)
        self._base = context.workload.process_base[context.trace]
        self._shift = context.workload.shift_ns[context.trace]
        self._threaded = threaded
        self._union = RunningUnion(prod(_CODE), threaded)
        self._compiled = RunningUnions(threaded)

    def _key(self, process: Ints, under: int, layer: NDArray[Any] | int) -> Ints:
        return pack((process, under, layer), self._widths)

    def add(self, batch: Batch) -> None:
        if self._compiled.stopped or not self._add_compiled(batch):
            self._add_by_call(batch)

    def _add_compiled(self, batch: Batch) -> bool:
        """Add a batch with a kernel; False if numpy must do it from here on."""
        groups, others = batch.groups, batch.uncounted_groups
        included, within = groups.included, groups.within & _BITS
        # Keys without the process are below `KEYS`, so they fit in bits.
        keys = within.astype(np.int64) << WIDTH
        keys += ((within != 0) & included).astype(np.int64) << WIDTH + ANY
        if len(self._threaded):
            threads = included & np.isin(groups.process, self._threaded)
            keys += np.where(threads, 1 << groups.layer.astype(np.int64), 0)
        layer = others.layer.astype(np.int64)
        of_library = np.where((layer >= _FIRST) & (layer <= _LAST), (1 << layer) + (1 << ANY), 0)
        done = self._compiled.add(
            [
                OfProcesses(
                    groups.codes,
                    None,
                    batch.start,
                    batch.duration,
                    0,
                    keys,
                    groups.process,
                    groups.count,
                ),
                OfProcesses(
                    others.codes,
                    others.rows,
                    batch.all_calls("start_ns"),
                    batch.all_calls("duration_ns"),
                    self._shift,
                    of_library,
                    others.process,
                    others.count,
                ),
            ],
            *self._last(batch),
        )
        if not done:
            self._compiled.stop(self._union)
        return done

    def _last(self, batch: Batch) -> tuple[int, int]:
        """Process and start of a batch's last call, which may belong to a process without library calls here."""
        rank, start = batch.all_calls("rank"), batch.all_calls("start_ns")
        return (int(rank[-1]) + self._base, int(start[-1]) + self._shift) if len(rank) else (-1, 0)

    def _add_by_call(self, batch: Batch) -> None:
        parts = [*self._library_calls(batch), *self._under(batch), *self._threaded_calls(batch)]
        if not parts:
            return
        group, start, end = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        # If the last process has no calls here, the kept intervals of others are complete.
        current, latest = self._last(batch)
        self._union.add(group, start, end, current=current, latest=latest)

    def _library_calls(self, batch: Batch) -> list[tuple[Ints, Ints, Ints]]:
        layer = batch.all_calls("layer")
        rows = np.flatnonzero((layer >= _FIRST) & (layer <= _LAST))
        if not len(rows):
            return []
        process = batch.all_calls("rank")[rows].astype(np.int64) + self._base
        start = batch.all_calls("start_ns")[rows] + self._shift
        end = start + batch.all_calls("duration_ns")[rows]
        return [(self._key(process, 0, code), start, end) for code in (layer[rows], ANY)]

    def _under(self, batch: Batch) -> list[tuple[Ints, Ints, Ints]]:
        if not len(batch) or int(np.bitwise_or.reduce(batch.within)) & _BITS == 0:
            return []
        rows = np.flatnonzero((batch.within & _BITS) != 0)
        process, within = batch.process[rows], batch.within[rows]
        start, end = batch.start[rows], batch.end[rows]
        included = batch.included[rows]
        parts = [(self._key(process[included], 1, ANY), start[included], end[included])]
        for layer in LIBRARIES:
            through = (within >> layer & 1).astype(np.bool_)
            if through.any():
                parts.append((self._key(process[through], 1, layer), start[through], end[through]))
        return parts

    def _threaded_calls(self, batch: Batch) -> list[tuple[Ints, Ints, Ints]]:
        if not len(self._threaded) or not len(batch):
            return []
        rows = np.flatnonzero(np.isin(batch.process, self._threaded) & batch.included)
        if not len(rows):
            return []
        return [(self._key(batch.process[rows], 0, batch.layer[rows]), batch.start[rows], batch.end[rows])]

    def result(self) -> IntTable:
        return IntTable.merged([self._compiled.result(), self._union.result()])
