"""Who does what: processes per phase and per file, bytes per process (tables IV and XI, "# processes", FPP or shared).

A process uses a file if it opens it or makes a data operation on it. Unit: processes, bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.base import Batch, Context, Facts, World
from vani.analyzers.keyed import Dense, Keyed, group
from vani.analyzers.keys import unpack
from vani.calls import Flag, Kind

__all__ = ["FileUsers", "ProcessCounts", "Processes", "ProcessesResult"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ProcessesResult:
    """`files` and `apps` (by app * (files + 1) + file): processes, readers, writers. `phases`: processes.

    `processes`: bytes_read, bytes_written, calls by process, of files of the data set.
    """

    files: Keyed
    apps: Keyed
    phases: Keyed
    processes: Keyed


@dataclass(frozen=True)
class FileUsers:
    """Processes that use each file, shape (n,) each. Integers of any size."""

    file: Ints
    """Codes, ascending; -1 never."""
    processes: Ints
    readers: Ints
    writers: Ints


@dataclass(frozen=True)
class ProcessCounts:
    """Who does what on files of the data set (`files`: and on others)."""

    files: FileUsers
    used_app: Ints
    """Shape (n,), as `used_file`: which app uses which file, app after app."""
    used_file: Ints
    in_phase: Ints
    """Shape (phases,): processes that take part."""
    bytes: Ints
    """Shape (processes,), as the next two: bytes that each process moved."""
    reads: Ints
    """Operations."""
    writes: Ints


class Processes:
    """See the module's docstring."""

    name = "processes"
    columns = frozenset({"rank", "kind", "file", "bytes", "start_ns", "via", "within"})

    def begin(self, context: Context, facts: Facts | None) -> _Collector:
        if facts is None:
            raise ValueError("phases are known in the second pass")
        return _Collector(context, facts)

    def combine(self, parts: Sequence[ProcessesResult]) -> ProcessesResult:
        return ProcessesResult(
            *(Keyed.merged([getattr(p, n) for p in parts]) for n in ("files", "apps", "phases", "processes"))
        )

    def finish(self, combined: ProcessesResult, world: World, facts: Facts) -> ProcessCounts:
        files, totals, every = combined.files, combined.processes, np.arange(world.processes)
        app, file = unpack(combined.apps.keys, (len(world.apps), world.files + 1))
        return ProcessCounts(
            FileUsers(files.keys, *(files.stored(name) for name in ("processes", "readers", "writers"))),
            app,
            file - 1,
            combined.phases.at(np.arange(facts.phases), "processes"),
            totals.at(every, "bytes_read") + totals.at(every, "bytes_written"),
            totals.at(every, "reads"),
            totals.at(every, "writes"),
        )


class _Collector:
    def __init__(self, context: Context, facts: Facts) -> None:
        self._context = context
        self._files = context.world.files + 1
        self._phases = facts.phases + 1
        self._uses: list[Keyed] = []
        self._in_phase: list[Ints] = []
        self._totals: list[Keyed] = []

    def add(self, batch: Batch) -> None:
        if not len(batch):
            return
        alike = batch.alike
        kind, flags, file = batch.kind[alike.row], batch.flags[alike.row], batch.file[alike.row]
        process = batch.process[alike.row]
        read, write = kind == Kind.READ, kind == Kind.WRITE
        uses = (file >= 0) & (read | write | ((flags & Flag.OPEN) != 0)) & ((flags & Flag.DIRECTORY) == 0)
        if uses.any():
            dense = Dense.of((process * self._files + file + 1)[uses])
            self._uses.append(
                Keyed(
                    dense.keys,
                    {
                        "readers": (dense.count(read[uses]) > 0).astype(np.int64),
                        "writers": (dense.count(write[uses]) > 0).astype(np.int64),
                    },
                )
            )
        included = batch.included[alike.row]
        in_phase = process * self._phases + batch.phase[alike.row]
        self._in_phase.append(np.unique(in_phase[included]))
        dense = Dense.of(process[included])
        size, count = batch.alike_bytes[included], alike.count[included]
        read, write = read[included], write[included]
        self._totals.append(
            Keyed(
                dense.keys,
                {
                    "bytes_read": dense.sum(size, read),
                    "bytes_written": dense.sum(size, write),
                    "reads": dense.sum(count, read),
                    "writes": dense.sum(count, write),
                    "calls": dense.sum(count),
                },
            )
        )
        if len(self._totals) > 64:
            self._shrink()

    def _shrink(self) -> None:
        self._uses = [Keyed.merged(self._uses, {"readers": "max", "writers": "max"})]
        self._in_phase = [np.unique(np.concatenate(self._in_phase))] if self._in_phase else []
        self._totals = [Keyed.merged(self._totals)]

    def result(self) -> ProcessesResult:
        self._shrink()
        uses = self._uses[0]
        if len(uses):
            columns = {"processes": np.ones(len(uses), np.int64), **uses.columns}
            file = uses.keys % self._files - 1
            files = group(file, columns)
            apps = group(file + 1 + self._context.app * self._files, columns)
        else:
            files = apps = Keyed()
        in_phase = self._in_phase[0] if self._in_phase else np.empty(0, np.int64)
        phases = group(in_phase % self._phases, {"processes": np.ones(len(in_phase), np.int64)})
        return ProcessesResult(files, apps, phases if len(in_phase) else Keyed(), self._totals[0])
