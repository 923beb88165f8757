"""A run under strace: one log, or a folder with a log for each process or MPI rank.

A log with processes of several programs counts as several traces. Each process is a rank with its threads; if
`vani trace` wrote a log per MPI rank, all processes in a log belong to that rank. All lines are parsed once, and their
numbers are kept as rows (see `scanned`), because a log mixes lines of simultaneous processes and calls are delivered
process by process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.calls import FUNCTIONS, Kind, Layer
from vani.columns import small_table
from vani.readers.programs import app_of, is_launcher
from vani.readers.scanned import Columns, LogReader
from vani.readers.signatures import NO_VALUE
from vani.readers.strace import host_of, logs_of, rank_of, system_calls
from vani.readers.strace.processes import command_of
from vani.readers.strace.scan import StraceLog, scan
from vani.readers.strace.system_calls import RING, kind_of
from vani.readers.trace_reader import Limit

_KINDS = tuple(kind_of(name) for name in system_calls.FUNCTIONS)
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
        names = self.known.names
        layers, kinds = [int(Layer.POSIX)] * len(names), [int(kind) for kind in _KINDS]
        return small_table([range(len(names)), names, layers, kinds], FUNCTIONS)

    def facts(self) -> list[tuple[str, list[str], int]]:
        """The command, and calls whose data the log does not show: mapped data set files, io_uring and others."""
        counts = dict(zip(self.known.names, self.known.functions.tolist(), strict=True))
        hidden = [(name, args, counts[name]) for name, args in _HIDDEN.items() if counts[name]]
        command = command_of(self.path)
        ran = [("execve", command, 1)] if command else []
        hosts = {host_of(log) for log in logs_of(self.path)}
        on = [("hosts", sorted(str(host) for host in hosts), 1)] if None not in hosts else []
        # Each rank with its own log may run on another host; without them, strace followed processes on its own.
        alone: list[tuple[str, list[str], int]] = [] if on or self._has_logs_of_ranks else [("one_host", [], 1)]
        refused = [(name, ["refused", error], count) for (name, error), count in self.known.refused.items()]
        return [*ran, *on, *alone, *hidden, *refused, *self.mapped_files()]

    def _parse(self) -> StraceLog:
        return scan(self.path)

    def _selected(self, known: StraceLog, is_own: NDArray[np.bool_]) -> StraceLog:
        known = replace(known, with_mpi=known.with_mpi[is_own])
        if is_own[0]:
            return known
        return replace(known, maps=[], refused=Counter(), functions=np.zeros_like(known.functions))

    def _interpreted(self, column: Columns) -> Columns:
        kind = np.array(_KINDS, np.int8)[column["func"]]
        # A call that moves no bytes, such as a failed one or a read at the end of a file, is not a data operation.
        kind[((kind == Kind.READ) | (kind == Kind.WRITE)) & (column["bytes"] == NO_VALUE)] = Kind.METADATA
        return {"layer": np.full(len(kind), Layer.POSIX, np.int8), "kind": kind, "thread": column["pid"]}
