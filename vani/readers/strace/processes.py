"""Processes of calls: their threads, working directories and programs, and those that take no part in a run's I/O.

Also tracks each process's working directory, for relative names.

`strace -s 0` shows only the file of an execve. An interpreter's script is therefore taken to be the first file with
a script's suffix that it opens and does not import.

Processes in a log that take no part in a run's I/O: launchers, and script tools (`dirname`, `sleep`).
"""

import json
import posixpath
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vani.calls import FileClass, Flag, Kind
from vani.columns import Bools, Columns, Int8s, Ints, distinct, to_arrow, to_numpy
from vani.readers import programs
from vani.readers.paths import classify_path
from vani.readers.signatures import NO_VALUE
from vani.readers.strace import MARK
from vani.readers.strace.lines import Block, Calls, named_first, plain
from vani.readers.strace.system_calls import CALLS, FAMILY, FUNCTIONS, kind_of

_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


def command_in(args: str) -> list[str]:
    """The command in an execve's arguments."""
    program, _, rest = args.partition(", [")
    words = [plain(word) for word in _TEXT.findall(rest.partition("], ")[0])]
    path = _TEXT.search(program)
    return [plain(path[1]) if path else "", *words[1:]]


def command_of(folder: Path) -> list[str]:
    """The command that `vani trace` recorded next to a trace, starting with its program; empty if there is none."""
    try:
        noted = json.loads((folder / MARK).read_text(encoding="utf-8"))["command"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    words = [str(word) for word in noted] if isinstance(noted, list) else []
    return words[programs.program_behind(words) :]


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
        if block.exits:
            last = np.zeros(len(present), np.int64)
            last[where] = np.arange(len(pids))
            for row, pid in block.exits:
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
        at = np.flatnonzero(calls.of(*_RARE))
        folders = Folders(self._folder, self._first_folder)
        self._annotated(calls, thread, folders)
        # Processes rarely start others or change folders.
        for row in at.tolist():
            value, parent = int(calls.value[row]), int(thread[row])
            name, args = str(calls.name[row].as_py()), str(calls.args[row].as_py())
            if name in FAMILY and value > 0:
                self._family(folders, row, parent, self._begun(value, int(calls.row[row])), args)
            elif name in ("execve", "execveat") and value == 0:
                running = self.execution[parent]
                # Unless it is the program that the process was forked with.
                if running >= 0 and self._executed_by[running] == parent:
                    self.executions[running].becomes = len(self.executions)
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
            if execution >= 0 and apps[execution] in programs.RANK_LAUNCHERS:
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


_SCRIPT = re.compile(r"\.(?:py|pl|rb|[rR]|jl|lua|tcl)$|" + programs.SHELL_SCRIPT)
_OF_LIBRARY = re.compile(r"/python\d|/(?:site|dist)-packages/|^/usr/(?:lib|share)|^/etc/")
_MAX_SCRIPTS = 8
"""Maximum number of an interpreter's files that may be its script."""


class Scripts:
    """Files with script suffixes that programs opened."""

    def __init__(self) -> None:
        self._like_script = np.zeros(0, np.bool_)
        """Whether each file has the suffix of a script."""
        self._opened: dict[int, list[int]] = {}
        """Files by execution, in the order in which they were opened."""

    def see(self, rows: Columns, paths: Sequence[str], execution: Ints, since: Sequence[int]) -> None:
        """Add rows of a block (`rows.ROWS`).

        Parameters
        ----------
        paths
            Paths by code.
        execution
            By thread, the number of the program that it ran last; -1 if unknown.
        since
            Start of each program in nanoseconds.
        """
        new = [bool(_SCRIPT.search(p)) and not _OF_LIBRARY.search(p) for p in paths[len(self._like_script) :]]
        self._like_script = np.append(self._like_script, np.array(new, np.bool_))
        file, flags = rows["file"], rows["flags"]
        opens = (flags & (Flag.OPEN | Flag.WRITABLE)) == Flag.OPEN
        at = np.flatnonzero(opens & np.append(self._like_script, False)[file])
        if not len(at):
            return
        columns = (execution[rows["thread"][at]], file[at], rows["start"][at])
        for number, code, when in zip(*(column.tolist() for column in columns), strict=True):
            files = self._opened.setdefault(number, [])
            if number >= 0 and when >= since[number] and len(files) < _MAX_SCRIPTS and code not in files:
                files.append(code)

    def by_execution(self, paths: Sequence[str]) -> dict[int, str]:
        """The script of each program that opened one."""
        cached = {_module(path) for path in paths if "/__pycache__/" in path}
        scripts = {}
        for number, files in self._opened.items():
            own = (paths[code] for code in files if posixpath.splitext(paths[code])[0] not in cached)
            scripts[number] = next(own, "")
        return scripts


def app_names(executions: Sequence[Execution], scripts: dict[int, str], command: Sequence[str]) -> list[str]:
    """The app of each program.

    Parameters
    ----------
    scripts
        Scripts of interpreters, by execution number.
    command
        The traced command as recorded by `vani trace`, with all its words, which the log lacks.
    """
    names = [posixpath.basename(execution.file) for execution in executions]
    apps = []
    for number, (name, execution) in enumerate(zip(names, executions, strict=True)):
        script = scripts.get(number, "") if programs.is_interpreter(name) and len(execution.command) < 2 else ""
        apps.append(posixpath.basename(script) or programs.app_of(execution.command) or name)
    first = posixpath.basename(command[0]) if command else ""
    if first in names:
        number = names.index(first)
        apps[number] = programs.app_of(command)
        # A shim, such as pyenv's or a module's, becomes its interpreter.
        becomes = executions[number].becomes
        while becomes >= 0:
            interpreted = programs.is_interpreter(first) and programs.is_interpreter(names[becomes])
            if interpreted and not programs.is_launcher(names[becomes]):
                apps[becomes] = programs.app_of(command)
            becomes = executions[becomes].becomes
    return apps


def _module(path: str) -> str:
    """The source, without its suffix, of a compiled Python file: `d/__pycache__/m.cpython-311.pyc` becomes `d/m`."""
    folder, _, name = path.rpartition("/__pycache__/")
    return f"{folder}/{name.partition('.')[0]}"


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
        nothing = np.zeros(0, np.int64)
        self._moved: list[tuple[Ints, Ints, Ints, Bools]] = [(nothing, nothing, nothing, nothing.astype(np.bool_))]
        """Threads, files, bytes, and whether they were written."""
        self._few: list[tuple[Ints, Ints, Bools]] = [(nothing, nothing, nothing.astype(np.bool_))]
        """Threads and files, and whether the call does more than query."""

    def see(self, rows: Columns, processes: Processes, calls: Ints) -> None:
        """Add rows of a block (`rows.ROWS`); `calls` is the number of calls per thread so far."""
        thread, file, func, size, flags = (rows[name] for name in ("thread", "file", "func", "bytes", "flags"))
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
        self, processes: Processes, apps: Sequence[str], calls: Ints, paths: Sequence[str], classes: Int8s
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
        execution, number = np.array(processes.execution, np.int64)[leaders], len(leaders)
        thread, file, size, writes = (np.concatenate(column) for column in zip(*self._moved, strict=True))
        data = _is_data(file, paths, classes)
        data[data] = [not programs.is_launcher(paths[code]) for code in file[data].tolist()]
        moved = np.zeros((2, number), np.int64)
        np.add.at(moved, (writes[data].astype(np.int64), leaders[thread[data]]), size[data])
        launchers: Bools = _launches(processes)[execution] & ((moved[1] == 0) & (moved[0] < _MUCH))[leaders]
        # Tools are processes of apps that only query a few files, except the first program.
        thread, file, uses = (np.concatenate(column) for column in zip(*self._few, strict=True))
        data = _is_data(file, paths, classes)
        of_process, of_leader = leaders[thread[data]], np.bincount(leaders, calls, number)
        small = (of_leader < _FEW) & (np.bincount(of_process, minlength=number) < _FEW_ASKED)
        small &= np.bincount(of_process[uses[data]], minlength=number) == 0
        with_calls = (execution >= 0) & (of_leader > 0)[leaders]
        names = np.array([*apps, ""])[execution]
        busy = {str(name) for name in np.unique(names[with_calls & ~small[leaders]])} | {*apps[:1]}
        tools: Bools = with_calls & ~np.isin(names, list(busy)) & ~launchers
        works = (execution >= 0) & (calls > 0) & ~launchers
        if not works.any():
            return np.zeros(number, np.bool_)
        return launchers | tools if (works & ~tools).any() else launchers


_MAKES = [number for number, name in enumerate(FUNCTIONS) if name in ("mkdir", "mkdirat", "rmdir")]


def _launches(processes: Processes) -> Bools:
    """Whether each execution, by number, starts other programs; the last entry is for unknown programs."""
    return np.array([programs.is_launcher(execution.file) for execution in processes.executions] + [False], np.bool_)


def _is_data(file: Ints, paths: Sequence[str], classes: Int8s) -> Bools:
    codes, place = np.unique(file, return_inverse=True)
    by_path = np.array([classify_path(paths[code]) == FileClass.DATASET for code in codes.tolist()], np.bool_)
    data: Bools = (by_path & (classes[codes] == FileClass.DATASET))[place]
    return data
