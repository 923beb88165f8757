"""Processes of calls: threads belong to the process that started them, and ids are reused.

Also tracks each process's working directory, for relative names.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vani.columns import to_arrow, to_numpy
from vani.distinct import distinct
from vani.readers.commands import RANK_LAUNCHERS
from vani.readers.strace.app import command_in
from vani.readers.strace.lines import Block, Calls
from vani.readers.strace.names import named_first
from vani.readers.strace.system_calls import FAMILY

Ints = NDArray[np.int64]

_RARE = FAMILY | {"execve", "execveat", "chdir", "fchdir"}


class Folders:
    """Working directories by thread and position among a block's calls."""

    def __init__(self, before: dict[int, str], first: str) -> None:
        self._rows = {thread: [-1] for thread in before}
        self._spelled = {thread: [folder] for thread, folder in before.items()}
        self.first = first
        """Number of an unknown thread."""

    def at(self, thread: int, row: int) -> str:
        """A thread's working directory at a call, as strace spells it; empty if unknown."""
        rows = self._rows.get(thread)
        if rows is None:
            return self.first
        return self._spelled[thread][max(0, bisect_right(rows, row) - 1)]

    def of(self, thread: Ints, rows: Ints) -> pa.Array:
        """The working directories of many calls, shape (n,)."""
        # Look up a thread's folder once for all calls between two changes.
        key = np.zeros(len(rows), np.int64)
        spelled: list[str] = []
        for number in distinct(thread).tolist():
            calls = np.flatnonzero(thread == number)
            changes = self._rows.get(number, [-1])
            which = np.maximum(np.searchsorted(np.array(changes), rows[calls], side="right") - 1, 0)
            key[calls] = which + len(spelled)
            spelled += self._spelled.get(number, [self.first])
        return pa.array(spelled or [""], pa.string()).take(to_arrow(key))

    def change(self, thread: int, row: int, folder: str) -> None:
        """Record that a thread is in another folder from this call on."""
        if row < 0:
            self._rows[thread], self._spelled[thread] = [-1], [folder]
        else:
            self._rows.setdefault(thread, [-1]).append(row)
            self._spelled.setdefault(thread, [self.first]).append(folder)

    def last(self) -> dict[int, str]:
        """Folder of each thread after the block."""
        return {thread: spelled[-1] for thread, spelled in self._spelled.items()}


def _below(folder: str, name: str) -> str:
    return name if name.startswith("/") or not folder else f"{folder.rstrip('/')}/{name}"


@dataclass
class Execution:
    """A program that a process ran, and the processes that it forked from then on."""

    command: list[str]
    """Words of the execve that the log contains; the first is the program's file."""
    start: int
    """Start in nanoseconds since 1970."""
    becomes: int = -1
    """Number of the next program that the same process ran; -1 if there is none."""

    @property
    def file(self) -> str:
        return self.command[0]


@dataclass
class Processes:
    """Threads by number, in order of appearance; several may have had the same system id."""

    reused: bool = True
    """Whether ids of ended processes may be reused, which is impossible if each has its own log."""
    begun_by: list[int] = field(default_factory=list)
    """By thread: the thread of the same process that started it, or itself."""
    parents: list[int] = field(default_factory=list)
    """By thread: the thread, of any process, that started it; -1 if the log does not show it."""
    ended: list[bool] = field(default_factory=list)
    executions: list[Execution] = field(default_factory=list)
    execution: list[int] = field(default_factory=list)
    """By thread: the number of the program that it ran last; -1 if the log does not show it."""
    _of_pid: dict[int, int] = field(default_factory=dict)
    _folder: dict[int, str] = field(default_factory=dict)
    """Working directory by thread, as strace spells it."""
    _first_folder: str = ""
    _executed_by: list[int] = field(default_factory=list)
    """Thread of each execution."""

    _gone: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """By system id: position in the block where its thread ended, and the next thread with the id, or -1."""

    def next_log(self) -> None:
        """Start with the logs of another host, where the same id is a different process."""
        self._of_pid.clear()

    def threads(self, block: Block) -> Ints:
        """Assign numbers to the threads of a block's calls, shape (calls,)."""
        pids = block.pids
        present, where = np.unique(pids, return_inverse=True)
        numbers = np.array([self._number(pid) for pid in present.tolist()], np.int64)
        # By line; later only the lines of selected calls count.
        thread = numbers[where] if len(numbers) else np.zeros(0, np.int64)
        if len(block.exits.pid):
            last = np.zeros(len(present), np.int64)
            last[where] = np.arange(len(pids))
            for row, pid in zip(block.exits.row.tolist(), block.exits.pid.tolist(), strict=True):
                number = self._gone[pid][-1][1] if pid in self._gone else self._of_pid.get(pid)
                if number is None:
                    continue
                self.ended[number] = True
                if not self.reused:
                    continue
                at = int(np.searchsorted(present, pid))
                following = self._new() if last[at] > row else -1
                if following >= 0:
                    thread[np.flatnonzero(pids[row + 1 :] == pid) + row + 1] = following
                self._gone.setdefault(pid, []).append((row, following))
        return thread[block.calls.row]

    def learn(self, calls: Calls, thread: Ints) -> Folders:
        """Record new threads and programs; returns the calls at which working directories change."""
        names = calls.name.dictionary.to_pylist()
        rare = np.array([name in _RARE for name in names], np.bool_)
        at = np.flatnonzero(rare[to_numpy(calls.name.indices)]) if len(names) else np.zeros(0, np.int64)
        folders = Folders(self._folder, self._first_folder)
        self._annotated(calls, thread, folders)
        # Processes rarely start others or change folders.
        for row in at.tolist():
            value, parent = int(calls.value[row]), int(thread[row])
            name, args = str(calls.name[row].as_py()), str(calls.args[row].as_py())
            if name in FAMILY and value > 0:
                self._family(folders, row, parent, self._begun(value, int(calls.row[row])), args)
            elif name in ("execve", "execveat") and value == 0:
                if self.execution[parent] >= 0 and self._executes_first(parent):
                    self.executions[self.execution[parent]].becomes = len(self.executions)
                self.execution[parent] = len(self.executions)
                self._executed_by.append(parent)
                self.executions.append(Execution(command_in(args), int(calls.start[row])))
            elif name in ("chdir", "fchdir") and value == 0:
                folder, spelled = named_first(pa.array([args], pa.string()))
                where = folder[0].as_py()
                if name == "chdir":
                    where = _below(folders.at(parent, row), str(spelled[0].as_py()))
                folders.change(parent, row + 1, where)
        self._folder = folders.last()
        for pid, changes in self._gone.items():
            del self._of_pid[pid]
            if changes[-1][1] >= 0:
                self._of_pid[pid] = changes[-1][1]
        self._gone.clear()
        return folders

    def _executes_first(self, thread: int) -> bool:
        """Return whether a thread runs a program that it executed itself, not the one that it was forked with."""
        return self._executed_by[self.execution[thread]] == thread

    def _begun(self, pid: int, row: int) -> int:
        """The thread with an id that is started by a call at a row of the block."""
        changes = self._gone.get(pid, [])
        behind = [number for at, number in changes if at < row]
        if not behind:
            return self._number(pid)
        if behind[-1] < 0:
            # It starts here, and the block contains none of its calls.
            changes[-1] = (changes[-1][0], self._new())
            return changes[-1][1]
        return behind[-1]

    def _family(self, folders: Folders, row: int, parent: int, child: int, args: str) -> None:
        self.parents[child] = parent
        if "CLONE_THREAD" in args:
            self.begun_by[child] = parent
        if self.execution[child] < 0:
            self.execution[child] = self.execution[parent]
        folders.change(child, -1, folders.at(parent, row))

    def _annotated(self, calls: Calls, thread: Ints, folders: Folders) -> None:
        """Record the working directory that strace shows with AT_FDCWD, for threads without a known one."""
        rows = np.flatnonzero(to_numpy(pc.starts_with(calls.args, "AT_FDCWD<")))
        some, first = np.unique(thread[rows], return_index=True)
        for number, row in zip(some.tolist(), rows[first].tolist(), strict=True):
            if not folders.at(number, row) or number not in self._folder:
                folder, _ = named_first(calls.args.slice(row, 1))
                folders.change(number, -1, str(folder[0].as_py()))
                self._first_folder = self._first_folder or folders.at(number, row)
                folders.first = self._first_folder

    def leaders(self) -> Ints:
        """The first thread of each thread's process; shape (threads,)."""
        leader = np.array(self.begun_by, np.int64)
        while True:
            further = leader[leader]
            if (further == leader).all():
                return leader
            leader = further

    def root(self, process: int, leaders: Ints, apps: Sequence[str]) -> int | None:
        """The ancestor of a process, or the process itself, that a rank launcher started; None if there is none.

        Parameters
        ----------
        process
            First thread of the process.
        leaders
            See `leaders`.
        apps
            Apps by execution number.
        """
        for _ in self.parents:
            parent = self.parents[process]
            if parent < 0:
                return None
            above = int(leaders[parent])
            execution = self.execution[above]
            if execution >= 0 and apps[execution] in RANK_LAUNCHERS:
                return process
            process = above
        return None

    def _number(self, pid: int) -> int:
        number = self._of_pid.get(pid)
        if number is None:
            number = self._of_pid[pid] = self._new()
        return number

    def _new(self) -> int:
        self.begun_by.append(len(self.begun_by))
        self.parents.append(-1)
        self.ended.append(False)
        self.execution.append(-1)
        return len(self.begun_by) - 1
