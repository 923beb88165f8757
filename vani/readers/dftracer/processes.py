"""A trace's processes: their parents, their programs, and the tracer's own facts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vani.columns import Ints
from vani.readers.dftracer.events import number
from vani.readers.programs import RANK_LAUNCHERS, app_of, is_interpreter
from vani.units import counted

_NS = {"NS": 1, "US": 1_000, "MS": 1_000_000, "S": 1_000_000_000, "SEC": 1_000_000_000}
_NAMELESS = "DEFAULT"
"""Name that DFTracer gives to a program if it does not know its script."""
_WORKERS = ("multiprocessing", "loky")
"""Python modules that start processes for the program that imports them, as words after `-c` or `-m`."""
TRACKER = "resource_tracker"
"""Python process that removes other processes' leftovers; it belongs to no program."""


@dataclass(frozen=True)
class Missing:
    """Processes that must have run but have no events in the trace."""

    number: int
    most_ns: int | None
    """Upper bound of their total run time; None if no process waited for one."""


@dataclass
class Child:
    """A process that another one started or waited for; nanoseconds since 1970, None if unknown."""

    begin: int | None = None
    end: int | None = None


@dataclass
class Process:
    """A process in the trace, or one that another process names."""

    host: str
    pid: int
    parent: int = -1
    """The parent's number if it is in the trace; otherwise a process id below -1, or -1."""
    command: str = ""
    """Hash of its command line, joined by semicolons."""
    script: str = ""
    """Hash of the name that DFTracer gives it."""
    folder: str = ""
    """Hash of its working directory."""
    first_ns: int | None = None
    rank: int | None = None
    """MPI rank."""
    scale: int = 1_000
    """Nanoseconds per unit of its times."""
    events: int = 0
    last_id: int = 0
    first_id: int | None = None
    started: bool = False
    ended: bool = False
    """Whether DFTracer recorded its start, and its end; version 0 recorded neither."""
    children: dict[int, Child] = field(default_factory=dict)
    """Children by process id."""
    names: dict[str, str] = field(default_factory=dict)
    """Names by hash: DFTracer 1 gives names 16-bit numbers, each process its own."""

    def has(self, event_id: int | None) -> bool:
        """Whether an event with this number is among the first to the last of the process."""
        return event_id is not None and self.first_id is not None and self.first_id <= event_id <= self.last_id

    def count(self, ids: Ints) -> None:
        """Record the ids of some of its events; a process numbers its events consecutively."""
        if len(ids):
            self.events += len(ids)
            self.last_id = max(self.last_id, int(ids.max()))
            first = int(ids.min())
            self.first_id = first if self.first_id is None else min(self.first_id, first)


class Processes:
    """Processes by number, in order of first appearance."""

    def __init__(self) -> None:
        self.processes: list[Process] = []
        self.redefined: list[tuple[int, str, int, str]] = []
        """Process, hash, event id and name of each new meaning of a hash in a process, in order."""
        self._shared: dict[str, dict[str, None]] = {}
        """All processes' names by hash, in order of appearance."""
        self._guessed: set[str] = set()
        """Ambiguous hashes that a process uses without a definition of its own."""
        self._number: dict[tuple[str, int], int] = {}
        self._of_file: dict[tuple[str, int], int] = {}
        """Processes with numbered events in the file that is read now."""

    def begin_file(self) -> None:
        """Read another file."""
        self._of_file = {}

    def number(self, host: str, pid: int, event_id: int | None = None) -> int:
        """The number of a process; a new process gets a new number.

        Events of one number in two files are of two processes: programs give DLIO Profiler their own process id, and
        workers that of their rank.

        Parameters
        ----------
        event_id
            Number of one of its events in this file; None if it has none.
        """
        key = host, pid
        known = self._of_file.get(key, self._number.get(key, len(self.processes)))
        if key not in self._of_file and known < len(self.processes) and self.processes[known].has(event_id):
            known = len(self.processes)
        if known == len(self.processes):
            self.processes.append(Process(host, pid))
            self._number.setdefault(key, known)
        if event_id is not None:
            self._of_file[key] = known
        return known

    def learn(self, events: Sequence[dict[str, Any]], host: str) -> str:
        """Add the tracer's own facts; returns the hash of the file's host, or `host` if it is not recorded."""
        for event in events:
            args = event.get("args")
            args = args if isinstance(args, dict) else {}
            name, value = args.get("name"), args.get("value")
            title = event.get("name")
            host = str(value) if title == "HH" else host
            pid, event_id = number(event.get("pid")), number(event.get("id"))
            at = None if pid is None else self.number(str(args.get("hhash") or host), pid, event_id)
            if at is not None and event_id is not None:
                self.processes[at].count(np.array([event_id]))
            if title in ("FH", "HH", "SH"):
                if isinstance(name, str):
                    self._define(at, str(value), name.encode("utf-8", "replace").decode(), event_id)
                continue
            if at is None:
                continue
            process = self.processes[at]
            if title == "start":
                self._start(process, event, args)
            elif title == "end":
                process.ended = True
            elif name == "time_metric":
                process.scale = _NS.get(str(value), process.scale)
            elif title == "PR" and name == "rank":
                process.rank = number(value)
        return host

    def name(self, process: Process, key: str) -> str | None:
        """The name that a process first gave a hash, or another process if it gave none; None if unknown."""
        own = process.names.get(key)
        if own is not None or key not in self._shared:
            return own
        if len(self._shared[key]) > 1:
            self._guessed.add(key)
        return next(iter(self._shared[key]))

    def _define(self, owner: int | None, key: str, name: str, event_id: int | None) -> None:
        if owner is not None:
            other = self.processes[owner].names.setdefault(key, name) != name
            if other and event_id is not None:
                self.redefined.append((owner, key, event_id, name))
        self._shared.setdefault(key, {})[name] = None

    def _start(self, process: Process, event: dict[str, Any], args: dict[str, Any]) -> None:
        begin = number(event.get("ts"))
        if begin is not None and process.first_ns is None:
            process.first_ns = begin * process.scale
        process.started = True
        process.parent = number(args.get("ppid")) or -1
        process.command = str(args.get("cmd_hash", ""))
        process.script = str(args.get("exec_hash", ""))
        process.folder = str(args.get("cwd", ""))

    def problems(self) -> list[str]:
        """Sentences about missing events, processes without an end, and ambiguous names."""
        problems = []
        begun = [process for process in self.processes if process.last_id]
        lost = sum(max(0, p.last_id - (p.first_id or 0) + 1 - p.events) for p in begun)
        early = sum((p.first_id or 0) - 1 for p in begun if (p.first_id or 0) > 1)
        if lost + early:
            why = ", as where DFTracer begins a second file for a process" if early else ""
            problems.append(
                f"{counted(lost + early, 'event', 'is', 'are')} missing, according to their numbers (of "
                f"{sum(p.last_id for p in begun):,} in all){why}"
            )
        still = sum(process.started and not process.ended for process in begun)
        if still:
            problems.append(
                f"{counted(still, 'process', 'has', 'have')} no end (of {len(begun):,}): killed, or ended before "
                "DFTracer wrote the last calls"
            )
        if self._guessed:
            problems.append(
                f"{counted(len(self._guessed), 'name')} of files or programs share a hash with another, in processes "
                "that define neither: their calls count for the first"
            )
        return problems

    def missing(self) -> Missing:
        """Processes that others started or waited for, but that have no events."""
        present = {(process.host, process.pid) for process in self.processes}
        lives = [
            None if child.end is None else child.end - (child.begin or process.first_ns or 0)
            for process in self.processes
            for pid, child in process.children.items()
            if (process.host, pid) not in present
        ]
        known = [max(0, life) for life in lives if life is not None]
        return Missing(len(lives), sum(known) if len(known) == len(lives) else None)

    def apps(self) -> list[str]:
        """The app of each process; empty if the trace does not name it."""
        return [self._app(process, 0) for process in self.processes]

    def root(self, number: int, apps: Sequence[str]) -> int | None:
        """The job rank that a process is, or was started by: an MPI rank or a launcher's child; None if none."""
        for _ in self.processes:
            process = self.processes[number]
            parent = self._number.get((process.host, process.parent))
            if process.rank is not None or (parent is not None and apps[parent] in RANK_LAUNCHERS):
                return number
            if parent is None:
                return None
            number = parent
        return None

    def _app(self, process: Process, depth: int) -> str:
        words = (self.name(process, process.command) or "").split(";")
        script = self.name(process, process.script) or ""
        app = app_of(words)
        if not is_interpreter(app):
            return app
        module = next((word for word in words if any(worker in word for worker in _WORKERS)), "")
        if TRACKER in module:
            return TRACKER
        parent = self._number.get((process.host, process.parent))
        if module and parent is not None and depth < len(self.processes):
            return self._app(self.processes[parent], depth + 1)
        return app if script.startswith(_NAMELESS) else script or app
