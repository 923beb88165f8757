"""A run under DFTracer: a folder with its processes' files, or one of these files.

Each process is a rank with its threads; a job's rank also includes the calls of workers that it started. All lines are
parsed once, and their numbers are kept as rows (see `scanned`): a process may have several files, a file may have
several processes, and calls are delivered process by process. An event is written when its call ends, so rows are
sorted by the start of their calls.
"""

import posixpath
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vani.calls import FileClass, Flag, Kind, Layer
from vani.columns import Bools, Columns, Int8s, Int32s, Ints, Numbers, distinct, to_numpy
from vani.errors import TraceError
from vani.readers.dftracer import logs_of
from vani.readers.dftracer.events import AGGREGATED, COMPLETE, EventParser, LineReader
from vani.readers.dftracer.processes import TRACKER, Child, Missing, Processes
from vani.readers.dftracer.rows import PROCESSES, ROWS, Call, Functions, NameCodes, numbers, rows_of
from vani.readers.functions import function_table
from vani.readers.paths import PYTHON, PathTable, classes_of, classify_path, summed
from vani.readers.programs import RANK_LAUNCHERS, app_name
from vani.readers.scanned import KnownLog, LogReader, Spool, batch_of, calls_of_ranks, pairs_of, users_of
from vani.readers.signatures import NO_VALUE
from vani.readers.trace_reader import BATCH_ROWS, Limit
from vani.units import counted

_AGAIN = ("trace again with DFTRACER_ENABLE=1 DFTRACER_INC_METADATA=1, or vani trace --tracer dftracer -- COMMAND")
_LATEST_NS = 5_000_000_000_000_000_000
"""The year 2128: later times are damage, and could exceed 64 bits, which end in 2262."""
_LONGEST_NS = 1_000_000_000_000_000_000
"""Longest plausible duration: 31 years."""
_MAPS = frozenset({"mmap", "mmap64"})
_FAMILY = frozenset(name for name in PROCESSES if name.startswith(("fork", "vfork", "wait", "exec")))


@dataclass(frozen=True, kw_only=True)
class DFTracerLog(KnownLog):
    """Results of parsing all lines."""

    hosts: list[str]
    """Host of each rank; empty if the trace does not name it."""
    with_ranks: bool
    """Whether each process is a rank of MPI or of another launcher, or was started by one."""
    pairs: Ints
    """Process << 32 | number of a file name, ascending."""
    files: Int32s
    """File of each of `pairs`."""
    functions: list[Call]
    """Meaning of each function."""
    missing: Missing


class _Scan:
    """Parses all files of a trace."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._processes = Processes()
        self._functions, self._names = Functions(), NameCodes()
        self._spool = Spool(ROWS, by="process")
        self._calls = np.zeros(0, np.int64)
        """Calls per process."""
        self._pairs = self._uses = self._there = np.zeros(0, np.int64)
        """Distinct pairs of process and file name: all, those of calls that do more than query, and existing files."""
        self._maps = Counter[tuple[int, int]]()
        """Mappings by process and name, and length."""
        """Pairs of process and name, with the number of times that the file was mapped."""
        self._aggregated = self._untimed = 0
        self._with_arguments = False
        self._first: int | None = None
        self._problems: list[str] = []

    def result(self) -> DFTracerLog:
        """Parse all lines, and summarise.

        Raises
        ------
        TraceError
            There are no calls.
        """
        for log in logs_of(self._path):
            self._log(log)
        if self._first is None or not self._calls.any():
            raise self._without_calls()
        if not self._with_arguments:
            raise TraceError(
                "does not name the files of its calls, which DFTracer writes with DFTRACER_INC_METADATA=1",
                where=self._path,
                todo=_AGAIN,
            )
        paths, files = self._resolve()
        n = len(paths.paths)
        classes = classes_of(paths.paths, [], np.zeros(n, np.bool_))
        apps = self._processes.apps()
        of_rank, with_ranks = self._ranks(self._taking_part(files, paths.paths, classes, apps), apps)
        ranks = np.full(len(apps), -1, np.int32)
        ranks[list(of_rank)] = list(of_rank.values())
        first_of = {rank: process for process, rank in reversed(of_rank.items())}
        there = np.zeros(n, np.bool_)
        there[files[np.isin(self._pairs, self._there)]] = True
        maps = Counter[tuple[int, int]]()
        for (pair, length), count in self._maps.items():
            maps[int(files[np.searchsorted(self._pairs, pair)]), length] += count
        return DFTracerLog(
            rows=self._spool,
            calls=calls_of_ranks(ranks, self._calls),
            names=self._functions.names,
            rank_of=ranks,
            apps=[apps[process] for process in reversed(first_of.values())],
            hosts=[self._host(process) for process in reversed(first_of.values())],
            with_ranks=with_ranks,
            pairs=self._pairs,
            files=files,
            paths=paths.paths,
            users=users_of(pairs_of(ranks[self._pairs >> 32], files), n),
            probes=~there,
            classes=classes,
            maps=[([], code, length, count) for (code, length), count in sorted(maps.items())],
            functions=self._functions.calls,
            first_ns=self._first,
            missing=self._processes.missing(),
            problems=[*self._problems, *self._processes.problems(), *self._left_out()],
        )

    def _host(self, process: int) -> str:
        of = self._processes.processes[process]
        return self._processes.name(of, of.host) or of.host

    def _without_calls(self) -> TraceError:
        if self._aggregated:
            return TraceError(
                f"contains sums of calls ({counted(self._aggregated, 'record')}), not the calls",
                where=self._path,
                todo="trace again without DFTRACER_ENABLE_AGGREGATION",
            )
        why = f": {self._problems[0]}" if self._problems else ""
        return TraceError(f"contains no call{why}", where=self._path, todo=_AGAIN)

    def _log(self, log: Path) -> None:
        lines, events = LineReader(log), EventParser()
        self._processes.begin_file()
        host = ""
        for block in lines.blocks():
            if not block:
                continue
            tables, records = events.parse(block)
            host = self._processes.learn(records, host)
            for table in tables:
                self._add(table, host)
        strange = events.strange + lines.too_long
        if lines.empty:
            self._problems.append(f"{log.name}: left out, it is empty")
        if lines.cut:
            self._problems.append(f"{log.name}: ends {lines.cut}, what followed is missing")
        if strange:
            self._problems.append(f"{log.name}: {counted(strange, 'line')} left out, DFTracer writes none like it")

    def _add(self, table: pa.RecordBatch, host: str) -> None:
        phase = to_numpy(table["ph"])
        self._aggregated += int((phase == AGGREGATED).sum())
        whole = phase == COMPLETE
        self._untimed += int(whole.sum())
        for name in ("pid", "ts", "dur"):
            whole &= to_numpy(pc.is_valid(table[name]))
        table = table.filter(pa.array(whole))
        self._untimed -= len(table)
        if not len(table):
            return
        process = self._process(table, host)
        scale = np.array([each.scale for each in self._processes.processes], np.int64)[process]
        begin, took = to_numpy(table["ts"]), to_numpy(table["dur"])
        sound = (begin >= 0) & (begin < _LATEST_NS // scale) & (took < _LONGEST_NS // scale)
        if not sound.all():
            self._untimed += int((~sound).sum())
            table, process, scale = table.filter(pa.array(sound)), process[sound], scale[sound]
        self._rows(table, process, scale)

    def _process(self, table: pa.RecordBatch, host: str) -> Ints:
        """Process number of each event, from its process id and host."""
        args = table["args"]
        hosts: pa.Array = pa.nulls(len(table), pa.string())
        for name in ("hhash", "hostname"):
            if args.type.get_field_index(name) >= 0:
                hosts = pc.coalesce(hosts, pc.cast(pc.struct_field(args, name), pa.string()))
        encoded = pc.dictionary_encode(pc.fill_null(hosts, host))
        pids, place = np.unique(to_numpy(table["pid"]), return_inverse=True)
        both, which = np.unique(to_numpy(encoded.indices) * len(pids) + place, return_inverse=True)
        texts = encoded.dictionary.to_pylist()
        ids, of_pair = to_numpy(table["id"], -1), []
        for index, code in enumerate(both.tolist()):
            own = ids[which == index] if len(both) > 1 else ids
            own = own[own >= 0]
            first = int(own.min()) if len(own) else None
            of_pair.append(self._processes.number(texts[code // len(pids)], int(pids[code % len(pids)]), first))
            self._processes.processes[of_pair[-1]].count(own)
        return np.array(of_pair, np.int64)[which]

    def _rows(self, table: pa.RecordBatch, process: Ints, scale: Ints) -> None:
        rows = rows_of(table, process, scale, self._functions, self._names)
        ids = numbers(table, "id", 0)
        # The latest meaning before an event counts; from the last one back, since a renamed row no longer matches.
        for of, key, since, path in reversed(self._processes.redefined):
            again = (rows["process"] == of) & (ids > since)
            for column in ("name", "rename_to"):
                rows[column][again & (rows[column] == self._names.number(key))] = self._names.number(f"={path}")
        self._children(table, rows)
        counts = ~self._functions.flagged(PROCESSES)[rows["func"]]
        rows = {name: values[counts] for name, values in rows.items()}
        if not counts.any():
            return
        self._with_arguments = self._with_arguments or bool((rows["name"] >= 0).any())
        start = rows["start"]
        first = int(start.min())
        self._first = first if self._first is None else min(self._first, first)
        own = rows["process"]
        for which in distinct(own).tolist():
            entry = self._processes.processes[which]
            begin = int(start[own == which].min())
            entry.first_ns = begin if entry.first_ns is None else min(entry.first_ns, begin)
        self._calls = summed(self._calls, np.bincount(own))
        self._see(rows)
        self._spool.add(batch_of(rows, ROWS))

    def _children(self, table: pa.RecordBatch, rows: Columns) -> None:
        """Record which processes were started and waited for, and when."""
        at = np.flatnonzero(self._functions.flagged(_FAMILY)[rows["func"]])
        if not len(at):
            return
        result = numbers(table["args"], "ret", 0)[at].tolist()
        names = [self._functions.names[code] for code in rows["func"][at].tolist()]
        columns = (rows[name][at].tolist() for name in ("process", "tid", "start", "took"))
        for name, returned, process, tid, start, took in zip(names, result, *columns, strict=True):
            parent = self._processes.processes[process]
            # A vfork child writes into its parent's file.
            pid = tid if name.startswith("exec") else returned
            if pid <= 0 or pid == parent.pid:
                continue
            child = parent.children.setdefault(pid, Child())
            if name.startswith("wait"):
                child.end = start + took
            elif child.begin is None:
                child.begin = start

    def _see(self, rows: Columns) -> None:
        """Record the rows' files, and which of them exist and are used."""
        name, flags, kind, process, target = (rows[n] for n in ("name", "flags", "kind", "process", "rename_to"))
        named = name >= 0
        pair, renamed = process << 32 | name, (process << 32 | target)[target >= 0]
        self._pairs = distinct(self._pairs, pair[named], renamed)
        asks = (flags & (Flag.STAT | Flag.DIRECTORY)) != 0
        opens = (flags & (Flag.OPEN | Flag.CREATE)) == Flag.OPEN
        # A failed open has lost its flags; version 2 does not record an open's result.
        lost = np.array([name.startswith(("open", "fopen")) for name in self._functions.names], np.bool_)
        lost = lost[rows["func"]] & ((flags & (Flag.OPEN | Flag.DIRECTORY)) == 0)
        self._there = distinct(self._there, pair[named & ~asks & ~opens & ~lost], renamed)
        mapped = self._functions.flagged(_MAPS)[rows["func"]] & named
        moves = (kind == Kind.READ) | (kind == Kind.WRITE)
        changes = (flags & (Flag.CREATE | Flag.REMOVE | Flag.RENAME | Flag.RESIZE)) != 0
        self._uses = distinct(self._uses, pair[named & (moves | changes | mapped)])
        lengths = np.where(rows["length"] == NO_VALUE, -1, rows["length"])[mapped]
        self._maps.update(zip(pair[mapped].tolist(), lengths.tolist(), strict=True))

    def _resolve(self) -> tuple[PathTable, Int32s]:
        """The trace's files, and the file of each pair; relative names begin in a process's working directory."""
        table, name = PathTable(), self._processes.name
        files = np.empty(len(self._pairs), np.int32)
        for at, pair in enumerate(self._pairs.tolist()):
            process, text = self._processes.processes[pair >> 32], self._names.texts[pair & 0xFFFFFFFF]
            path = text[1:] if text.startswith("=") else name(process, text) or f"({text})"
            if not path.startswith(("/", "(")) and path not in ("stdin", "stdout", "stderr"):
                path = posixpath.join(name(process, process.folder) or "", path)
            files[at] = table.code(path)
        return table, files

    def _taking_part(self, files: Int32s, paths: list[str], classes: Int8s, apps: list[str]) -> Bools:
        """Mark the processes of apps that work on data: on more files than an interpreter or a loader reads."""
        data = np.fromiter(
            (
                kind == FileClass.DATASET
                and classify_path(path) is FileClass.DATASET
                and not PYTHON.search(path)
                for path, kind in zip(paths, classes.tolist(), strict=True)
            ),
            np.bool_,
            len(paths),
        )
        calls = self._calls = summed(self._calls, np.zeros(len(apps), np.int64))
        used = np.isin(self._pairs, self._uses) & data[files]
        busy = {apps[process] for process in np.unique(self._pairs[used] >> 32).tolist()}
        busy -= {TRACKER, *RANK_LAUNCHERS}
        part: Bools = (calls > 0) & np.array([app in busy for app in apps], np.bool_)
        return part if part.any() else calls > 0

    def _ranks(self, part: Bools, apps: Sequence[str]) -> tuple[dict[int, int], bool]:
        """The rank of each process that takes part, and whether these are ranks of a job.

        A job's workers belong to the rank that started them; otherwise each process is a rank. Ranks are ordered by
        MPI rank, or by start time.
        """
        processes, chosen = self._processes.processes, np.flatnonzero(part).tolist()
        roots = {number: self._processes.root(number, apps) for number in chosen}
        with_ranks = None not in roots.values()
        leaders = {number: number if root is None or not with_ranks else root for number, root in roots.items()}
        of_mpi = [processes[number].rank for number in set(leaders.values())]
        by_mpi = None not in of_mpi and len(set(of_mpi)) == len(of_mpi)

        def place(number: int) -> tuple[int, int, int]:
            process = processes[number]
            return (process.rank or 0) if by_mpi else 0, process.first_ns or 0, number

        rank = {number: at for at, number in enumerate(sorted(set(leaders.values()), key=place))}
        return {number: rank[leaders[number]] for number in sorted(chosen, key=lambda n: rank[leaders[n]])}, with_ranks

    def _left_out(self) -> list[str]:
        problems = []
        if self._untimed:
            problems.append(f"{counted(self._untimed, 'event')} left out, without a process or a time of a run")
        if self._aggregated:
            problems.append(f"{counted(self._aggregated, 'record')} of sums left out: they are not calls")
        return problems


_LIMITS = (
    Limit("io.time_s", "times are whole microseconds, as DFTracer writes them"),
    Limit(
        "io.bytes",
        "bytes are what calls moved, as they returned it; calls through duplicated descriptors (dup, redirections), "
        "openat, stat of glibc 2.33 and newer, preadv2 and pwritev2 (os.preadv, os.pwritev of Python), formatted "
        "output, io_uring and libaio leave no record",
    ),
    Limit(
        "interfaces.layer",
        "DFTracer records calls of the file system: MPI-IO, HDF5 and netCDF are seen as the calls they make",
    ),
    Limit(
        "io.access_pattern", "files are named, not descriptors: two descriptors of one path share a position"
    ),
    Limit(
        "io.past_end",
        "opens do not record success: a path that is opened, and neither closed nor used, counts as a failed "
        "look-up",
    ),
    Limit(
        "workflow.processes",
        "each process with an I/O call counts, but for programs that only load their libraries and modules",
    ),
)


class DFTracerReader(LogReader[DFTracerLog]):
    """A DFTracer trace, or the processes of one app in it."""

    tool: ClassVar = "dftracer"
    format: ClassVar = "pfw"
    _log: ClassVar = "file of DFTracer"
    _parts_of = staticmethod(logs_of)
    _by_time: ClassVar = True
    _late: ClassVar = BATCH_ROWS
    _limits: ClassVar = _LIMITS

    @property
    def layout(self) -> str:
        """`ranks` if each is an MPI rank, or of a launcher such as torchrun, including the workers that it started."""
        return "ranks" if self.known.with_ranks else "processes"

    @property
    def app(self) -> str:
        if self._app is not None:
            return self._app
        names = set(self._apps(self.known))
        return names.pop() if len(names) == 1 else self._other_app

    @property
    def _other_app(self) -> str:
        return app_name(self.path.resolve().name.partition(".pfw")[0])

    def functions(self) -> pa.Table:
        calls = self.known.functions
        return function_table(self.known.names, [call.layer for call in calls], [call.kind for call in calls])

    def facts(self) -> list[tuple[str, list[str], int]]:
        """Hosts, data set files that were mapped into memory, and processes without events."""
        hosts, missing = list(dict.fromkeys(self.known.hosts)), self.known.missing
        bound = [] if missing.most_ns is None else [str(missing.most_ns)]
        return [
            *([("processes_missing", bound, missing.number)] if missing.number else []),
            # Only if each process has a host.
            *([("hosts", hosts, 1)] if all(hosts) else []),
            *self.mapped_files(),
        ]

    def _parse(self) -> DFTracerLog:
        return _Scan(self.path).result()

    def _selected(self, known: DFTracerLog, is_own: Bools) -> DFTracerLog:
        with_files = set(known.files[(known.rank_of >= 0)[known.pairs >> 32]].tolist())
        return replace(
            known,
            hosts=[host for host, own in zip(known.hosts, is_own.tolist(), strict=True) if own],
            maps=[mapped for mapped in known.maps if mapped[1] in with_files],
            missing=known.missing if is_own[0] else Missing(0, None),
        )

    def _layers(self, column: Columns) -> Int8s:
        return np.array([call.layer for call in self.known.functions], np.int8)[column["func"]]

    def _ties(self, column: Columns) -> tuple[Numbers, ...]:
        # Many calls begin in the same microsecond: a library call precedes the calls that it made, while calls of the
        # C library do not nest, and keep the order of events.
        return (Layer.USER - np.maximum(self._layers(column), Layer.STDIO),)

    def _interpreted(self, column: Columns) -> Columns:
        files = {"file": self._files(column, "name"), "rename_to": self._files(column, "rename_to")}
        return {"layer": self._layers(column), "thread": column["tid"], **files}

    def _files(self, column: Columns, name: str) -> Int32s:
        """The file of each call, -1 for none; a relative name is resolved in its process's working directory."""
        known, files = self.known, np.full(len(column["start"]), -1, np.int32)
        rows = np.flatnonzero(column[name] >= 0)
        if len(rows):
            pair = column["process"][rows].astype(np.int64) << 32 | column[name][rows]
            files[rows] = known.files[np.searchsorted(known.pairs, pair)]
        return files
