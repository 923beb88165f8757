"""Processes in a log that take no part in a run's I/O: launchers, and script tools (`dirname`, `sleep`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.calls import FileClass, Flag, Kind
from vani.columns import to_numpy
from vani.readers.commands import is_launcher
from vani.readers.paths import classify_path
from vani.readers.plausible import NO_VALUE
from vani.readers.strace.processes import Processes
from vani.readers.strace.system_calls import CALLS, FUNCTIONS, kind_of

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_MUCH = 1 << 20
"""Bytes above which a shell that only reads, beyond its scripts and settings, counts as working on data."""
_FEW, _FEW_ASKED = 1000, 100
"""A tool makes fewer calls than this, and fewer on data set files: `find` in a large tree is not a tool."""
_ASKS_BY_NAME = frozenset(
    {"getdents", "getdents64", "chdir", "fchdir", "fcntl", "mmap", "mmap2", "fstatfs", "fadvise64"}
)
_WRITES = np.array([kind_of(name) is Kind.WRITE for name in FUNCTIONS])


def _changes(function: str) -> bool:
    call = CALLS.get(function)
    return call is None or not (
        call.asks or function in _ASKS_BY_NAME or call.flags & (Flag.STAT | Flag.CLOSE | Flag.SEEK)
    )


_USES = np.array([_changes(name) for name in FUNCTIONS])
"""Whether each function does more than query a file."""


class Bystanders:
    """Bytes that launchers moved, and files that processes with few calls used."""

    def __init__(self) -> None:
        # Threads and files, with bytes: written in the first column, read in the second.
        self._moved: list[tuple[Ints, Ints, Ints, Bools]] = []
        self._few: list[tuple[Ints, Ints, Bools]] = []
        """Threads and files, and whether the call does more than query."""

    def see(self, rows: pa.RecordBatch, processes: Processes, calls: Ints) -> None:
        """Add rows of a block (`rows.ROWS`); `calls` is the number of calls per thread so far."""
        names = ("thread", "file", "func", "bytes", "flags")
        thread, file, func, size, flags = (to_numpy(rows.column(name)) for name in names)
        execution = np.array(processes.execution, np.int64)[thread]
        at = np.flatnonzero(_launches(processes)[execution] & (file >= 0) & (size != NO_VALUE))
        if len(at):
            self._moved.append((thread[at].astype(np.int64), file[at].astype(np.int64), size[at], _WRITES[func[at]]))
        at = np.flatnonzero((calls[thread] < _FEW) & (file >= 0) & (execution >= 0))
        if len(at):
            uses = _USES[func[at]] & ((flags[at] & Flag.DIRECTORY) == 0)
            uses |= np.isin(func[at], _MAKES)
            self._few.append((thread[at].astype(np.int64), file[at].astype(np.int64), uses))

    def threads(
        self,
        processes: Processes,
        apps: Sequence[str],
        calls: Ints,
        paths: Sequence[str],
        classes: NDArray[np.int8],
    ) -> Bools:
        """Mark the threads of processes that take no part, shape (threads,), unless no process would be left.

        Parameters
        ----------
        apps
            Apps by execution number.
        calls
            Number of calls by thread.
        paths, classes
            Paths and classes by file.
        """
        leaders = processes.leaders()
        execution = np.array(processes.execution, np.int64)[leaders]
        out = self._launchers(processes, execution, leaders, paths, classes)
        tools = self._tools(execution, leaders, apps, calls, paths, classes) & ~out
        works = (execution >= 0) & (calls > 0) & ~out
        if not works.any():
            return np.zeros(len(leaders), np.bool_)
        return out | tools if (works & ~tools).any() else out

    def _launchers(
        self, processes: Processes, execution: Ints, leaders: Ints, paths: Sequence[str], classes: NDArray[np.int8]
    ) -> Bools:
        out: Bools = _launches(processes)[execution]
        if self._moved:
            thread, file, size, writes = (np.concatenate(column) for column in zip(*self._moved, strict=True))
            data = _is_data(file, paths, classes)
            data[data] = [not is_launcher(paths[code]) for code in file[data].tolist()]
            moved = np.zeros((2, len(leaders)), np.int64)
            np.add.at(moved, (writes[data].astype(np.int64), leaders[thread[data]]), size[data])
            out &= ((moved[1] == 0) & (moved[0] < _MUCH))[leaders]
        return out

    def _tools(
        self,
        execution: Ints,
        leaders: Ints,
        apps: Sequence[str],
        calls: Ints,
        paths: Sequence[str],
        classes: NDArray[np.int8],
    ) -> Bools:
        """Processes of apps that only query a few files, except the first program."""
        number = len(leaders)
        small = np.bincount(leaders, calls, number) < _FEW
        if self._few:
            thread, file, uses = (np.concatenate(column) for column in zip(*self._few, strict=True))
            data = _is_data(file, paths, classes)
            of_process = leaders[thread[data]]
            small &= np.bincount(of_process[uses[data]], minlength=number) == 0
            small &= np.bincount(of_process, minlength=number) < _FEW_ASKED
        with_calls = (execution >= 0) & (np.bincount(leaders, calls, number) > 0)[leaders]
        names = np.array([*apps, ""])[execution]
        busy = {str(name) for name in np.unique(names[with_calls & ~small[leaders]])} | {*apps[:1]}
        tools: Bools = with_calls & ~np.isin(names, list(busy))
        return tools


_MAKES = [number for number, name in enumerate(FUNCTIONS) if name in ("mkdir", "mkdirat", "rmdir")]


def _launches(processes: Processes) -> Bools:
    """Whether each execution, by number, starts other programs; the last entry is for unknown programs."""
    return np.array([is_launcher(execution.file) for execution in processes.executions] + [False], np.bool_)


def _is_data(file: Ints, paths: Sequence[str], classes: NDArray[np.int8]) -> Bools:
    codes, place = np.unique(file, return_inverse=True)
    by_path = np.array([classify_path(paths[code]) == FileClass.DATASET for code in codes.tolist()], np.bool_)
    data: Bools = (by_path & (classes[codes] == FileClass.DATASET))[place]
    return data
