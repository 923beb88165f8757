"""The counts of all runs of a workload in one table, and the calls that were also traced individually.

Rows have the workload's numbers for files, apps and processes. Segments (of DXT) are data calls. They also show the
flush time of sources that add it to write time but traced all writes individually.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from vani.analyzers.int_table import KINDS, NO_VALUE, SIDES, IntTable, Pairs, count_pairs, group, pack, unpack
from vani.analyzers.intervals import Intervals, merge, total_length
from vani.analyzers.measures.access_pattern import LARGE
from vani.analyzers.measures.busy_time import ALL, WIDTH, WRITE_OR_SYNC
from vani.analyzers.measures.operations import NamesAndLocks
from vani.analyzers.streams import NAMES, RANDOM, classify, distances
from vani.analyzers.workload import Context, Workload
from vani.calls import FileClass, Kind, Layer
from vani.columns import Bools, Int8s, Ints
from vani.counts import ALL_RANKS, COLUMNS, RunCounts


@dataclass(frozen=True, eq=False)
class Rows:
    """Shape (rows,) each; see `vani.counts.COLUMNS`, plus `sync_ns` for flushes whose time is known."""

    workload: Workload
    columns: Mapping[str, Ints]
    trace: Ints
    app: Ints
    file: Ints
    """File of the workload."""
    process: Ints
    """Process of the workload; -1 for all processes of the row's trace."""

    @staticmethod
    def of(workload: Workload, contexts: Sequence[Context], runs: Sequence[RunCounts]) -> Rows:
        """Combine the runs."""
        nothing = np.empty(0, np.int64)
        columns = {name: np.concatenate([nothing, *(run.table[name] for run in runs)]) for name in COLUMNS}
        lengths = [len(run.table["rank"]) for run in runs]
        trace = np.repeat(np.arange(len(runs)), lengths)
        bases = np.array(workload.process_base, np.int64)[trace]
        files = [c.file_codes[run.table["file"]] for c, run in zip(contexts, runs, strict=True)]
        # Zero until `flushes_apart` separates it from write time.
        columns["sync_ns"] = np.zeros(len(columns["syncs"]), np.int64)
        # Convert times since the start of the run to the workload's clock.
        shift = np.array(workload.shift_ns, np.int64)[trace]
        for name in ("first", "last", "read_first", "read_last", "write_first", "write_last"):
            moment = columns[f"{name}_ns"]
            columns[f"{name}_ns"] = np.where(moment > 0, moment + shift, 0)
        return Rows(
            workload,
            columns,
            trace,
            np.array(workload.app_of_trace, np.int64)[trace],
            np.concatenate([nothing, *files]),
            np.where(columns["rank"] == ALL_RANKS, -1, bases + columns["rank"]),
        )

    def __len__(self) -> int:
        return len(self.trace)

    def __getitem__(self, name: str) -> Ints:
        return self.columns[name]

    @cached_property
    def included(self) -> Bools:
        """Whether each row is on a file of the data set."""
        included: Bools = self.workload.file_class[self.file] == FileClass.DATASET
        return included

    @cached_property
    def phase(self) -> Ints:
        """One phase per app; the number of apps for paths that are counted separately."""
        phase: Ints = np.where(self.included, self.app, len(self.workload.apps))
        return phase

    @cached_property
    def ranks(self) -> Ints:
        """Number of processes in the row's trace."""
        ends = np.append(np.array(self.workload.process_base), self.workload.processes)
        ranks: Ints = np.diff(ends)[self.trace]
        return ranks

    @cached_property
    def base(self) -> Ints:
        """First process of the row's trace."""
        base: Ints = np.array(self.workload.process_base, np.int64)[self.trace]
        return base

    @property
    def users(self) -> dict[str, Ints]:
        """The first and the last process that each row can mean."""
        first = np.where(self.process < 0, self.base, self.process)
        return {"first_process": first, "last_process": np.where(self.process < 0, first + self.ranks - 1, first)}

    @property
    def processes_of_traces(self) -> list[tuple[int, int]]:
        """First process of each trace, and the one after its last."""
        return list(pairwise([*self.workload.process_base, self.workload.processes]))

    @cached_property
    def times(self) -> Ints:
        """Times by kind, of writes or flushes, and of all calls; shape (WIDTH, rows), see `BusyTimes`."""
        kinds = [self[f"{name}_ns"] for name in ("read", "write", "metadata", "sync")]
        return np.stack([*kinds, self["write_ns"] + self["sync_ns"], self.time_ns])

    @cached_property
    def movers(self) -> Ints:
        """Maximum number of processes that can have moved bytes: one if a single process is known to have moved all."""
        moved = self["bytes_read"] + self["bytes_written"]
        alone = (self["slowest_bytes"] == moved) | (self["fastest_bytes"] == moved)
        movers: Ints = np.where((self.process >= 0) | (alone & (moved > 0)), 1, self.ranks)
        return movers

    @property
    def time_ns(self) -> Ints:
        """Time in calls of any kind."""
        return self["read_ns"] + self["write_ns"] + self["metadata_ns"] + self["sync_ns"]


@dataclass(frozen=True, eq=False)
class TracedSegments:
    """POSIX reads and writes of data set files, by process, file, direction and time; shape (calls,) each."""

    rows: Rows
    trace: Ints
    app: Ints
    file: Ints
    process: Ints
    """Process of the workload; the file is numbered likewise."""
    kind: Ints
    offset: Ints
    size: Ints
    start: Ints
    """On the workload's clock, in ns."""
    end: Ints

    @staticmethod
    def of(rows: Rows, contexts: Sequence[Context], runs: Sequence[RunCounts]) -> TracedSegments:
        """Segments of all runs; empty if no run has any."""
        workload = rows.workload
        parts: list[list[Ints]] = []
        for trace, (context, run) in enumerate(zip(contexts, runs, strict=True)):
            segments = run.segments
            if segments is None or not len(segments.rank):
                continue
            shift = workload.shift_ns[trace]
            file = context.file_codes[segments.file]
            of_trace, app = np.full(len(file), trace), np.full(len(file), context.app)
            process = segments.rank + workload.process_base[trace]
            moved = (segments.kind, segments.offset, segments.size)
            parts.append([of_trace, app, file, process, *moved, segments.start_ns + shift, segments.end_ns + shift])
        columns = [np.concatenate(column) for column in zip([np.empty(0, np.int64)] * 9, *parts, strict=True)]
        in_dataset = workload.file_class[columns[2]] == FileClass.DATASET
        columns = [column[in_dataset] for column in columns]
        order = np.lexsort((columns[7], columns[4], columns[2], columns[3]))
        return TracedSegments(rows, *(column[order] for column in columns))

    def __len__(self) -> int:
        return len(self.file)

    def where(self, chosen: Bools) -> TracedSegments:
        """Select some of them."""
        names = ("trace", "app", "file", "process", "kind", "offset", "size", "start", "end")
        return TracedSegments(self.rows, *(getattr(self, name)[chosen] for name in names))

    @cached_property
    def whole(self) -> Bools:
        """Shape (rows, 2): whether all reads (writes) of a row's file in its run were kept."""
        rows = self.rows
        whole = np.zeros((len(rows), 2), np.bool_)
        posix = rows["layer"] == Layer.POSIX
        trace_file, own = self._trace_files
        for kind, (calls, moved) in enumerate((("reads", "bytes_read"), ("writes", "bytes_written"))):
            counted = group(trace_file[posix], {"calls": rows[calls][posix], "bytes": rows[moved][posix]})
            key, size = own[self.kind == kind], self.size[self.kind == kind]
            traced = group(key, {"calls": np.ones(len(key), np.int64), "bytes": size})
            same = [counted.at(trace_file, name) == traced.at(trace_file, name) for name in ("calls", "bytes")]
            # Buffered streams leave no segments.
            whole[:, kind] = np.where(posix, same[0] & same[1], rows[calls] == 0)
        return whole

    @cached_property
    def of_whole(self) -> TracedSegments:
        """Segments of rows whose segments are complete."""
        posix = self.rows["layer"] == Layer.POSIX
        trace_file, own = self._trace_files
        chosen = np.zeros(len(self), np.bool_)
        for kind in (0, 1):
            chosen |= (self.kind == kind) & np.isin(own, trace_file[posix & self.whole[:, kind]])
        return self.where(chosen)

    @property
    def _trace_files(self) -> tuple[Ints, Ints]:
        """Keys of trace and file of the rows, and of the segments."""
        widths = (len(self.rows.workload.process_base), max(1, self.rows.workload.files))
        return pack((self.rows.trace, self.rows.file), widths), pack((self.trace, self.file), widths)

    def all_in(self, of: Ints, groups: int) -> Bools:
        """Shape (groups, 2): whether all reads (writes) of all rows in a group were kept; group -1 means no group."""
        all_traced = np.ones((groups, 2), np.bool_)
        is_grouped = of >= 0
        for kind in (0, 1):
            all_traced[of[is_grouped & ~self.whole[:, kind]], kind] = False
        return all_traced

    def busy(self, of: Ints, groups: int) -> Ints:
        """Union of each group's calls, shape (groups, WIDTH); `of` is the group of each call, -1 for none."""
        times = np.zeros((groups, WIDTH), np.int64)
        is_grouped = of >= 0
        side = pack((of[is_grouped], self.kind[is_grouped]), SIDES)
        by_kind = merge(side, self.start[is_grouped], self.end[is_grouped])
        keys, lengths = total_length(by_kind)
        owner, kind = unpack(keys, SIDES)
        times[owner, kind] = lengths
        times[:, WRITE_OR_SYNC] = times[:, Kind.WRITE]
        owner, _ = unpack(by_kind.group, SIDES)
        keys, lengths = total_length(merge(owner, by_kind.start, by_kind.end))
        times[keys, ALL] = lengths
        return times

    def spent(self, of: Ints, groups: int) -> Ints:
        """Sum of the call durations of each group; shape (groups, KINDS + 1), the last column for both kinds."""
        times = np.zeros((groups, KINDS + 1), np.int64)
        is_grouped = of >= 0
        length = (self.end - self.start)[is_grouped]
        np.add.at(times, (of[is_grouped], self.kind[is_grouped]), length)
        np.add.at(times, (of[is_grouped], np.full(len(length), KINDS)), length)
        return times

    def sizes(self, phase: Ints) -> Pairs:
        """Sizes by phase, file and kind (see `phase_file_widths`) with their counts."""
        return count_pairs(pack((phase, self.file, self.kind), self.phase_file_widths), self.size)

    @property
    def phase_file_widths(self) -> tuple[int, int, int]:
        """Widths of keys of phase, file and kind."""
        files = self.rows.workload.files
        return (1 << 62) // (2 * max(1, files)), max(1, files), 2

    def extents(self, phase: Ints) -> Intervals:
        """Extents that were touched, by the keys of `sizes`."""
        key = pack((phase, self.file, self.kind), self.phase_file_widths)
        return merge(key, self.offset, self.offset + self.size)

    @cached_property
    def _classified(self) -> tuple[Int8s, Ints]:
        """Class of each call, and its distance from the one before."""
        stream = pack((self.process, self.file, self.kind), (self.rows.workload.processes, *self.phase_file_widths[1:]))
        no = np.zeros(len(self), np.bool_)
        first = np.append(True, stream[1:] != stream[:-1])[: len(self)]
        apart = distances(first, self.offset)
        return classify(first, apart, self.size, no, no, first, no), apart

    @property
    def is_ordered(self) -> Bools:
        """Whether each call is in order; see `vani.analyzers.measures.access_pattern`."""
        ordered: Bools = (self._classified[0] != RANDOM) | (self.size >= LARGE)
        return ordered

    def classes(self, phase: Ints) -> tuple[IntTable, Pairs]:
        """Calls of each class by phase and file; and the count of each distance between them, by file.

        Reopened files cannot be distinguished from files that stay open.
        """
        if not len(self):
            return IntTable(), Pairs()
        widths, (kind, apart) = self.phase_file_widths[:2], self._classified
        columns = {name: (kind == i).astype(np.int64) for i, name in enumerate(NAMES)}
        steps = (kind == NAMES.index("strided")) & (apart != NO_VALUE) & (apart != 0)
        return group(pack((phase, self.file), widths), columns), count_pairs(self.file[steps], apart[steps])

    def users(self, kind: int) -> IntTable:
        """Column `processes`: number of processes that read (write) each file."""
        of_kind = self.kind == kind
        file, _ = np.unique(np.stack([self.file[of_kind], self.process[of_kind]]), axis=1)
        return group(file, {"processes": np.ones(len(file), np.int64)})


def look_ups(rows: Rows) -> NamesAndLocks:
    """Stats; of a file that was never opened, they took all time of metadata operations."""
    looks, nothing = rows["stats"] > 0, np.zeros(len(rows), np.int64)
    columns = {"opens": rows["opens"], "stats": rows["stats"], "stats_ns": rows["metadata_ns"], **rows.users}
    columns |= dict.fromkeys(("failed", "listings", "folder", "opens_ns", "failed_ns", "first"), nothing)
    table = {name: column[looks] for name, column in columns.items()}
    return NamesAndLocks(group(rows.file[looks], table, {"first_process": "min", "last_process": "max"}), None)


def flushes_apart(rows: Rows, segments: TracedSegments) -> tuple[Rows, Bools]:
    """The rows, with `write_ns` excluding flushes and `sync_ns` for these if known; and which rows still mix them.

    Flushes took the part of a file's write and flush time that its write calls did not take. If this is
    unknown for any file of the data set, all rows are left unchanged: a sum would mix both meanings.
    """
    flushed = rows["syncs"] > 0
    known = flushed & rows.included & (rows["layer"] == Layer.POSIX) & segments.whole[:, Kind.WRITE]
    if not known.any() or (flushed & rows.included & ~known).any():
        return rows, flushed
    writing = np.where(known, np.minimum(_writing(rows, segments), rows["write_ns"]), rows["write_ns"])
    apart = {"write_ns": writing, "sync_ns": np.where(known, rows["write_ns"] - writing, 0)}
    return replace(rows, columns={**rows.columns, **apart}), flushed & ~known


def _writing(rows: Rows, segments: TracedSegments) -> Ints:
    """Time of the kept writes of each row's processes and file; a process's concurrent threads count once."""
    workload = rows.workload
    widths, writes = (workload.processes, max(1, workload.files)), segments.kind == Kind.WRITE
    key = pack((segments.process[writes], segments.file[writes]), widths)
    keys, lengths = total_length(merge(key, segments.start[writes], segments.end[writes]))
    alone = IntTable(keys, {"time": lengths})
    process, file = unpack(keys, widths)
    trace = np.searchsorted(np.array(workload.process_base), process, side="right") - 1
    of_runs = (len(workload.process_base), max(1, workload.files))
    together = group(pack((trace, file), of_runs), {"time": lengths})
    return np.where(
        rows.process >= 0,
        alone.at(pack((np.maximum(rows.process, 0), rows.file), widths), "time"),
        together.at(pack((rows.trace, rows.file), of_runs), "time"),
    )
