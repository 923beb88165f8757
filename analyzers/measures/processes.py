"""Processes per phase and per file (tables IV and XI, "# processes", FPP or shared).

A process uses a file if it opens it or performs a data operation on it. Unit: processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch
from vani.analyzers.tables.int_table import IntTable, IntTableBuilder, group
from vani.analyzers.tables.keys import pack, unpack
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context, Workload
from vani.calls import Flag, Kind

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ProcessesResult:
    """`files` and `apps` (by app and file + 1): processes, readers, writers. `phases`: processes."""

    files: IntTable
    apps: IntTable
    phases: IntTable


@dataclass(frozen=True, eq=False)
class FileUsers:
    """Number of processes that use each file, shape (n,) each. Integers of any width."""

    file: Ints
    """File codes, ascending; never -1."""
    processes: Ints
    readers: Ints
    writers: Ints


@dataclass(frozen=True, eq=False)
class ProcessCounts:
    """Number of processes that use data set files (`files` also has others)."""

    files: FileUsers
    used_app: Ints
    """Shape (n,), like `used_file`: which app uses which file, app by app."""
    used_file: Ints
    in_phase: Ints
    """Shape (phases,): number of processes that take part."""


class Processes:
    """See the module's docstring."""

    name = "processes"
    result = ProcessCounts
    columns = frozenset({"rank", "kind", "file", "bytes", "start_ns", "via", "within"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _Collector:
        if findings is None:
            raise ValueError("phases are known in the second pass")
        return _Collector(context, findings)

    def combine(self, parts: Sequence[ProcessesResult]) -> ProcessesResult:
        return ProcessesResult(
            *(IntTable.merged([getattr(p, n) for p in parts]) for n in ("files", "apps", "phases"))
        )

    def aggregate(self, combined: ProcessesResult, workload: Workload, findings: SurveyFindings) -> ProcessCounts:
        files = combined.files
        app, file = unpack(combined.apps.keys, (len(workload.apps), workload.files + 1))
        return ProcessCounts(
            FileUsers(files.keys, *(files.stored(name) for name in ("processes", "readers", "writers"))),
            app,
            file - 1,
            combined.phases.at(np.arange(findings.phases), "processes"),
        )


class _Collector:
    def __init__(self, context: Context, findings: SurveyFindings) -> None:
        workload = context.workload
        self._app = context.app
        self._of_file = (workload.processes, workload.files + 1)
        self._of_phase = (workload.processes, findings.phases + 1)
        self._of_app = (len(workload.apps), workload.files + 1)
        self._uses = IntTableBuilder({"readers": "max", "writers": "max"})
        self._in_phase = IntTableBuilder()

    def add(self, batch: Batch) -> None:
        if not len(batch):
            return
        groups = batch.groups
        read, write = groups.kind == Kind.READ, groups.kind == Kind.WRITE
        opens = (groups.flags & Flag.OPEN) != 0
        uses = (groups.file >= 0) & (read | write | opens) & ((groups.flags & Flag.DIRECTORY) == 0)
        self._uses.add(
            pack((groups.process[uses], groups.file[uses] + 1), self._of_file),
            {"readers": read[uses].astype(np.int64), "writers": write[uses].astype(np.int64)},
        )
        included = groups.included
        self._in_phase.add(pack((groups.process[included], groups.phase[included]), self._of_phase), {})

    def result(self) -> ProcessesResult:
        uses, in_phase = self._uses.table(), self._in_phase.table()
        files = apps = phases = IntTable()
        if len(uses):
            columns = {"processes": np.ones(len(uses), np.int64), **uses.columns}
            _, file = unpack(uses.keys, self._of_file)
            files = group(file - 1, columns)
            apps = group(pack((self._app, file), self._of_app), columns)
        if len(in_phase):
            _, phase = unpack(in_phase.keys, self._of_phase)
            phases = group(phase, {"processes": np.ones(len(in_phase), np.int64)})
        return ProcessesResult(files, apps, phases)
