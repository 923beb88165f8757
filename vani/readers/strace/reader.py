"""A run that strace watched: one log, or a folder with a log for each process or MPI rank.

Each process is a rank, its threads are the rank's threads; where `vani trace` wrote a log per MPI rank, all processes
of a log are that rank. All lines are parsed once; rows of numbers are kept (see `spool`), since lines of processes that
run at once are mixed in a log and calls are delivered process by process.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vani.calls import FILES, FUNCTIONS, FileClass, Kind, Layer
from vani.columns import small_table, texts, to_numpy
from vani.errors import TraceError
from vani.readers.delivery import Delivery, Rows
from vani.readers.identity import identity_of
from vani.readers.paths import PathTable
from vani.readers.signatures import Signatures
from vani.readers.some_ranks import some_ranks
from vani.readers.strace import system_calls
from vani.readers.strace.app import app_of, command_in, command_of
from vani.readers.strace.lines import LineReader
from vani.readers.strace.names import Spellings
from vani.readers.strace.probe import logs_of, pid_of, rank_of
from vani.readers.strace.processes import Processes
from vani.readers.strace.rows import ROWS, rows_of
from vani.readers.strace.spool import Spool
from vani.readers.strace.system_calls import CALLS, RING, WANTED
from vani.readers.tables import file_table
from vani.readers.trace_reader import BATCH_ROWS, Limit, Piece
from vani.units import counted

__all__ = ["StraceReader"]

Ints = NDArray[np.int64]

_GROUP_ROWS = 4 * BATCH_ROWS
_AGAIN = "trace again: strace -f -ttt -T -y -o FILE COMMAND, or vani trace -- COMMAND"
_LOADER = ("/etc/ld.so.cache", "/etc/ld.so.preload")
"""Read to load shared libraries, as those are."""
_KINDS = tuple(Kind.READ if name.endswith(":read") else CALLS[name].kind for name in system_calls.FUNCTIONS)

_LIMITS = (
    Limit(
        "io.time_s",
        "inflated: strace stops the program at each call, which adds some 50 us; counts, bytes and order are exact, "
        "trace with Recorder for times",
    ),
    Limit(
        "io.bytes",
        "bytes are what calls moved, as they returned it; what goes through mapped memory and io_uring is in no call",
    ),
    Limit("io.access_pattern", "a process has one position per path: two descriptors of one path share it"),
    Limit(
        "interfaces",
        "strace sees system calls only: stdio, MPI-IO, HDF5 and netCDF are seen as the calls they make",
    ),
    Limit(
        "workflow.processes",
        "each process with an I/O call counts, or each MPI rank where `vani trace` began one log per rank",
    ),
)


@dataclass(frozen=True)
class _Known:
    """What parsing all lines told."""

    rows: Spool
    calls: Ints
    """By rank."""
    rank_of_thread: NDArray[np.int32]
    """-1 for threads without calls."""
    paths: list[str]
    users: Ints
    """Number of ranks by file."""
    probes: NDArray[np.bool_]
    first_ns: int
    command: list[str]
    problems: list[str]


class StraceReader:
    """One log of strace, or a folder of logs of one run."""

    tool = "strace"
    layout = "strace"
    format = "-ttt -T -y"

    def __init__(self, path: Path) -> None:
        """Find the logs; reads no line yet.

        Raises
        ------
        TraceError
            There is none.
        """
        self.path = path
        self._identity = identity_of(path, logs_of, with_ends=True)
        self._lock = threading.Lock()
        self._known: _Known | None = None
        if not logs_of(path):
            raise TraceError("holds no log of strace", where=path, todo="trace the run again")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path.absolute(),)

    @property
    def app(self) -> str:
        # What `vani trace` noted is whole, strace cuts long arguments off.
        return app_of(command_of(self.path)) or app_of(self.known.command) or self.path.stem

    @property
    def ranks(self) -> int:
        return len(self.known.calls)

    @property
    def start_unix_s(self) -> float | None:
        return self.known.first_ns / 1e9

    @property
    def limits(self) -> tuple[Limit, ...]:
        return _LIMITS

    @property
    def problems(self) -> list[str]:
        return self.known.problems

    def digest(self) -> str:
        return self._identity.digest()

    def changed(self) -> bool:
        return identity_of(self.path, logs_of, with_ends=True) != self._identity

    def calls_per_rank(self) -> Ints:
        return self.known.calls

    def functions(self) -> pa.Table:
        names = system_calls.FUNCTIONS
        return small_table(
            [range(len(names)), names, [int(Layer.POSIX)] * len(names), [int(k) for k in _KINDS]], FUNCTIONS
        )

    def files(self) -> pa.Table:
        table = file_table(self.known.paths, self.known.probes)
        loading = pc.is_in(table["path"], value_set=texts(_LOADER))
        classes = pc.if_else(loading, pa.scalar(int(FileClass.SHARED_LIBRARY), pa.int8()), table["class"])
        return table.set_column(table.schema.get_field_index("class"), FILES.field("class"), classes)

    def facts(self) -> list[tuple[str, list[str], int]]:
        """System calls tell none."""
        return []

    @property
    def known(self) -> _Known:
        """The tables and rows, from one pass over all lines."""
        with self._lock:
            if self._known is None:
                self._known = _Scan(self.path).result()
            return self._known

    def batches(self, ranks: range, piece: Piece) -> Iterator[pa.RecordBatch]:
        """See `TraceReader.batches`."""
        known = self.known
        private = known.users == 1
        for group in _groups(ranks, known.calls):
            delivery = Delivery(private, list(system_calls.FUNCTIONS), piece, by_time=False)
            wanted = np.zeros(len(known.rank_of_thread), np.bool_)
            wanted[(known.rank_of_thread >= group.start) & (known.rank_of_thread < group.stop)] = True
            alone = int(known.calls[group.start : group.stop].sum()) > _GROUP_ROWS
            held: list[dict[str, NDArray[Any]]] = []
            for batch in known.rows.batches(wanted):
                mine = np.flatnonzero(wanted[to_numpy(batch.column("thread"))])
                held.append({name: _column(batch, name)[mine] for name in ROWS.names})
                # A process with many calls is delivered as it comes.
                if alone and sum(len(one["start"]) for one in held) >= _GROUP_ROWS:
                    yield from delivery.batches(_rows(held, known))
                    held = []
            if held:
                yield from delivery.batches(_rows(held, known))


def _column(batch: pa.RecordBatch, name: str) -> NDArray[Any]:
    return to_numpy(batch.column(name))


def _groups(ranks: range, calls: Ints) -> Iterator[range]:
    """Cut a range of ranks where about `_GROUP_ROWS` calls are reached."""
    first, rows = ranks.start, 0
    for rank in range(ranks.start, ranks.stop):
        if rows and rows + int(calls[rank]) > _GROUP_ROWS:
            yield range(first, rank)
            first, rows = rank, 0
        rows += int(calls[rank])
    if rows:
        yield range(first, ranks.stop)


def _rows(parts: list[dict[str, NDArray[Any]]], known: _Known) -> Rows:
    """Rows of some ranks, rank by rank in the order in which they began."""
    column = {name: np.concatenate([part[name] for part in parts]) for name in ROWS.names}
    rank = known.rank_of_thread[column["thread"]]
    order = np.lexsort((column["start"], rank))
    column = {name: values[order] for name, values in column.items()}
    n, func = len(order), column["func"]
    signatures = Signatures(
        func=func,
        layer=np.full(n, Layer.POSIX, np.int8),
        kind=np.array(_KINDS, np.int8)[func],
        depth=np.zeros(n, np.int8),
        site=np.full(n, -1, np.int32),
        thread=column["pid"],
        file=column["file"],
        bytes=column["bytes"],
        rule=column["rule"],
        flags=column["flags"],
        value=column["value"],
        slope=np.zeros(n, np.int64),
        slope_group=np.full(n, -1, np.int8),
        running=np.full(n, -1, np.int8),
        handle=np.full(n, -1, np.int32),
        binds=np.zeros(n, np.bool_),
        rename_to=column["rename_to"],
    )
    return Rows(
        rank[order],
        signatures,
        np.arange(n, dtype=np.int32),
        column["start"] - known.first_ns,
        column["took"],
    )


class _Scan:
    """Parses all logs of a trace."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._logs = logs_of(path)
        self._processes = Processes(reused=len(self._logs) == 1 or rank_of(self._logs[0]) is not None)
        self._paths = PathTable()
        self._spellings = Spellings(self._paths)
        self._spool = Spool(ROWS)
        self._calls = np.zeros(0, np.int64)
        """By thread."""
        self._pairs = np.zeros(0, np.int64)
        """Threads and the files that they name, without repetition."""
        self._there = np.zeros(0, np.bool_)
        self._rank_of_log: list[int] = []
        """By thread, the MPI rank of its log, else -1."""
        self._named = self._nameless = self._timed = self._lines = 0
        self._rings = 0
        self._first: int | None = None
        self._problems: list[str] = []

    def result(self) -> _Known:
        """Parse and sum up.

        Raises
        ------
        TraceError
            No call is left, or what Vani needs was not asked of strace.
        """
        for log in self._logs:
            self._log(log)
        if self._first is None or not self._calls.any():
            raise TraceError("holds no call that works on files", where=self._path, todo=_AGAIN)
        if self._nameless and not self._named:
            raise TraceError(
                "has no paths of descriptors, which strace writes with -y", where=self._path, todo=_AGAIN
            )
        if not self._timed:
            raise TraceError(
                "does not say how long calls took, which strace writes with -T", where=self._path, todo=_AGAIN
            )
        ranks, problems = self._ranks()
        calls = np.bincount(ranks[ranks >= 0], self._calls[ranks >= 0]).astype(np.int64)
        files = len(self._paths.paths)
        pairs = np.unique(ranks[self._pairs >> 32].astype(np.int64) << 32 | self._pairs & 0xFFFFFFFF)
        users = np.bincount(pairs & 0xFFFFFFFF, minlength=files).astype(np.int64)
        there = np.zeros(files, np.bool_)
        there[: len(self._there)] = self._there
        return _Known(
            rows=self._spool,
            calls=calls,
            rank_of_thread=ranks,
            paths=self._paths.paths,
            users=users,
            probes=~there,
            first_ns=self._first,
            command=command_in(self._processes.program[0]) if self._processes.program[0] else [],
            problems=[*self._problems, *problems],
        )

    def _log(self, log: Path) -> None:
        rank = rank_of(log)
        if rank is not None:
            self._processes.next_log()
        lines = LineReader(log, WANTED, pid_of(log))
        for block in lines.blocks():
            thread = self._processes.threads(block)
            folders = self._processes.learn(block.calls, thread)
            names = block.calls.name.dictionary.to_pylist()
            if RING.intersection(names):
                ring = np.array([name in RING for name in names], np.bool_)
                self._rings += int(ring[to_numpy(block.calls.name.indices)].sum())
            self._timed += int((block.calls.took >= 0).sum())
            self._add(rows_of(block.calls, thread, folders, self._spellings))
        number = len(self._processes.begun_by)
        self._rank_of_log += [-1 if rank is None else rank] * (number - len(self._rank_of_log))
        self._say(log, lines)

    def _add(self, rows: pa.RecordBatch) -> None:
        if not rows.num_rows:
            return
        self._spool.add(rows)
        thread, file = _column(rows, "thread"), _column(rows, "file")
        self._calls = _sum(self._calls, np.bincount(thread))
        named = file >= 0
        self._named += int(named.sum())
        self._nameless += int((~named).sum())
        self._pairs = np.union1d(self._pairs, thread[named].astype(np.int64) << 32 | file[named])
        there = np.bincount(file[named & _column(rows, "there")]) > 0
        self._there = _sum(self._there.astype(np.int64), there.astype(np.int64)) > 0
        renamed = _column(rows, "rename_to")
        if (renamed >= 0).any():
            self._there = _sum(self._there.astype(np.int64), np.bincount(renamed[renamed >= 0])) > 0

    def _say(self, log: Path, lines: LineReader) -> None:
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
            self._problems.append(
                f"{log.name}: {counted(lines.strange, 'line')} left out, strace writes none like it"
            )

    def _ranks(self) -> tuple[NDArray[np.int32], list[str]]:
        """The rank of each thread, and what is wrong with them."""
        leaders = self._processes.leaders()
        number = len(leaders)
        calls = np.zeros(number, np.int64)
        calls[: len(self._calls)] = self._calls
        self._calls = calls
        problems = []
        open_ = np.flatnonzero(~np.array(self._processes.ended) & (calls > 0))
        if len(open_):
            problems.append(
                f"{counted(len(open_), 'thread')} of {(calls > 0).sum():,} still ran where the log ends: "
                "it is cut off, or strace was ended before them"
            )
        if self._rings:
            problems.append(
                f"{counted(self._rings, 'call')} of io_uring or io_submit: "
                "what was read and written through them is not seen"
            )
        of_log = np.array(self._rank_of_log, np.int64)
        if (of_log >= 0).any():
            present = np.unique(of_log[of_log >= 0])
            missing = np.setdiff1d(np.arange(int(present[-1]) + 1), present)
            if len(missing):
                problems.append(f"ranks {some_ranks(missing)}: left out, their logs are missing")
            return of_log.astype(np.int32), problems
        of_leader = np.bincount(leaders, calls, number) > 0
        rank = np.where(of_leader, np.cumsum(of_leader) - 1, -1)
        return rank[leaders].astype(np.int32), problems


def _sum(one: Ints, other: Ints) -> Ints:
    """Sum of two columns by number, of which either may be longer."""
    total = np.zeros(max(len(one), len(other)), np.int64)
    total[: len(one)] += one
    total[: len(other)] += other
    return total
