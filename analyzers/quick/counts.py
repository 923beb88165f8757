"""Results of measures that need neither order nor times, from occurrences of calls.

The results have the measures' form (`vani.analyzers.measures`), with one phase per app, so that the same code builds
entities from them. Work is done per distinct call of each group of ranks; the ranks of a group only multiply counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.analyzers.int_table import (
    NO_VALUE,
    Factorized,
    IntTable,
    IntTableBuilder,
    Sums,
    SumsBuilder,
    pack,
    unpack,
)
from vani.analyzers.measurements import TraceFacts
from vani.analyzers.measures.libraries import Libraries
from vani.analyzers.measures.operations import MovedByProcess
from vani.analyzers.quick.exchanges import ExchangeCounter
from vani.analyzers.quick.libraries import LibraryCounter
from vani.analyzers.quick.rows import Rows
from vani.analyzers.workload import Context, Workload, groups_of_names, renames_of
from vani.calls import DIRECT, MAX_SUM, RENAMES, SYNCHRONOUS, Flag, Kind, Layer, Occurrences
from vani.columns import Texts, small_table, texts, to_arrow
from vani.errors import TraceError
from vani.units import format_number

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass
class Trace:
    """One trace as described by its tables."""

    facts: TraceFacts
    """Facts without records and functions, which are counted here."""
    files: pa.Table
    function_names: dict[int, str]
    occurrences: Occurrences
    renames: pa.Table = field(default_factory=lambda: small_table([()] * 4, RENAMES))


@dataclass
class Counts:
    """Counts of a workload."""

    sums: Sums
    """Tables of the measures `Operations`, `CallCosts`, `TransferSize`, `Processes` and `Libraries`; times are 0."""
    totals: MovedByProcess
    files: IntTable
    """By file code, for included calls: reads, writes, metadata, syncs, opens, direct_opens, synchronous_opens, makes,
    empties, looks, removes, bytes_read, bytes_written."""
    users: IntTable | None
    """By combined key of app and file + 1, for files that are written and read, under their last name: number of
    processes that are readers, writers, and both. None if there are too many to keep."""
    functions: list[dict[str, int]]
    """Number of calls by function, of each trace."""
    caller_unknown: Bools
    """Shape (apps,): whether only times show the library of some of its calls."""
    caller_unknown_files: Ints
    """Codes of files with such calls."""
    libraries_set_lengths: bool = False
    """Whether an MPI_File_set_size may be the only record of a length."""

    def records(self, trace: int) -> int:
        """Number of calls of a trace."""
        return sum(self.functions[trace].values())


def count(workload: Workload, contexts: Sequence[Context], traces: Sequence[Trace]) -> tuple[Workload, Counts]:
    """Count the calls of a workload.

    Returns
    -------
    workload, counts
        The workload, completed with the final names of its renamed files.
    """
    counter = _Counter(workload)
    for context, trace in zip(contexts, traces, strict=True):
        of_rank = trace.occurrences.group_of_rank
        ranks_of_group = np.bincount(of_rank[of_rank >= 0], minlength=1)
        counter.begin(trace, ranks_of_group)
        for batch in trace.occurrences.batches():
            counter.add(Rows(context, batch, ranks_of_group))
        counter.end(trace, workload.process_base[context.trace])
    codes = [c.file_codes for c in contexts]
    paths = workload.paths if isinstance(workload.paths, Texts) else Texts(texts(workload.paths))
    renames = renames_of([t.renames for t in traces], codes, workload.shift_ns, paths, workload.file_class)
    if len(renames):
        workload = replace(workload, renames=renames, final_name=groups_of_names(renames, workload.files))
    return workload, counter.result(workload)


class _Counter:
    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._apps = len(workload.apps)
        self._phase_file = (self._apps + 1, workload.files + 1)
        """Widths of keys of phase and file, and of app and file, like those of the measures."""
        self._app_file = (self._apps, workload.files + 1)
        self._sums, self._survey = SumsBuilder(packed=Libraries.packed), IntTableBuilder()
        self._exchanges = ExchangeCounter(workload)
        self._ranks: list[Ints] = []
        self._libraries = LibraryCounter(workload, self._sums)
        self._functions: list[dict[str, int]] = []
        self._trace: Trace
        self._claimed = 0.0
        self._renames: list[Ints] = []
        self._of_group = np.zeros((3, 0), np.int64)
        self._of_process = np.zeros((3, workload.processes), np.int64)

    def begin(self, trace: Trace, ranks_of_group: Ints) -> None:
        self._trace = trace
        self._functions.append({})
        self._renames = []
        self._of_group = np.zeros((3, len(ranks_of_group)), np.int64)
        self._exchanges.begin(ranks_of_group)
        self._ranks.append(ranks_of_group)

    def end(self, trace: Trace, base: int) -> None:
        of_rank = trace.occurrences.group_of_rank
        ranks = np.flatnonzero(of_rank >= 0)
        self._of_process[:, base + ranks] = self._of_group[:, of_rank[ranks]]
        pairs = np.concatenate([np.zeros((2, 0), np.int64), *self._renames], axis=1).astype(np.int32)
        rank, start = np.full(pairs.shape[1], -1, np.int32), np.zeros(pairs.shape[1], np.int64)
        columns = [to_arrow(c) for c in (rank, start, pairs[0], pairs[1])]
        trace.renames = pa.Table.from_arrays(columns, schema=RENAMES)

    def add(self, rows: Rows) -> None:
        self._refuse_absurd(rows)
        self._add_functions(rows)
        self._libraries.add_calls(rows)
        if len(rows.counted):
            self._add_operations(rows)
            self._add_uses(rows)
        if len(rows.included):
            self._add_survey(rows)
            self._add_processes(rows)
            self._libraries.add_under(rows)

    def _refuse_absurd(self, rows: Rows) -> None:
        """A few bytes of grammar can represent any number of calls; float sums reveal overflow that integers hide."""
        size = np.where(rows.bytes > 0, rows.bytes, 0).astype(np.float64)
        self._claimed += float((size * rows.weight).sum())
        if self._claimed >= MAX_SUM:
            raise TraceError(
                f"its calls move {format_number(self._claimed)} bytes together, more than can be counted",
                where=self._trace.facts.source,
                todo="the trace is damaged, trace the run again",
            )

    def _add_functions(self, rows: Rows) -> None:
        dense = Factorized.of(rows.numbers("func").astype(np.int64))
        counts = self._functions[-1]
        for func, n in zip(dense.keys.tolist(), dense.sum(rows.weight).tolist(), strict=True):
            name = self._trace.function_names.get(func, "(unknown)")
            counts[name] = counts.get(name, 0) + n
        target = rows.numbers("rename_to")
        renames = np.flatnonzero(target >= 0)
        if len(renames):
            pairs = np.stack([rows.numbers("file")[renames], target[renames]]).astype(np.int64)
            self._renames.append(np.unique(pairs, axis=1))

    def _add_operations(self, rows: Rows) -> None:
        at, app = rows.counted, rows.context.app
        included = np.zeros(len(rows.kind), np.bool_)
        included[rows.included] = True
        phase = np.where(included[at], app, self._apps)
        phase_file = Factorized.of(pack((phase, rows.file[at] + 1), self._phase_file))
        kind, size, flags = rows.kind[at], rows.bytes[at], rows.flags[at]
        weight = rows.weight[at]
        read, write = kind == Kind.READ, kind == Kind.WRITE
        sized = size != NO_VALUE
        moved = np.where(sized, size, 0) * weight
        nothing = np.zeros(len(phase_file.keys), np.int64)
        operations = {
            "reads": phase_file.sum(weight, read),
            "writes": phase_file.sum(weight, write),
            "metadata": phase_file.sum(weight, kind == Kind.METADATA),
            "syncs": phase_file.sum(weight, kind == Kind.SYNC),
            "bytes_read": phase_file.sum(moved, read),
            "bytes_written": phase_file.sum(moved, write),
            "unsized": phase_file.sum(weight, (read | write) & ~sized),
            "opens": phase_file.sum(weight, (flags & Flag.OPEN) != 0),
            "first": nothing,
            "last": nothing,
        }
        self._sums.add("operations", phase_file.keys, operations)
        columns = (phase_file.keys[phase_file.codes], rows.function[at])
        function = Factorized.of(pack(columns, (prod(self._phase_file), len(self._workload.functions))))
        costs = {
            "count": function.sum(weight),
            "time": np.zeros(len(function.keys), np.int64),
            "bytes": function.sum(np.where(read | write, moved, 0)),
            "data": function.sum(weight, read | write),
            "metadata": function.sum(weight, kind == Kind.METADATA),
            "unsized": function.sum(weight, (read | write) & ~sized),
        }
        self._sums.add("costs", function.keys, costs)
        data = np.flatnonzero((read | write) & sized)
        side = pack((phase_file.keys[phase_file.codes[data]], kind[data]), (prod(self._phase_file), 2))
        self._sums.count("sizes", side, size[data], weight[data])

    def _add_uses(self, rows: Rows) -> None:
        """Count the processes that use each file: the ranks of the groups that do."""
        kind, flags, file = rows.kind, rows.flags, rows.file
        data = kind <= Kind.WRITE
        uses = (file >= 0) & (data | ((flags & Flag.OPEN) != 0)) & ((flags & Flag.DIRECTORY) == 0)
        at = rows.counted[uses[rows.counted]]
        if not len(at):
            return
        groups = len(self._ranks[-1])
        dense = Factorized.of(pack((rows.group[at], file[at]), (groups, self._workload.files)))
        ranks = np.zeros(len(dense.keys), np.int64)
        ranks[dense.codes] = rows.ranks[at]
        columns = {
            "processes": ranks,
            "readers": np.where(dense.count(kind[at] == Kind.READ) > 0, ranks, 0),
            "writers": np.where(dense.count(kind[at] == Kind.WRITE) > 0, ranks, 0),
        }
        _, code = unpack(dense.keys, (groups, self._workload.files))
        self._sums.add("users", code, columns)
        self._sums.add("users_of_apps", pack((rows.context.app, code + 1), self._app_file), columns)

    def _add_survey(self, rows: Rows) -> None:
        at = rows.included
        kind, flags, weight = rows.kind[at], rows.flags[at], rows.weight[at]
        dense = Factorized.of(rows.file[at])

        def having(flag: Flag) -> Bools:
            having_flag: Bools = (flags & flag) != 0
            return having_flag

        created, emptied = having(Flag.CREATE | Flag.TRUNCATE), having(Flag.TRUNCATE)
        looks = (flags & (Flag.OPEN | Flag.WRITABLE | Flag.DIRECTORY)) == Flag.OPEN
        chosen = {
            "reads": kind == Kind.READ,
            "writes": kind == Kind.WRITE,
            "metadata": kind == Kind.METADATA,
            "syncs": kind == Kind.SYNC,
            "opens": having(Flag.OPEN),
            "makes": created,
            "empties": emptied,
            "looks": looks,
            "removes": having(Flag.REMOVE),
            "direct_opens": (flags & DIRECT) != 0,
            "synchronous_opens": having(Flag.OPEN) & having(SYNCHRONOUS),
            "resizes": having(Flag.RESIZE),
            "streams": created & (rows.layer[at] == Layer.STDIO),
            "unfollowed": (flags & (Flag.OPEN | Flag.WRITABLE)) == Flag.WRITABLE,
        }
        unsized = rows.bytes[at] == NO_VALUE
        chosen |= {
            "unsized_reads": chosen["reads"] & unsized,
            "unsized_writes": chosen["writes"] & unsized,
        }
        moved = np.where(unsized, 0, rows.bytes[at]) * weight
        columns = {n: dense.sum(weight, mask) for n, mask in chosen.items()} | {
            "bytes_read": dense.sum(moved, kind == Kind.READ),
            "bytes_written": dense.sum(moved, kind == Kind.WRITE),
            "metadata_time": np.zeros(len(dense.keys), np.int64),
        }
        self._survey.add(dense.keys, columns)
        self._exchanges.add(rows, kind, emptied, looks & ~emptied)

    def _add_processes(self, rows: Rows) -> None:
        at = rows.included
        kind, once, group_ = rows.kind[at], rows.once[at], rows.group[at]
        data = kind <= Kind.WRITE
        size = np.where((rows.bytes[at] == NO_VALUE) | ~data, 0, rows.bytes[at])
        for row, values in enumerate(
            (size * once, np.where(kind == Kind.READ, once, 0), np.where(kind == Kind.WRITE, once, 0))
        ):
            np.add.at(self._of_group[row], group_, values)

    def result(self, workload: Workload) -> Counts:
        """Combine everything; `workload` already has the final names of renamed files."""
        survey = self._survey.table()
        libraries = self._libraries
        moved, reads, writes = self._of_process
        return Counts(
            sums=self._sums.result(),
            totals=MovedByProcess(moved, reads, writes),
            files=survey,
            users=self._exchanges.users(workload, survey),
            functions=self._functions,
            caller_unknown=libraries.caller_unknown,
            caller_unknown_files=libraries.caller_unknown_files,
            libraries_set_lengths=libraries.set_lengths,
        )
