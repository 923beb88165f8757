"""A run under strace: one log, or a folder with a log for each process or MPI rank.

A log with processes of several programs counts as several traces. Each process is a rank with its threads; if
`vani trace` wrote a log per MPI rank, all processes in a log belong to that rank. All lines are parsed once, and their
numbers are kept as rows (see `scanned`), because a log mixes lines of simultaneous processes and calls are delivered
process by process.
"""

import re
from collections import Counter, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vani.calls import FileClass, Flag, Kind, Layer
from vani.columns import Bools, Columns, Int8s, Int32s, Ints, distinct, scalar, to_arrow, to_numpy
from vani.errors import TraceError
from vani.readers.files import head_of, readable
from vani.readers.functions import function_table
from vani.readers.paths import SHM, PathTable, classes_of, marked, padded, summed
from vani.readers.programs import RANK_LAUNCHERS, app_of, is_interpreter, is_launcher
from vani.readers.scanned import KnownLog, LogReader, Spool, batch_of, calls_of_ranks, pairs_of, users_of
from vani.readers.signatures import NO_VALUE
from vani.readers.strace import host_of, logs_of, pid_of, rank_of, system_calls
from vani.readers.strace.lines import Calls, LineReader, Spellings, integers
from vani.readers.strace.processes import Bystanders, Processes, Scripts, app_names, command_of
from vani.readers.strace.rows import ROWS, Descriptors, refused_locks, rows_of
from vani.readers.strace.system_calls import CALLS, RING, WANTED, Names, kind_of
from vani.readers.trace_reader import Limit, most_of, some_ranks
from vani.units import counted

_MMAP = (
    r"^[^,]*, (?P<length>\d{1,18}), (?P<access>[A-Z_|]+), (?P<flags>\w+(?:\|\w+)*), "
    r"\d+<(?P<path>[^<>]*)(?:<[^<>]*>)?>(?:\(deleted\))?, [^,]*$"
)
_NAMES = ("mmap", "mmap2")
_MOST_REGIONS = 1000
"""Shared mappings that are kept to find the file of a flush (our choice)."""
_FRAME = r" > (?:.*/)?(?P<program>[^/]{1,255}?)\((?P<function>.{1,255})\+0x[0-9a-f]+\) \[0x"


class Maps:
    """Counts the mappings of each file by use, without the loader's mappings of programs and libraries."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, int, int]] = Counter()
        """By use, file and length."""
        self._regions: deque[tuple[int, int, int, int]] = deque(maxlen=_MOST_REGIONS)
        """Shared mappings as in `_count`, the latest last."""

    def see(self, calls: Calls, spellings: Spellings) -> dict[int, int]:
        """Add the calls of a block; return the file of each of its msync that flushes a shared mapping."""
        at = np.flatnonzero(calls.of(*_NAMES) & (calls.value >= 0))
        new = self._count(calls, at, spellings) if len(at) else []
        if not new and not self._regions:
            return {}
        at = np.flatnonzero(calls.of("msync"))
        addresses = pc.list_element(pc.split_pattern(calls.args.take(to_arrow(at)), ","), 0).to_pylist()
        files, mapped = dict[int, int](), 0
        for row, text in zip(at.tolist(), addresses, strict=True):
            while mapped < len(new) and new[mapped][0] < row:
                self._regions.append(new[mapped])
                mapped += 1
            address = int(text, 16) if re.fullmatch("0x[0-9a-f]{1,15}", text) else -1
            code = next((code for _, first, end, code in reversed(self._regions) if first <= address < end), None)
            files |= {} if code is None else {row: code}
        self._regions.extend(new[mapped:])
        return files

    def _count(self, calls: Calls, at: Ints, spellings: Spellings) -> list[tuple[int, int, int, int]]:
        """Count mappings; return the call, first address, end and file of each shared one."""
        fields = pc.extract_regex(calls.args.take(to_arrow(at)), _MMAP)
        at, fields = at[to_numpy(pc.is_valid(fields))], fields.filter(pc.is_valid(fields))
        shared = np.flatnonzero(to_numpy(pc.match_substring(pc.struct_field(fields, "flags"), "MAP_SHARED")))
        first, length = calls.value[at[shared]], integers(pc.struct_field(fields, "length").take(to_arrow(shared)), 0)
        paths = pc.struct_field(fields, "path").take(to_arrow(shared))
        codes = spellings.codes(paths, pa.array([""] * len(shared), pa.string()))
        rows = zip(*(column.tolist() for column in (at[shared], first, first + length, codes)), strict=True)
        columns = [pc.struct_field(fields, name) for name in ("access", "flags", "length", "path")]
        # No line contains a newline.
        distinct = pc.value_counts(pc.binary_join_element_wise(*columns, scalar("\n"))).to_pylist()
        for entry in distinct:
            access, flags, length, path = entry["values"].split("\n")
            use = _use(access.split("|"), flags.split("|"))
            if use:
                (code,) = spellings.codes(pa.array([path]), pa.array([""])).tolist()
                self._counts[use, code, int(length)] += entry["counts"]
        return list(rows)

    def files(self) -> set[int]:
        """Files that were mapped for shared writing."""
        return {code for use, code, _ in self._counts if use == "shared_write"}

    def counts(self) -> list[tuple[list[str], int, int, int]]:
        """([`shared_write` or `read`], file, length, number of calls), in order of first appearance."""
        return [([use], code, length, count) for (use, code, length), count in self._counts.items()]


def _use(access: list[str], flags: list[str]) -> str:
    if "PROT_EXEC" in access or "MAP_DENYWRITE" in flags:
        return ""
    is_shared = "MAP_SHARED" in flags or "MAP_SHARED_VALIDATE" in flags
    if is_shared and "PROT_WRITE" in access:
        return "shared_write"
    return "read" if is_shared or "PROT_READ" in access else ""


_READS = np.array([kind_of(name) is Kind.READ for name in system_calls.FUNCTIONS])
"""Whether each function reads, by code."""
_SOON_NS = 1_000_000_000
"""Nanoseconds: a file in /dev/shm that is mapped and unlinked this soon after its creation shares memory between
processes. Programs that keep data there read it back, or remove it when they end."""


class SharedMemory:
    """Times when files in /dev/shm were created, read and removed."""

    def __init__(self) -> None:
        self._in_shm = np.zeros(0, np.bool_)
        """Whether each file is in /dev/shm."""
        self._created: dict[int, int] = {}
        """Nanoseconds, by file."""
        self._removed: dict[int, int] = {}
        self._read: set[int] = set()

    def see(self, rows: Columns, paths: Sequence[str]) -> None:
        """Add rows of a block (`rows.ROWS`); `paths` are by code."""
        new = [path.startswith(SHM) for path in paths[len(self._in_shm) :]]
        self._in_shm = np.append(self._in_shm, np.array(new, np.bool_))
        if not self._in_shm.any():
            return
        at = np.flatnonzero((rows["file"] >= 0) & self._in_shm[rows["file"]])
        file, start, flags, func, size = (rows[name][at] for name in ("file", "start", "flags", "func", "bytes"))
        self._read.update(file[_READS[func] & (size != NO_VALUE)].tolist())
        for flag, times in ((Flag.CREATE, self._created), (Flag.REMOVE, self._removed)):
            rows_of_flag = np.flatnonzero(flags & flag)
            for code, when in zip(file[rows_of_flag].tolist(), start[rows_of_flag].tolist(), strict=True):
                times.setdefault(code, when)

    def passes_memory(self, mapped: Collection[int]) -> list[int]:
        """Files that were created, mapped (`mapped`) and soon unlinked, and that no call reads."""
        return [
            code
            for code, when in self._created.items()
            if code in mapped
            and code not in self._read
            and when <= self._removed.get(code, -1) <= when + _SOON_NS
        ]


_AGAIN = "trace again: strace -f -ttt -T -y -o FILE COMMAND, or vani trace -- COMMAND"
_DESCRIPTORS = np.array([name in CALLS and CALLS[name].names is Names.DESCRIPTOR for name in system_calls.FUNCTIONS])
"""Whether each function names its file by a descriptor."""
_LOADER = ("/etc/ld.so.cache", "/etc/ld.so.preload")
"""Files that are read to load shared libraries, and are classified like them."""
_MPI = re.compile(r"/lib(?:mpi|mpich|mpi_\w+)[\w-]*\.so[\d.]*$")
_HIDDEN = np.array([name in RING or name == "io_submit" for name in system_calls.FUNCTIONS])
"""Whether each function moves data that the log does not show."""


@dataclass(frozen=True, kw_only=True)
class StraceLog(KnownLog):
    """Results of parsing all lines."""

    functions: Ints
    """Number of calls by function."""
    with_mpi: Bools
    """Whether each rank loaded an MPI library."""
    refused: Counter[tuple[str, str]]
    """Number of calls that did not get a lock, by function and error."""
    of_job: bool
    """Whether ranks belong to a job that torchrun or a similar launcher started."""


class _Scan:
    """Parses all logs of a trace."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._logs = logs_of(path)
        self._processes = Processes(reused=len(self._logs) == 1 or rank_of(self._logs[0]) is not None)
        self._descriptors = Descriptors(self._processes)
        self._paths = PathTable()
        self._spellings = Spellings(self._paths)
        self._spool = Spool(ROWS, by="thread")
        self._calls = np.zeros(0, np.int64)
        """Calls by thread."""
        self._pairs = np.zeros(0, np.int64)
        """Distinct pairs of a thread and a file that it names."""
        self._there = np.zeros(0, np.bool_)
        self._by_other_ways = np.zeros(0, np.bool_)
        """Whether each file exists, and whether it is used other than through standard streams."""
        self._rank_of_log: list[int] = []
        """The MPI rank of each thread's log, or -1."""
        self._named = self._nameless = self._timed = self._lines = 0
        self._functions = np.zeros(len(system_calls.FUNCTIONS), np.int64)
        self._maps = Maps()
        self._refused = Counter[tuple[str, str]]()
        self._shared_memory = SharedMemory()
        self._scripts = Scripts()
        self._bystanders = Bystanders()
        self._first: int | None = None
        self._of_job = False
        self._problems: list[str] = []

    def result(self) -> StraceLog:
        """Parse all lines, and summarise.

        Raises
        ------
        TraceError
            There are no calls, or strace ran without options that Vani needs.
        """
        for log in self._logs:
            self._log(log)
        if self._first is None or not self._calls.any():
            raise TraceError("contains no call on files", where=self._path, todo=_AGAIN)
        if self._nameless and not self._named:
            raise TraceError("has no paths of descriptors, which strace writes with -y", where=self._path, todo=_AGAIN)
        if not self._timed:
            raise TraceError("lacks the durations of calls, which strace writes with -T", where=self._path, todo=_AGAIN)
        files = len(self._paths.paths)
        exists = padded(self._there, files)
        classes = classes_of(
            self._paths.paths,
            self._shared_memory.passes_memory(self._maps.files()),
            exists & ~padded(self._by_other_ways, files),
        )
        loading = np.array([path in _LOADER for path in self._paths.paths], np.bool_)
        classes[loading] = FileClass.SHARED_LIBRARY
        apps = app_names(
            self._processes.executions,
            self._scripts.by_execution(self._paths.paths),
            command_of(self._path),
        )
        ranks, problems = self._ranks(classes, apps)
        calls = calls_of_ranks(ranks, self._calls)
        pairs = pairs_of(ranks[self._pairs >> 32], self._pairs & 0xFFFFFFFF)
        # Libraries with which MPI programs are linked.
        of_mpi = np.array([_MPI.search(path) is not None for path in self._paths.paths], np.bool_)
        return StraceLog(
            rows=self._spool,
            calls=calls,
            names=list(system_calls.FUNCTIONS),
            rank_of=ranks,
            paths=self._paths.paths,
            users=users_of(pairs, files),
            probes=~exists & ~loading,
            classes=classes,
            maps=self._maps.counts(),
            functions=self._functions,
            refused=self._refused,
            first_ns=self._first,
            apps=self._apps_of(ranks, apps),
            with_mpi=np.bincount(pairs[of_mpi[pairs & 0xFFFFFFFF]] >> 32, minlength=len(calls)) > 0,
            of_job=self._of_job,
            problems=[*self._problems, *problems],
        )

    def _log(self, log: Path) -> None:
        rank = rank_of(log)
        if rank is not None:
            self._processes.next_log()
        lines = LineReader(log, frozenset(WANTED), pid_of(log))
        for block in lines.blocks():
            thread = self._processes.threads(block)
            folders = self._processes.learn(block.calls, thread)
            synced = self._maps.see(block.calls, self._spellings)
            self._refused.update(refused_locks(block.calls))
            self._timed += int((block.calls.took >= 0).sum())
            self._add(rows_of(block.calls, thread, folders, self._spellings, self._descriptors, synced))
        number = len(self._processes.begun_by)
        self._rank_of_log += [-1 if rank is None else rank] * (number - len(self._rank_of_log))
        self._report(log, lines)

    def _add(self, rows: Columns) -> None:
        thread, file, func, there = (rows[name] for name in ("thread", "file", "func", "there"))
        if not len(thread):
            return
        self._spool.add(batch_of(rows, ROWS))
        self._functions += np.bincount(func, minlength=len(self._functions))
        self._shared_memory.see(rows, self._paths.paths)
        self._calls = summed(self._calls, np.bincount(thread))
        self._see_programs(rows)
        named = file >= 0
        opened = _DESCRIPTORS[func] & there
        self._named += int((opened & named).sum())
        self._nameless += int((opened & ~named).sum())
        self._pairs = distinct(self._pairs, thread[named].astype(np.int64) << 32 | file[named])
        there, new_names = named & there, rows["rename_to"][rows["rename_to"] >= 0]
        self._there = marked(self._there, np.concatenate((file[there], new_names)))
        other = np.concatenate((file[there & ~rows["standard"]], new_names))
        self._by_other_ways = marked(self._by_other_ways, other)

    def _see_programs(self, rows: Columns) -> None:
        executions = self._processes.executions
        if executions:
            execution = np.array(self._processes.execution, np.int64)
            self._scripts.see(rows, self._paths.paths, execution, [program.start for program in executions])
            self._bystanders.see(rows, self._processes, self._calls)

    def _apps_of(self, ranks: Int32s, names: list[str]) -> list[str]:
        """The app of each rank: that of its first process with a program, preferably one that is not a launcher."""
        apps = [""] * (int(ranks.max(initial=-1)) + 1)
        of_launchers = list(apps)
        for rank, execution in zip(ranks.tolist(), self._processes.execution, strict=True):
            if rank >= 0 and execution >= 0:
                launches = is_launcher(self._processes.executions[execution].file)
                some = of_launchers if launches else apps
                some[rank] = some[rank] or names[execution]
        return [app or launcher for app, launcher in zip(apps, of_launchers, strict=True)]

    def _report(self, log: Path, lines: LineReader) -> None:
        if lines.first_ns is None:
            if lines.untimed:
                raise TraceError(
                    "has no times of day since 1970, which strace writes with -ttt", where=log, todo=_AGAIN
                )
            self._problems.append(f"{log.name}: left out, it has no line of strace")
            return
        self._first = lines.first_ns if self._first is None else min(self._first, lines.first_ns)
        if lines.cut:
            self._problems.append(f"{log.name}: ends in the middle of a line, what followed is missing")
        if lines.strange:
            self._problems.append(f"{log.name}: {counted(lines.strange, 'line')} left out, strace writes none like it")

    def _ranks(self, classes: Int8s, apps: list[str]) -> tuple[Int32s, list[str]]:
        """The rank of each thread, and problems; `classes` by file, `apps` by execution."""
        leaders = self._processes.leaders()
        number = len(leaders)
        calls = self._calls = summed(self._calls, np.zeros(number, np.int64))
        problems = []
        open_ = np.flatnonzero(~np.array(self._processes.ended) & (calls > 0))
        if len(open_):
            problems.append(
                f"{counted(len(open_), 'thread')} of {(calls > 0).sum():,} still ran where the log ends: "
                "it is cut off, or strace was ended before them"
            )
        hidden = int(self._functions[_HIDDEN].sum())
        if hidden:
            problems.append(
                f"{counted(hidden, 'call')} of io_uring or io_submit: "
                "reads and writes through them are not recorded"
            )
        of_log = np.array(self._rank_of_log, np.int64)
        if (of_log >= 0).any():
            present = distinct(of_log[of_log >= 0])
            missing = np.setdiff1d(np.arange(int(present[-1]) + 1), present)
            if len(missing):
                problems.append(f"ranks {some_ranks(missing)}: left out, their logs are missing")
            return of_log.astype(np.int32), problems
        of_leader = np.bincount(leaders, calls, number) > 0
        of_leader &= ~self._bystanders.threads(self._processes, apps, calls, self._paths.paths, classes)
        of_job = self._ranks_of_job(np.flatnonzero(of_leader).tolist(), leaders, apps)
        rank = np.where(of_leader, np.cumsum(of_leader) - 1, -1)
        if of_job:
            rank[:] = -1
            rank[list(of_job)] = list(of_job.values())
        return rank[leaders].astype(np.int32), problems

    def _ranks_of_job(self, processes: list[int], leaders: Ints, apps: list[str]) -> dict[int, int]:
        """Ranks that a launcher such as torchrun started, with their children; empty if other processes took part."""
        executions = self._processes.execution
        roots = {
            process: self._processes.root(process, leaders, apps)
            for process in processes
            if executions[process] < 0 or apps[executions[process]] not in RANK_LAUNCHERS
        }
        self._of_job = bool(roots) and None not in roots.values()
        if not self._of_job:
            return {}
        known = {process: root for process, root in roots.items() if root is not None}
        numbers = {root: rank for rank, root in enumerate(sorted(set(known.values())))}
        return {process: numbers[root] for process, root in known.items()}


_KINDS = tuple(kind_of(name) for name in system_calls.FUNCTIONS)
_UNDECODED = {**{name: [] for name in RING}, "io_submit": ["undecoded"]}
"""Arguments of facts about calls that move data which the log does not show."""
_LIMITS = (
    Limit(
        "io.time_s",
        "inflated: strace stops the program at each call, which adds some 50 us; counts, bytes and order are exact, "
        "trace with Recorder for times",
    ),
    Limit(
        "io.bytes",
        "bytes are what calls returned; transfers through mapped memory and io_uring are in no call",
    ),
    Limit("io.access_pattern", "a process has one position per path: two descriptors of one path share it"),
    Limit(
        "interfaces.layer",
        "strace sees system calls only: stdio, MPI-IO, HDF5 and netCDF are seen as the calls they make",
    ),
    Limit(
        "workflow.processes",
        "each process with an I/O call counts, or each MPI rank where `vani trace` began one log per rank; shells and "
        "launchers that only start programs, and tools that only ask about a few files, are left out with their "
        "calls. Ranks of MPI without a log each are numbered in the order in which they appear",
    ),
)


class StraceReader(LogReader[StraceLog]):
    """One strace log, or a folder with the logs of one run."""

    tool: ClassVar = "strace"
    format: ClassVar = "-ttt -T -y"
    _log: ClassVar = "log of strace"
    _parts_of = staticmethod(logs_of)
    _limits: ClassVar = _LIMITS

    @property
    def layout(self) -> str:
        """`ranks` if each MPI rank has its log, all of several processes loaded MPI, or torchrun started them."""
        if self._has_logs_of_ranks:
            return "ranks"
        with_mpi = self.known.with_mpi
        return "ranks" if self.known.of_job or (len(with_mpi) > 1 and with_mpi.all()) else "processes"

    @property
    def _has_logs_of_ranks(self) -> bool:
        return rank_of(logs_of(self.path)[0]) is not None

    @property
    def app(self) -> str:
        if self._app is not None:
            return self._app
        noted = app_of(command_of(self.path))
        if noted and not is_launcher(noted) and self._has_logs_of_ranks:
            return noted
        names = self._apps(self.known)
        return names[0] if len(set(names)) == 1 or self._has_logs_of_ranks else noted or self.path.stem

    @property
    def _other_app(self) -> str:
        return app_of(command_of(self.path)) or self.path.stem

    def by_app(self) -> Sequence[Self]:
        """See `LogReader.by_app`; ranks stay together, unless one launcher command started several programs."""
        return [self] if self._has_logs_of_ranks and ":" not in command_of(self.path) else super().by_app()

    def functions(self) -> pa.Table:
        return function_table(self.known.names, [Layer.POSIX] * len(_KINDS), _KINDS)

    def facts(self) -> list[tuple[str, list[str], int]]:
        """The command, and calls whose data the log does not show: mapped data set files, io_uring and others."""
        counts = dict(zip(self.known.names, self.known.functions.tolist(), strict=True))
        hidden = [(name, args, counts[name]) for name, args in _UNDECODED.items() if counts[name]]
        command = command_of(self.path)
        ran = [("execve", command, 1)] if command else []
        hosts = {host_of(log) for log in logs_of(self.path)}
        on = [("hosts", sorted(str(host) for host in hosts), 1)] if None not in hosts else []
        # Each rank with its own log may run on another host; without them, strace followed processes on its own.
        alone: list[tuple[str, list[str], int]] = [] if on or self._has_logs_of_ranks else [("one_host", [], 1)]
        refused = [(name, ["refused", error], count) for (name, error), count in self.known.refused.items()]
        return [*ran, *on, *alone, *hidden, *refused, *self.mapped_files()]

    def caller_of(self, function: str, rank: int) -> str | None:  # noqa: ARG002 - all processes are read
        """See `NamesCallers`: stacks of `strace -k`, the first frame of each outside shared libraries."""
        frames: Counter[str | None] = Counter()
        for log in logs_of(self.path):
            if b"\n > " not in head_of(log, 1 << 16):
                continue
            is_asked = False
            with readable(log), log.open(errors="replace") as lines:
                for line in lines:
                    if not line.startswith(" > "):
                        is_asked = f" {function}(" in line or f" {function} resumed" in line
                    elif is_asked and (frame := re.match(_FRAME, line)) and ".so" not in frame["program"]:
                        is_asked, program = False, frame["program"]
                        frames[None if is_interpreter(program) else f"{frame['function']} in {program}"] += 1
        return most_of(frames)

    def _parse(self) -> StraceLog:
        return _Scan(self.path).result()

    def _selected(self, known: StraceLog, is_own: Bools) -> StraceLog:
        known = replace(known, with_mpi=known.with_mpi[is_own])
        if is_own[0]:
            return known
        return replace(known, maps=[], refused=Counter(), functions=np.zeros_like(known.functions))

    def _interpreted(self, column: Columns) -> Columns:
        kind = np.array(_KINDS, np.int8)[column["func"]]
        # A call that moves no bytes, such as a failed one or a read at the end of a file, is not a data operation.
        kind[((kind == Kind.READ) | (kind == Kind.WRITE)) & (column["bytes"] == NO_VALUE)] = Kind.METADATA
        return {"layer": np.full(len(kind), Layer.POSIX, np.int8), "kind": kind, "thread": column["pid"]}
