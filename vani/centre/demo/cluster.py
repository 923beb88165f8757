"""A small scheduler: nodes, a queue, and jobs whose processes run on the clock of the modelled file system.

Jobs start in queue order as soon as there are enough nodes and the previous job of the same program has ended, as with
Slurm's `--dependency=singleton`. Nothing waits in real time.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Final, Protocol

from vani.centre.demo.darshan_log import LoggedRun
from vani.centre.demo.programs import INPUTS, MOUNT, Notes, Program, Steps
from vani.demo.striped_model import File, Layout, Machine, MiB, Storage, layout_of

_IN_FLIGHT: Final = 8
"""Most requests in flight per process. Beyond that, it waits for the oldest."""


@dataclass
class ModelledRun:
    """A run of a program: its files, and the counters that Darshan would record.

    Attributes
    ----------
    layout_of
        Function from the path of a new file to its layout.
    files
        All files of the file system, by path.
    """

    storage: Storage
    layout_of: Callable[[str], Layout]
    files: dict[str, File]
    notes: Notes
    created: set[str] = field(default_factory=set)


@dataclass
class ModelledProcess:
    """A process on a node of the machine."""

    run: ModelledRun
    rank: int
    processes: int
    node: int

    def compute(self, seconds: float) -> Steps:
        """Compute without I/O for a time."""
        yield self.run.storage.now() + seconds

    def barrier(self) -> Steps:
        """Wait for all processes of the run."""
        yield math.inf

    def write(
        self, path: str, offset: int, size: int, request: int, *, flush: bool = True, shared: bool = False
    ) -> Steps:
        """Open a file, write a part, flush, and close it. The first process of a run creates it."""
        del shared
        run, storage = self.run, self.run.storage
        use = run.notes.use(path, self.rank)
        begin = storage.now()
        if path not in run.created:
            run.created.add(path)
            run.files[path] = storage.create(run.layout_of(path))
            yield storage.metadata(run.files[path].objects)
        else:
            yield storage.metadata()
        file = run.files[path]
        run.notes.opened(use, begin)
        begin, waiting = storage.now(), deque[float]()
        for at in range(offset, offset + size, request):
            storage.write(self.node, file, at, request)
            waiting.append(storage.close(self.node, file))
            if len(waiting) == _IN_FLIGHT:
                yield waiting.popleft()
        yield storage.flush(self.node, file) if flush else storage.close(self.node, file)
        run.notes.moved(use, "WRITE", offset, size, request, begin)
        use.add("FSYNCS", int(flush))
        begin = storage.now()
        yield storage.metadata()
        run.notes.closed(use, begin)

    def append(self, path: str, records: int, size: int) -> Steps:
        """Write small records with a flush after each."""
        run, storage = self.run, self.run.storage
        use, begin = run.notes.use(path, self.rank), storage.now()
        run.created.add(path)
        file = run.files[path] = storage.create(run.layout_of(path))
        yield storage.metadata(file.objects)
        run.notes.opened(use, begin)
        begin = storage.now()
        for record in range(records):
            storage.write(self.node, file, record * size, size)
            yield storage.flush(self.node, file)
        run.notes.moved(use, "WRITE", 0, records * size, size, begin)
        use.add("FSYNCS", records)
        begin = storage.now()
        yield storage.metadata()
        run.notes.closed(use, begin)

    def read(self, path: str, size: int, request: int) -> Steps:
        """Read an existing file from beginning to end."""
        run, storage = self.run, self.run.storage
        use, begin = run.notes.use(path, self.rank), storage.now()
        yield storage.metadata()
        run.notes.opened(use, begin)
        begin = storage.now()
        for at in range(0, size, request):
            yield storage.read(self.node, run.files[path], at, request, size)
        run.notes.moved(use, "READ", 0, size, request, begin)
        begin = storage.now()
        yield storage.metadata()
        run.notes.closed(use, begin)


_REQUEST: Final = 4 * MiB


@dataclass(frozen=True)
class Submitted:
    """A job: its number, its program, and its submission in seconds of the day."""

    number: int
    program: Program
    submit_s: float


@dataclass(frozen=True)
class Measured:
    """Times of a job in seconds of the day. `io_s` is the I/O time of its slowest process."""

    job: Submitted
    begin_s: float
    end_s: float
    io_s: float


@dataclass(frozen=True)
class Ended(Measured):
    """A job that has ended, with its log."""

    log: LoggedRun


class Hook(Protocol):
    """Work of the batch system before and after each job."""

    def begins(self, job: Submitted, storage: Storage) -> Callable[[str], Layout | None]:
        """Run before a job. Return a function from a path to the layout that the placement library would give."""

    def ended(self, ended: Ended) -> None:
        """Run after a job."""


@dataclass
class _Running:
    job: Submitted
    run: ModelledRun
    nodes: list[int]
    left: int
    waiting: list[Generator[float]] = field(default_factory=list)


@dataclass
class Machinery:
    """Nodes and file system of a day. Days with the same seed have the same inputs but different noise."""

    machine: Machine
    nodes: int
    seed: int
    day: int = 0
    now_s: float = 0.0
    storage: Storage = field(init=False)
    files: dict[str, File] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.storage = Storage(self.machine, self.seed, lambda: self.now_s)
        plain = layout_of([], self.machine)
        for path, size in INPUTS.items():
            self.files[path] = file = self.storage.create(plain)
            for at in range(0, size, _REQUEST):
                self.storage.write(-1, file, at, _REQUEST)
        # The inputs were written before the day begins.
        self.now_s = max(self.storage.busy_s())
        if self.day:
            self.storage.draw_anew(f"{self.seed} {self.day}")


def run_day(machinery: Machinery, jobs: Sequence[Submitted], hook: Hook | None, mount: str = MOUNT) -> list[Ended]:
    """Run all jobs of a day. Return them in the order in which they ended."""
    day = _Day(machinery, hook, mount)
    for job in jobs:
        day.at(machinery.now_s + job.submit_s, partial(day.queue.append, job))
    return list(day.run())


class _Day:
    """Event queue of a day: submissions of jobs and steps of processes."""

    def __init__(self, machinery: Machinery, hook: Hook | None, mount: str) -> None:
        self.machinery, self.hook, self.mount = machinery, hook, mount
        self.begin_s = machinery.now_s
        self.queue: list[Submitted] = []
        self.free = list(range(machinery.nodes))
        self.active: set[str] = set()
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._order = count()
        self._ended: list[Ended] = []

    def at(self, when: float, what: Callable[[], object]) -> None:
        heapq.heappush(self._events, (when, next(self._order), what))

    def run(self) -> Iterator[Ended]:
        while self._events:
            when, _, what = heapq.heappop(self._events)
            self.machinery.now_s = max(self.machinery.now_s, when)
            what()
            self._begin_jobs()
            yield from self._ended
            self._ended.clear()

    def _begin_jobs(self) -> None:
        for job in [*self.queue]:
            if job.program.name in self.active:
                continue
            if job.program.nodes > len(self.free):
                return
            self.queue.remove(job)
            self._begin(job)

    def _begin(self, job: Submitted) -> None:
        machinery = self.machinery
        planned = None if self.hook is None else self.hook.begins(job, machinery.storage)
        plain = layout_of([], machinery.machine)

        def layout(path: str) -> Layout:
            return (None if planned is None else planned(path)) or plain

        nodes, self.free = self.free[: job.program.nodes], self.free[job.program.nodes :]
        notes = Notes(machinery.storage.now, machinery.now_s)
        run = ModelledRun(machinery.storage, layout, machinery.files, notes)
        running = _Running(job, run, nodes, len(nodes))
        self.active.add(job.program.name)
        for rank, node in enumerate(nodes):
            process = ModelledProcess(run, rank, len(nodes), node)
            self._go_on(running, job.program.steps(process))

    def _go_on(self, running: _Running, steps: Generator[float]) -> None:
        try:
            when = next(steps)
        except StopIteration:
            running.left -= 1
            if not running.left:
                self._end(running)
            return
        if when == math.inf:
            running.waiting.append(steps)
            if len(running.waiting) < running.left:
                return
            for other in running.waiting:
                self.at(self.machinery.now_s, partial(self._go_on, running, other))
            running.waiting.clear()
            return
        self.at(when, partial(self._go_on, running, steps))

    def _end(self, running: _Running) -> None:
        job, run = running.job, running.run
        self.free = sorted([*self.free, *running.nodes])
        self.active.remove(job.program.name)
        by_rank = dict.fromkeys(range(len(running.nodes)), 0.0)
        for use in run.notes.uses.values():
            by_rank[use.rank] += sum(use.counters.get(f"F_{kind}_TIME", 0.0) for kind in ("READ", "WRITE", "META"))
        now_s = self.machinery.now_s
        log = LoggedRun(
            program=f"/apps/{job.program.name}",
            job=job.number,
            processes=len(running.nodes),
            start_s=run.notes.begin_s,
            end_s=now_s,
            uses=list(run.notes.uses.values()),
            stripes={path: self._stripes(path) for path in dict.fromkeys(path for path, _ in run.notes.uses)},
            mount=self.mount,
        )
        ended = Ended(job, run.notes.begin_s - self.begin_s, now_s - self.begin_s, max(by_rank.values()), log)
        if self.hook is not None:
            self.hook.ended(ended)
        self._ended.append(ended)

    def _stripes(self, path: str) -> tuple[int, list[int]]:
        file = self.machinery.files[path]
        part = file.layout[0]
        return part.size, [file.target((0, stripe), self.machinery.machine.targets) for stripe in range(part.count)]
