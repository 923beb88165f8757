"""The five programs of `vani centre demo`, and a small scheduler on the clock of the modelled file system.

Jobs start in queue order as soon as there are enough nodes and the previous job of the same program has ended, as with
Slurm's `--dependency=singleton`. Nothing waits in real time.
"""

import heapq
import math
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from itertools import count
from typing import Any, Final

import numpy as np

from vani.centre.history.rows import StoredRun
from vani.centre.prediction.creations.series import NO_RANK, Creations
from vani.demo.striped_model import File, Layout, Machine, MiB, Storage, layout_of
from vani.units import KiB

MOUNT: Final = "/scratch"
_IN_FLIGHT: Final = 8
"""Most requests in flight per process. Beyond that, it waits for the oldest."""

Steps = Generator[float]
"""Times at which a process continues. Infinity means when all processes of its run have reached that point."""


@dataclass
class ModelledRun:
    """A run of a program: its files, and the sums that a history keeps of it.

    Attributes
    ----------
    layout_of
        Function from the path of a new file to its layout.
    files
        All files of the file system, by path.
    keeps
        Files that exist are overwritten and keep their layout. Otherwise each run finds its output folders empty.
    sums
        Bytes, calls and seconds by their names in `StoredRun`.
    io_s
        Seconds in I/O calls by rank.
    written
        Size and writing ranks of each written file.
    """

    storage: Storage
    layout_of: Callable[[str], Layout]
    files: dict[str, File]
    keeps: bool
    begin_s: float
    sums: Counter[str] = field(default_factory=Counter)
    io_s: Counter[int] = field(default_factory=Counter)
    written: dict[str, tuple[int, set[int]]] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)

    def open(self, path: str) -> float:
        """Open a file for writing, and create it if it is not there; return when this is done."""
        is_new = path not in self.written and not (self.keeps and path in self.files)
        self.written.setdefault(path, (0, set()))
        if not is_new:
            return self.storage.metadata()
        self.files[path] = self.storage.create(self.layout_of(path))
        return self.storage.metadata(self.files[path].objects)


@dataclass
class Process:
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

    def write(self, path: str, offset: int, size: int, request: int, *, flush: bool = True) -> Steps:
        """Open a file, write a part, flush, and close it. The first process of a run creates it."""
        run, storage = self.run, self.run.storage
        yield from self._timed("metadata", run.open(path))
        file, begin, waiting = run.files[path], storage.now(), deque[float]()
        for at in range(offset, offset + size, request):
            storage.write(self.node, file, at, request)
            waiting.append(storage.close(self.node, file))
            if len(waiting) == _IN_FLIGHT:
                yield waiting.popleft()
        yield storage.flush(self.node, file) if flush else storage.close(self.node, file)
        self._wrote(path, offset + size, size, size // request, begin)
        yield from self._timed("metadata", storage.metadata())

    def append(self, path: str, records: int, size: int) -> Steps:
        """Write small records with a flush after each."""
        run, storage = self.run, self.run.storage
        yield from self._timed("metadata", run.open(path))
        file, begin = run.files[path], storage.now()
        for record in range(records):
            storage.write(self.node, file, record * size, size)
            yield storage.flush(self.node, file)
        self._wrote(path, records * size, records * size, records, begin)
        yield from self._timed("metadata", storage.metadata())

    def read(self, path: str, size: int, request: int) -> Steps:
        """Read an existing file from beginning to end."""
        run, storage = self.run, self.run.storage
        run.read.add(path)
        yield from self._timed("metadata", storage.metadata())
        for at in range(0, size, request):
            yield from self._timed("read", storage.read(self.node, run.files[path], at, request, size))
        run.sums["bytes_read"] += size
        run.sums["reads"] += size // request
        yield from self._timed("metadata", storage.metadata())

    def _timed(self, kind: str, until: float) -> Steps:
        begin = self.run.storage.now()
        yield until
        self._spent(kind, begin)

    def _spent(self, kind: str, begin: float) -> None:
        seconds = self.run.storage.now() - begin
        self.run.sums[f"{kind}_s"] += seconds  # type: ignore[assignment]
        self.run.sums["metadata"] += kind == "metadata"
        self.run.io_s[self.rank] += seconds  # type: ignore[assignment]

    def _wrote(self, path: str, end: int, size: int, calls: int, begin: float) -> None:
        before, ranks = self.run.written[path]
        self.run.written[path] = max(before, end), ranks | {self.rank}
        self.run.sums["bytes_written"] += size
        self.run.sums["writes"] += calls
        self._spent("write", begin)


@dataclass(frozen=True)
class Program:
    """A program: its user, its number of nodes with one process each, and the steps of a process."""

    name: str
    user: str
    nodes: int
    does: str
    steps: Callable[[Process], Steps]


def _checkpoint(process: Process) -> Steps:
    for step in range(3):
        yield from process.compute(4.0)
        path = f"{MOUNT}/ada/checkpoint/step.{step}"
        yield from process.write(path, process.rank * 24 * MiB, 24 * MiB, 4 * MiB)
        yield from process.barrier()


def _fields(process: Process) -> Steps:
    for step in range(2):
        yield from process.compute(5.0)
        yield from process.write(f"{MOUNT}/ben/fields/{step}/part.{process.rank}", 0, 32 * MiB, MiB)
        yield from process.barrier()


def _samples(process: Process) -> Steps:
    yield from process.compute(1.0)
    for number in range(48):
        path = f"{MOUNT}/cora/samples/{process.rank}/sample.{number}"
        yield from process.write(path, 0, 64 * KiB, 64 * KiB, flush=False)


def _training(process: Process) -> Steps:
    for number in range(4):
        yield from process.read(f"{MOUNT}/dana/images/{number}", 32 * MiB, MiB)
        yield from process.compute(1.5)


def _solver(process: Process) -> Steps:
    for part in range(2):
        yield from process.compute(4.0)
        yield from process.append(f"{MOUNT}/eli/solver/log.{process.rank}.{part}", 60, 4 * KiB)


PROGRAMS: Final = (
    Program("checkpoint", "ada", 4, "one file of all processes, three times", _checkpoint),
    Program("fields", "ben", 4, "a file of each process, twice", _fields),
    Program("samples", "cora", 2, "many small files", _samples),
    Program("training", "dana", 2, "reads files that are there", _training),
    Program("solver", "eli", 2, "computes, and flushes each line of a log", _solver),
)
INPUTS: Final = {f"{MOUNT}/dana/images/{number}": 32 * MiB for number in range(4)}


_REQUEST: Final = 4 * MiB


@dataclass(frozen=True)
class Submitted:
    """A job: its number, its program, and its submission in seconds of the day."""

    number: int
    program: Program
    submit_s: float


@dataclass(frozen=True)
class Ended:
    """A job that has ended, with times in seconds of the day. `io_s` is the I/O time of its slowest process."""

    job: Submitted
    begin_s: float
    end_s: float
    io_s: float
    run: ModelledRun

    def stored(self, begin_s: float, number: int) -> tuple[StoredRun, Creations]:
        """Row of a history for a Darshan log of the run, on a day that began at `begin_s`."""
        run, program = self.run, self.job.program
        sums: dict[str, Any] = dict(run.sums)
        stripes = [max(1, run.files[path].layout[-1].count) for path in (*run.written, *run.read)]
        values: dict[str, Any] = dict.fromkeys(StoredRun.__slots__) | sums | {
            "digest": sha256(f"{begin_s} {number}".encode()).hexdigest(), "kind": "darshan", "complete": True,
            "user": program.user, "application": program.name, "processes": program.nodes, "job": str(number),
            "submitted": begin_s + self.begin_s, "runtime_s": self.end_s - self.begin_s, "files": len(stripes),
            "shared_files": len(run.read) + sum(len(ranks) > 1 for _, ranks in run.written.values()),
            "in_io_s": float(sum(run.io_s.values())), "slowest_s": self.io_s, "waiting_s": self.io_s * program.nodes,
            "file_system": "lustre", "mount": MOUNT, "stripes": stripes[0],
        }  # fmt: skip
        ranks = [NO_RANK if len(some) > 1 else min(some) for _, some in run.written.values()]
        sizes = [size for size, _ in run.written.values()]
        columns = np.array([sizes, ranks, stripes[: len(sizes)]], np.int64)
        return StoredRun(**values), Creations(columns[0], columns[1], columns[2], tuple(run.written))


LayoutOf = Callable[[str], Layout | None]
"""Function from the path of a new file to its layout; None: the default of the file system."""
DEFAULT: Final[LayoutOf] = lambda _: None  # noqa: E731


@dataclass
class _Running:
    job: Submitted
    run: ModelledRun
    nodes: list[int]
    left: int
    waiting: list[Generator[float]] = field(default_factory=list)


@dataclass
class Machinery:
    """Nodes and file system of a day. Days with the same seed have the same inputs but different noise.

    Attributes
    ----------
    layout_of
        Layouts of the inputs.
    """

    machine: Machine
    nodes: int
    seed: int
    day: int = 0
    layout_of: LayoutOf = DEFAULT
    now_s: float = 0.0
    storage: Storage = field(init=False)
    files: dict[str, File] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.storage = Storage(self.machine, self.seed, lambda: self.now_s)
        plain = layout_of([], self.machine)
        for path, size in INPUTS.items():
            self.files[path] = file = self.storage.create(self.layout_of(path) or plain)
            for at in range(0, size, _REQUEST):
                self.storage.write(-1, file, at, _REQUEST)
        # The inputs were written before the day begins.
        self.next_day(self.day)

    def next_day(self, day: int) -> None:
        """Wait until all targets are idle, and continue with the noise of another day."""
        self.now_s += max(self.storage.busy_s())
        if day:
            self.storage.draw_anew(f"{self.seed} {day}")


def run_day(
    machinery: Machinery, jobs: Sequence[Submitted], layout_of: LayoutOf = DEFAULT, *, keeps: bool = False
) -> list[Ended]:
    """Run all jobs of a day. Return them in the order in which they ended.

    Parameters
    ----------
    layout_of
        Layouts of new files.
    keeps
        Files of earlier runs are overwritten and keep their layout.
    """
    day = _Day(machinery, layout_of, keeps=keeps)
    for job in jobs:
        day.at(machinery.now_s + job.submit_s, partial(day.queue.append, job))
    return list(day.run())


class _Day:
    """Event queue of a day: submissions of jobs and steps of processes."""

    def __init__(self, machinery: Machinery, layout_of: LayoutOf, *, keeps: bool) -> None:
        self.machinery, self.layout_of, self.keeps = machinery, layout_of, keeps
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
        plain = layout_of([], machinery.machine)
        nodes, self.free = self.free[: job.program.nodes], self.free[job.program.nodes :]
        run = ModelledRun(
            machinery.storage, lambda path: self.layout_of(path) or plain, machinery.files, self.keeps, machinery.now_s
        )
        running = _Running(job, run, nodes, len(nodes))
        self.active.add(job.program.name)
        for rank, node in enumerate(nodes):
            process = Process(run, rank, len(nodes), node)
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
        begin_s, now_s = run.begin_s - self.begin_s, self.machinery.now_s - self.begin_s
        self._ended.append(Ended(job, begin_s, now_s, max(run.io_s.values(), default=0.0), run))
