"""Results of measures that need neither order nor times, from occurrences of calls.

The results have the measures' form (`vani.analyzers.measures`), with one phase per app, so that the same code builds
entities from them. Work is done per distinct call of each group of ranks; the ranks of a group only multiply counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from vani.analyzers import int_table
from vani.analyzers.batch import CallGroups, CountedGroups, GroupedCalls, GroupSums, StoredColumn
from vani.analyzers.measurements import TraceFacts
from vani.analyzers.measures.accesses import LIBRARIES, add_cells, add_columns, ask_kind, class_of, widths_of
from vani.analyzers.measures.libraries import Libraries
from vani.analyzers.measures.operations import CallCosts, MovedByProcess, Operations, TransferSize
from vani.analyzers.measures.survey import calls_by_file
from vani.analyzers.passes.findings_of_survey import exchanged
from vani.analyzers.workload import Context, SurveyFindings, Workload, groups_of_names, renames_of
from vani.calls import MAX_SUM, RENAMES, FileClass, Flag, Kind, Layer, Occurrences
from vani.columns import Bools, Int8s, Int32s, Ints, Numbers, Texts, small_table, texts, to_arrow, to_numpy
from vani.errors import TraceError
from vani.units import format_number


class Rows(GroupedCalls):
    """A batch of occurrences: each is a group of calls, with weights over all ranks; all times are 0."""

    bytes = StoredColumn("bytes")

    def __init__(
        self, context: Context, findings: SurveyFindings, batch: pa.RecordBatch, ranks_of_group: Ints
    ) -> None:
        super().__init__(context, findings)
        self._batch = batch
        self.group = self.numbers("group").astype(np.int64)
        self.once = self.numbers("count")
        self.ranks = ranks_of_group[self.group]
        self.weight = self.once * self.ranks
        self.is_sized = self.bytes != int_table.NO_VALUE

    def __len__(self) -> int:
        return len(self.once)

    def numbers(self, name: str) -> Numbers:
        """A column as a numpy array; null is `NO_VALUE` in 64-bit columns, and -1 in others."""
        column = self._batch.column(name)
        return to_numpy(column, int_table.NO_VALUE if column.type == pa.int64() else -1)

    def _column(self, name: str) -> Numbers:
        return self.numbers(name)

    @cached_property
    def is_counted(self) -> Bools:
        """Whether each row is a counted file-system call, and not made inside another one."""
        is_counted: Bools = (self.layer <= Layer.STDIO) & ((self.flags & Flag.NESTED) == 0)
        return is_counted

    @cached_property
    def in_dataset(self) -> Ints:
        """Rows of counted calls on data set files."""
        return np.flatnonzero(self.is_counted & self.included)

    @cached_property
    def hidden(self) -> Bools:
        """Whether only times would show which library made the call."""
        hidden: Bools = self.numbers("via") < 0
        return hidden

    @cached_property
    def groups(self) -> CountedGroups:
        at = np.flatnonzero(self.is_counted)
        layer, hidden = self.layer[at], self.hidden[at]
        # Of hidden callers, only the call's own layer is certain; entities omit the rest.
        callers = {
            "via": np.where(hidden, layer, self.numbers("via")[at]),
            "within": np.where(hidden, np.int16(1) << layer.astype(np.int16), self.numbers("within")[at]),
        }
        nothing = np.zeros(len(at), np.int64)
        data = self.kind[at] <= Kind.WRITE
        moved = np.where(data & self.is_sized[at], self.bytes[at], 0) * self.weight[at]
        unsized = (data & ~self.is_sized[at]) * self.weight[at]
        sums = GroupSums(moved, nothing, unsized, nothing, nothing, nothing, nothing, nothing)
        columns = self._columns_at(at) | callers
        return CountedGroups(self.context, self.findings, columns, np.arange(len(at)), at, self.weight[at], sums)

    @cached_property
    def uncounted_groups(self) -> CallGroups:
        at = np.flatnonzero(~self.is_counted)
        nothing = np.zeros(len(at), np.int64)
        columns, count = self._columns_at(at), self.weight[at]
        return CallGroups(self.context, self.findings, columns, np.arange(len(at)), at, count, nothing, nothing)

    def _columns_at(self, rows: Ints) -> dict[str, Numbers]:
        return {name: self.numbers(name)[rows] for name in ("kind", "layer", "flags", "func", "file")}

    @cached_property
    def sizes(self) -> int_table.Pairs:
        at = np.flatnonzero(self.is_counted)
        data = np.flatnonzero((self.kind[at] <= Kind.WRITE) & self.is_sized[at])
        return int_table.Pairs(data, self.bytes[at][data], self.weight[at][data])


class AccessCounter:
    """Adds up data calls by layer and direction, and by file those of the file system, without times and places."""

    def __init__(self, workload: Workload, sums: int_table.SumsBuilder) -> None:
        self._sums, self._widths = sums, widths_of(workload)
        self._ask_kind = np.append(ask_kind(workload.functions), 0)
        self._counted = np.append(workload.file_class == FileClass.DATASET, True)

    def add(self, rows: Rows) -> None:
        """Add the calls of every layer."""
        is_data = rows.kind <= Kind.WRITE
        moves = rows.in_dataset[is_data[rows.in_dataset]]
        asks = is_data & (rows.layer >= LIBRARIES[0]) & (rows.layer <= LIBRARIES[-1])
        asks &= (self._ask_kind[rows.function] >= 0) & self._counted[rows.file]
        sized = rows.is_sized
        size, collective = np.where(sized, rows.bytes, 0), (rows.flags & Flag.COLLECTIVE) != 0
        columns = {"calls": rows.weight, "bytes": size * rows.weight, "unsized": ~sized * rows.weight}
        of_libraries = columns | {
            "later": (self._ask_kind[rows.function] > 0) * rows.weight,
            "collective": size * rows.weight * collective,
            "together": rows.weight * collective,
        }
        for table, at, known in (("moved", moves, columns), ("asked", np.flatnonzero(asks), of_libraries)):
            # Handles name the files of libraries, in an order that is not known.
            place = rows.file[at] + 1 if table == "moved" else 0
            key = int_table.pack((rows.context.app, place, rows.kind[at], rows.layer[at]), self._widths)
            add_columns(self._sums, key, **{name: column[at] for name, column in known.items()})
            self._use(rows, at)
            with_size = at[sized[at]]
            add_cells(self._sums, key[sized[at]], "size", class_of(size[with_size]), columns["bytes"][with_size])

    def _use(self, rows: Rows, every: Ints) -> None:
        """Count the processes that make some calls, on all files together and on each."""
        widths = (int(rows.group.max(initial=0)) + 1, *self._widths[1:])
        named = every[(rows.file[every] >= 0) & (rows.layer[every] <= Layer.STDIO)]
        for name, at, place in (("all_callers", every, 0), ("callers", named, rows.file[named] + 1)):
            columns = (rows.group[at], place, rows.kind[at], rows.layer[at])
            dense = int_table.Factorized.of(int_table.pack(columns, widths))
            ranks = np.zeros(len(dense.keys), np.int64)
            ranks[dense.codes] = rows.ranks[at]
            row = int_table.pack((rows.context.app, *int_table.unpack(dense.keys, widths)[1:]), self._widths)
            add_columns(self._sums, row, **{name: ranks})


_MAX_USES = 1 << 25
"""Maximum number of pairs of rank groups and remaining files that are searched for exchanges (9 bytes each)."""



class ExchangeCounter:
    """Keeps each group's operations on each file, because the important files are known only at the end."""

    def __init__(self, workload: Workload) -> None:
        self._files = workload.files
        self._app_file = (len(workload.apps), workload.files + 1)
        """Widths of keys, like those of the measures."""
        self._uses: list[list[tuple[Int32s, Int32s, Int8s]]] = []
        self._uses_collected = 0
        self._ranks: list[Ints] = []

    def begin(self, ranks_of_group: Ints) -> None:
        """Start the next trace."""
        self._ranks.append(ranks_of_group)
        self._uses.append([])

    def add(self, rows: Rows) -> None:
        """Add a batch."""
        at = rows.in_dataset
        kind, flags = rows.kind[at], rows.flags[at]
        emptied = (flags & Flag.TRUNCATE) != 0
        looks = ((flags & (Flag.OPEN | Flag.WRITABLE | Flag.DIRECTORY)) == Flag.OPEN) & ~emptied
        widths = (len(self._ranks[-1]), self._files)
        dense = int_table.Factorized.of(int_table.pack((rows.group[at], rows.file[at]), widths))
        if self._uses_collected > _MAX_USES:
            return
        did = np.zeros(len(dense.keys), np.int8)
        for bit, mask in enumerate((kind == Kind.READ, kind == Kind.WRITE, looks, emptied)):
            did |= ((dense.count(mask) > 0) << bit).astype(np.int8)
        group_, file = int_table.unpack(dense.keys, widths)
        self._uses[-1].append((group_.astype(np.int32), file.astype(np.int32), did))
        self._uses_collected += len(did)

    def users(self, workload: Workload, survey: int_table.IntTable) -> int_table.IntTable | None:
        """By keys of app and file + 1: number of processes that are readers, writers, and both; None if there are too
        many.

        `workload` already has the final names of renamed files, and `survey` the operations on each file.
        """
        if self._uses_collected > _MAX_USES:
            return None
        if not len(survey):
            return int_table.IntTable()
        written, read, opened_new, opened_read = exchanged(workload, survey)
        linked = ((written | opened_new) & (read | opened_read))[workload.final_name]
        by_open = (opened_new | opened_read)[workload.final_name]
        tables = []
        for trace, parts in enumerate(self._uses):
            for group_, file, did in parts:
                links = np.flatnonzero(linked[file])
                if not len(links):
                    continue
                uses = np.where(by_open[file[links]], did[links] | did[links] >> 2, did[links])
                # A process may know a file by several names; all its calls are in one batch.
                widths = (len(self._ranks[trace]), workload.files)
                dense = int_table.Factorized.of(int_table.pack((group_[links], workload.final_name[file[links]]),
                    widths))
                reads, writes = (dense.count((uses >> bit & 1) != 0) > 0 for bit in (0, 1))
                owner, named = int_table.unpack(dense.keys, widths)
                ranks = self._ranks[trace][owner]
                key = int_table.pack((workload.app_of_trace[trace], named + 1), self._app_file)
                masks = {"readers": reads, "writers": writes, "both": reads & writes}
                tables.append(int_table.group(key, {n: np.where(m, ranks, 0) for n, m in masks.items()}))
        return int_table.IntTable.merged(tables)




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

    sums: int_table.Sums
    """Tables of the measures `Operations`, `CallCosts`, `TransferSize`, `Processes`, `Libraries` and `Accesses`; times
    are 0."""
    totals: MovedByProcess
    files: int_table.IntTable
    """By file code, for included calls: reads, writes, metadata, syncs, opens, direct_opens, synchronous_opens,
    synchronous_writes, makes, empties, looks, removes, bytes_read, bytes_written."""
    users: int_table.IntTable | None
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


def count(
    workload: Workload, contexts: Sequence[Context], traces: Sequence[Trace], findings: SurveyFindings
) -> tuple[Workload, Counts]:
    """Count the calls of a workload; in its findings, one phase represents each app.

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
            counter.add(Rows(context, findings, batch, ranks_of_group))
        counter.end(trace, workload.process_base[context.trace])
    codes = [c.file_codes for c in contexts]
    paths = workload.paths if isinstance(workload.paths, Texts) else Texts(texts(workload.paths))
    renames = renames_of([t.renames for t in traces], codes, workload.shift_ns, paths, workload.file_class)
    if len(renames):
        workload = replace(workload, renames=renames, final_name=groups_of_names(renames, workload.files))
    return workload, counter.result(workload)


_MEASURES = (Operations(), CallCosts(), TransferSize(), Libraries())


class _Counter:
    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._app_file = (len(workload.apps), workload.files + 1)
        """Widths of keys of app and file, like those of the measures."""
        self._sums, self._survey = int_table.SumsBuilder(packed=Libraries.packed), int_table.IntTableBuilder()
        self._exchanges = ExchangeCounter(workload)
        self._ranks: list[Ints] = []
        self._caller_unknown = np.zeros(len(workload.apps), np.bool_)
        self._files_without_caller = np.zeros(workload.files, np.bool_)
        self._set_lengths = False
        self._accesses = AccessCounter(workload, self._sums)
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
        self._set_lengths |= bool(((rows.layer > Layer.STDIO) & ((rows.flags & Flag.RESIZE) != 0)).any())
        for measure in _MEASURES:
            measure.add(rows, self._sums)
        self._accesses.add(rows)
        self._add_uses(rows)
        if len(rows.in_dataset):
            self._add_survey(rows)
            self._add_processes(rows)

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
        dense = int_table.Factorized.of(rows.numbers("func").astype(np.int64))
        counts = self._functions[-1]
        for func, n in zip(dense.keys.tolist(), dense.sum(rows.weight).tolist(), strict=True):
            name = self._trace.function_names.get(func, "(unknown)")
            counts[name] = counts.get(name, 0) + n
        target = rows.numbers("rename_to")
        renames = np.flatnonzero(target >= 0)
        if len(renames):
            pairs = np.stack([rows.numbers("file")[renames], target[renames]]).astype(np.int64)
            self._renames.append(np.unique(pairs, axis=1))

    def _add_uses(self, rows: Rows) -> None:
        """Count the processes that use each file: the ranks of the groups that do."""
        kind, flags, file = rows.kind, rows.flags, rows.file
        uses = (file >= 0) & ((kind <= Kind.WRITE) | ((flags & Flag.OPEN) != 0)) & ((flags & Flag.DIRECTORY) == 0)
        unknown = uses & rows.is_counted & rows.included & rows.hidden
        self._files_without_caller[file[unknown]] = True
        self._caller_unknown[rows.context.app] |= rows.hidden[rows.in_dataset].any()
        at = np.flatnonzero(uses & rows.is_counted)
        if not len(at):
            return
        groups = len(self._ranks[-1])
        dense = int_table.Factorized.of(int_table.pack((rows.group[at], file[at]), (groups, self._workload.files)))
        ranks = np.zeros(len(dense.keys), np.int64)
        ranks[dense.codes] = rows.ranks[at]
        columns = {
            "processes": ranks,
            "readers": np.where(dense.count(kind[at] == Kind.READ) > 0, ranks, 0),
            "writers": np.where(dense.count(kind[at] == Kind.WRITE) > 0, ranks, 0),
        }
        _, code = int_table.unpack(dense.keys, (groups, self._workload.files))
        self._sums.add("users", code, columns)
        self._sums.add("users_of_apps", int_table.pack((rows.context.app, code + 1), self._app_file), columns)

    def _add_survey(self, rows: Rows) -> None:
        groups = rows.groups
        files = int_table.Factorized.of(groups.file[groups.included])
        self._survey.add(files.keys, calls_by_file(groups, groups.included, files))
        self._exchanges.add(rows)

    def _add_processes(self, rows: Rows) -> None:
        at = rows.in_dataset
        kind, once, group_ = rows.kind[at], rows.once[at], rows.group[at]
        size = np.where(rows.is_sized[at] & (kind <= Kind.WRITE), rows.bytes[at], 0)
        amounts = np.stack([size * once, (kind == Kind.READ) * once, (kind == Kind.WRITE) * once])
        np.add.at(self._of_group.T, group_, amounts.T)

    def result(self, workload: Workload) -> Counts:
        """Combine everything; `workload` already has the final names of renamed files."""
        survey = self._survey.table()
        moved, reads, writes = self._of_process
        return Counts(
            sums=self._sums.result(),
            totals=MovedByProcess(moved, reads, writes),
            files=survey,
            users=self._exchanges.users(workload, survey),
            functions=self._functions,
            caller_unknown=self._caller_unknown,
            caller_unknown_files=np.flatnonzero(self._files_without_caller),
            libraries_set_lengths=self._set_lengths,
        )
