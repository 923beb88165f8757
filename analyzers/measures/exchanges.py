"""Files through which processes can depend on each other, for process and app dependencies (tables III and IV).

Kept per process and file, for data set files that several processes use and that are both written and read,
under any name (a renamed file counts under its last name): the first write, the first and last read, their
bytes, and the number of calls without a recorded offset or size. If a trace has no write (or no read) of a file,
opens that empty it (or only read it) represent them, because formatted stream I/O leaves no records. Unit:
nanoseconds, bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch
from vani.analyzers.tables.int_table import How, IntTable, group
from vani.analyzers.tables.keys import pack, unpack
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context, Workload
from vani.calls import Flag, Kind

Ints = NDArray[np.int64]

NEVER = np.iinfo(np.int64).max
HOW: dict[str, How] = {"first_write": "min", "last_write": "max", "first_read": "min", "last_read": "max"}
"""Functions that merge several exchanges into one; bytes are added up."""


COLUMNS = (
    "first_write",
    "last_write",
    "first_read",
    "last_read",
    "bytes_written",
    "bytes_read",
    "unplaced_writes",
    "unplaced_reads",
    "unsized_writes",
    "unsized_reads",
    "reads",
    "made",
    "looked",
)


@dataclass(frozen=True, eq=False)
class ExchangeCounts:
    """Reads and writes of each process on the files that link processes; shape (n,) each, process by process."""

    process: Ints
    file: Ints
    """Code of the last name, ascending within a process."""
    columns: Mapping[str, Ints]
    """Columns by name, see `Exchanges`."""


class Exchanges:
    """Columns by process and file + 1.

    first_write, first_read (`NEVER` if none), last_write, last_read (-`NEVER` if none); bytes_written, bytes_read;
    calls of unknown offset: unplaced_writes, unplaced_reads; of unknown size: unsized_writes, unsized_reads; opens that
    represent writes and reads: made, looked; and the number of reads.
    """

    name = "exchanges"
    result = ExchangeCounts
    columns = frozenset({"rank", "kind", "file", "offset", "bytes", "start_ns"})

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _Collector:
        if findings is None:
            raise ValueError("what files are exchanged is known in the second pass")
        return _Collector(context, findings)

    def combine(self, parts: Sequence[IntTable]) -> IntTable:
        return IntTable.merged(parts, HOW)

    def aggregate(self, combined: IntTable, workload: Workload, findings: SurveyFindings) -> ExchangeCounts:
        del findings
        process, file = unpack(combined.keys, (workload.processes, workload.files + 1))
        return ExchangeCounts(process, file - 1, {name: combined[name] for name in COLUMNS})


class _Collector:
    def __init__(self, context: Context, findings: SurveyFindings) -> None:
        self._linked, self._by_open = findings.linked, findings.linked_by_open
        self._written_by_open = findings.written_by_open
        self._widths = (context.workload.processes, context.workload.files + 1)
        self._final = context.workload.final_name
        self._parts: list[IntTable] = []

    def add(self, batch: Batch) -> None:
        if not self._linked.any():
            return
        groups = batch.groups
        file, flags, kind = groups.file, groups.flags, groups.kind
        named = np.maximum(file, 0)
        moves = kind <= Kind.WRITE
        emptied = ((flags & Flag.TRUNCATE) != 0) & self._written_by_open[named]
        only_read = (flags & (Flag.OPEN | Flag.WRITABLE | Flag.DIRECTORY)) == Flag.OPEN
        looked = only_read & self._by_open[named] & ~emptied
        rows = np.flatnonzero((moves | emptied | looked) & (file >= 0) & self._linked[named])
        if not len(rows):
            return
        key = pack((groups.process, self._final[named] + 1), self._widths)
        first, last = groups.first_start, groups.last_start
        write = (kind == Kind.WRITE) | emptied
        # A call of unknown size has no certain extent, and a call of zero bytes touches nothing.
        unsized = groups.unsized
        unplaced = np.where(moves, unsized + groups.unplaced_sized, 0)
        columns = {
            "first_write": np.where(write, first, NEVER),
            "last_write": np.where(write, last, -NEVER),
            "first_read": np.where(write, NEVER, first),
            "last_read": np.where(write, -NEVER, last),
            "bytes_written": np.where(write & moves, groups.bytes, 0),
            "bytes_read": np.where(write, 0, groups.bytes),
            "unplaced_writes": np.where(write, unplaced, 0),
            "unplaced_reads": np.where(write, 0, unplaced),
            "unsized_writes": np.where(write, unsized, 0),
            "unsized_reads": np.where(write, 0, unsized),
            "reads": np.where(moves & ~write, groups.count, 0),
            "made": np.where(emptied, groups.count, 0),
            "looked": np.where(looked, groups.count, 0),
        }
        self._parts.append(group(key[rows], {n: c[rows] for n, c in columns.items()}, HOW))
        if len(self._parts) > 64:
            self._parts = [self.result()]

    def result(self) -> IntTable:
        return IntTable.merged(self._parts, HOW)
