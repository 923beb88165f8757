"""A run under strace: one log, or a folder with a log for each process or MPI rank.

A log with processes of several programs counts as several traces. Each process is a rank with its threads; if
`vani trace` wrote a log per MPI rank, all processes in a log belong to that rank. All lines are parsed once, and their
numbers are kept as rows (see `spool`), because a log mixes lines of simultaneous processes and calls are delivered
process by process.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vani.calls import FILES, FUNCTIONS, FileClass, Kind, Layer
from vani.columns import small_table, texts
from vani.errors import TraceError
from vani.readers.delivery import Columns, Delivery, Rows, process_batches
from vani.readers.identity import identity_of
from vani.readers.paths import file_table
from vani.readers.programs import app_of, is_launcher
from vani.readers.signatures import NO_VALUE, Signatures
from vani.readers.strace import host_of, logs_of, rank_of, system_calls
from vani.readers.strace.processes import command_of
from vani.readers.strace.scan import Known, scan
from vani.readers.strace.system_calls import RING, kind_of
from vani.readers.trace_reader import Limit, Piece

Ints = NDArray[np.int64]

_LOADER = ("/etc/ld.so.cache", "/etc/ld.so.preload")
"""Files that are read to load shared libraries, and are classified like them."""
_KINDS = tuple(kind_of(name) for name in system_calls.FUNCTIONS)
_MOST_FACTS = 10_000
_HIDDEN = {**{name: [] for name in RING}, "io_submit": ["undecoded"]}
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
        "interfaces",
        "strace sees system calls only: stdio, MPI-IO, HDF5 and netCDF are seen as the calls they make",
    ),
    Limit(
        "workflow.processes",
        "each process with an I/O call counts, or each MPI rank where `vani trace` began one log per rank; shells and "
        "launchers that only start programs, and tools that only ask about a few files, are left out with their "
        "calls. Ranks of MPI without a log each are numbered in the order in which they appear",
    ),
)


class StraceReader:
    """One strace log, or a folder with the logs of one run."""

    tool = "strace"
    format = "-ttt -T -y"

    def __init__(self, path: Path, app: str | None = None) -> None:
        """Find the logs, without reading them.

        Parameters
        ----------
        app
            Only the processes of this program; None for all.

        Raises
        ------
        TraceError
            There is no log.
        """
        self.path = path
        self._identity = identity_of(path, logs_of, with_ends=True)
        self._lock = threading.Lock()
        self._known: Known | None = None
        self._app = app
        if not logs_of(path):
            raise TraceError("contains no log of strace", where=path, todo="trace the run again")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path.absolute(), self._app)

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
        names = _apps(self.path, self.known)
        return names[0] if len(set(names)) == 1 or self._has_logs_of_ranks else noted or self.path.stem

    def by_app(self) -> Sequence[StraceReader]:
        """One reader per program in a log, or only this one if all processes ran the same program."""
        # Ranks stay together, unless one launcher command started several programs.
        together = self._has_logs_of_ranks and ":" not in command_of(self.path)
        if self._app is not None or together:
            return [self]
        names = list(dict.fromkeys(_apps(self.path, self.known)))
        if len(names) < 2:
            return [self]
        readers = [StraceReader(self.path, name) for name in names]
        for reader, name in zip(readers, names, strict=True):
            reader._identity, reader._known = self._identity, _of_app(self.path, self.known, name)
        return readers

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
        whole = self._identity.digest()
        return whole if self._app is None else hashlib.sha256(f"{whole} {self._app}".encode()).hexdigest()

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
        by_path = pc.equal(classes, pa.scalar(int(FileClass.DATASET), pa.int8()))
        classes = pc.if_else(by_path, pa.array(self.known.classes), classes)
        return table.set_column(table.schema.get_field_index("class"), FILES.field("class"), classes)

    def facts(self) -> list[tuple[str, list[str], int]]:
        """The command, and calls whose data the log does not show: mapped data set files, io_uring and others."""
        known = self.known
        classes = self.files()["class"].to_pylist()
        mapped = [
            ("mmap", [use, known.paths[code]], count)
            for use, code, count in known.maps
            if classes[code] == FileClass.DATASET
        ]
        counts = dict(zip(system_calls.FUNCTIONS, known.functions.tolist(), strict=True))
        hidden = [(name, args, counts[name]) for name, args in _HIDDEN.items() if counts[name]]
        command = command_of(self.path)
        ran = [("execve", command, 1)] if command else []
        hosts = {host_of(log) for log in logs_of(self.path)}
        on = [] if None in hosts else [("hosts", sorted(str(host) for host in hosts), 1)]
        return [*ran, *on, *hidden, *mapped[:_MOST_FACTS]]

    @property
    def known(self) -> Known:
        """The tables and rows, from one pass over all lines."""
        with self._lock:
            if self._known is None:
                known = scan(self.path)
                self._known = known if self._app is None else _of_app(self.path, known, self._app)
            return self._known

    def batches(self, ranks: range, piece: Piece) -> Iterator[pa.RecordBatch]:
        """See `TraceReader.batches`."""
        known = self.known
        private = known.users == 1
        yield from process_batches(
            known.rows,
            known.rank_of_thread,
            known.calls,
            ranks,
            lambda: Delivery(private, list(system_calls.FUNCTIONS), piece, by_time=False),
            lambda column: np.lexsort((column["start"], known.rank_of_thread[column["thread"]])),
            lambda column: _rows(column, known),
        )


def _apps(path: Path, known: Known) -> list[str]:
    """The app of each rank in a log."""
    other = app_of(command_of(path)) or path.stem
    return [app or other for app in known.apps]


def _of_app(path: Path, known: Known, app: str) -> Known:
    """The ranks of one app, renumbered; remarks about the whole log are attached to the first app."""
    apps = np.array(_apps(path, known))
    selected = apps == app
    number = np.append(np.where(selected, np.cumsum(selected) - 1, -1), -1)
    part = replace(
        known,
        calls=known.calls[selected],
        apps=apps[selected].tolist(),
        with_mpi=known.with_mpi[selected],
        rank_of_thread=number[known.rank_of_thread].astype(np.int32),
    )
    if apps[0] == app:
        return part
    return replace(part, problems=[], maps=[], functions=np.zeros_like(known.functions))


def _rows(column: Columns, known: Known) -> Rows:
    """Rows of some ranks, ordered by rank and start time."""
    n, func = len(column["start"]), column["func"]
    kind = np.array(_KINDS, np.int8)[func]
    # A call that moves no bytes, such as a failed one or a read at the end of a file, is not a data operation.
    kind[((kind == Kind.READ) | (kind == Kind.WRITE)) & (column["bytes"] == NO_VALUE)] = Kind.METADATA
    signatures = Signatures.of_calls(
        func=func,
        layer=np.full(n, Layer.POSIX, np.int8),
        kind=kind,
        thread=column["pid"],
        file=column["file"],
        bytes=column["bytes"],
        rule=column["rule"],
        flags=column["flags"],
        value=column["value"],
        rename_to=column["rename_to"],
    )
    rank, ids = known.rank_of_thread[column["thread"]], np.arange(n, dtype=np.int32)
    return Rows(rank, signatures, ids, column["start"] - known.first_ns, column["took"])
