"""Five programs of the centre of `vani demo centre`, and the processes that run them on the model's clock."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Final

from vani.demo.darshan_log import FileUse
from vani.demo.striped_model import File, Layout, MiB, Storage

__all__ = ["MOUNT", "PROGRAMS", "Process", "Program", "Run"]

MOUNT: Final = "/scratch"
KiB: Final = 1 << 10
_IN_FLIGHT: Final = 8
"""Requests that a process has under way; it waits for the oldest then."""
_BINS: Final = ((10 * KiB, "1K_10K"), (100 * KiB, "10K_100K"), (MiB, "100K_1M"), (4 * MiB, "1M_4M"))
"""Most bytes of a request that Darshan counts so."""

Steps = Generator[float]
"""Times at which a process continues; infinity: when all processes of its run have come so far."""


@dataclass
class Run:
    """A run of a program: its files, and what Darshan would note.

    Attributes
    ----------
    layout_of
        The layout that a new file gets, by its path.
    files
        Of the whole file system, by path.
    """

    storage: Storage
    layout_of: Callable[[str], Layout]
    files: dict[str, File]
    begin_s: float
    uses: dict[tuple[str, int], FileUse] = field(default_factory=dict)
    created: set[str] = field(default_factory=set)


@dataclass
class Process:
    """A process on a node of the machine."""

    run: Run
    rank: int
    processes: int
    node: int

    def compute(self, seconds: float) -> Steps:
        """Do no I/O for a while."""
        yield self.run.storage.now() + seconds

    def barrier(self) -> Steps:
        """Wait for all processes of the run."""
        yield math.inf

    def write(self, path: str, offset: int, size: int, request: int, *, flush: bool = True) -> Steps:
        """Open a file, write a part of it, flush, and close it; the first process of a run makes it again."""
        run, storage = self.run, self.run.storage
        use = self._use(path)
        begin = storage.now()
        if path not in run.created:
            run.created.add(path)
            run.files[path] = storage.create(run.layout_of(path))
            yield storage.metadata(run.files[path].objects)
        else:
            yield storage.metadata()
        file = run.files[path]
        self._opened(use, begin)
        begin, waiting = storage.now(), deque[float]()
        use.counters.setdefault("F_WRITE_START_TIMESTAMP", begin - run.begin_s)
        for at in range(offset, offset + size, request):
            storage.write(self.node, file, at, request)
            waiting.append(storage.close(self.node, file))
            if len(waiting) == _IN_FLIGHT:
                yield waiting.popleft()
        yield storage.flush(self.node, file) if flush else storage.close(self.node, file)
        self._moved(use, "WRITE", offset, size, request, begin)
        use.add("FSYNCS", int(flush))
        begin = storage.now()
        yield storage.metadata()
        self._closed(use, begin)

    def append(self, path: str, records: int, size: int) -> Steps:
        """Write small records, each flushed."""
        run, storage = self.run, self.run.storage
        use, begin = self._use(path), storage.now()
        run.created.add(path)
        file = run.files[path] = storage.create(run.layout_of(path))
        yield storage.metadata(file.objects)
        self._opened(use, begin)
        begin = storage.now()
        use.counters.setdefault("F_WRITE_START_TIMESTAMP", begin - run.begin_s)
        for record in range(records):
            storage.write(self.node, file, record * size, size)
            yield storage.flush(self.node, file)
        self._moved(use, "WRITE", 0, records * size, size, begin)
        use.add("FSYNCS", records)
        begin = storage.now()
        yield storage.metadata()
        self._closed(use, begin)

    def read(self, path: str, size: int, request: int) -> Steps:
        """Read a file that is there from beginning to end."""
        run, storage = self.run, self.run.storage
        use, begin = self._use(path), storage.now()
        yield storage.metadata()
        self._opened(use, begin)
        begin = storage.now()
        use.counters.setdefault("F_READ_START_TIMESTAMP", begin - run.begin_s)
        for at in range(0, size, request):
            yield storage.read(self.node, run.files[path], at, request, size)
        self._moved(use, "READ", 0, size, request, begin)
        begin = storage.now()
        yield storage.metadata()
        self._closed(use, begin)

    def _use(self, path: str) -> FileUse:
        return self.run.uses.setdefault((path, self.rank), FileUse(path, self.rank))

    def _opened(self, use: FileUse, begin: float) -> None:
        use.add("OPENS")
        use.add("F_META_TIME", self.run.storage.now() - begin)
        use.counters.setdefault("F_OPEN_START_TIMESTAMP", begin - self.run.begin_s)
        use.counters["F_OPEN_END_TIMESTAMP"] = self.run.storage.now() - self.run.begin_s

    def _closed(self, use: FileUse, begin: float) -> None:
        use.add("F_META_TIME", self.run.storage.now() - begin)
        use.counters.setdefault("F_CLOSE_START_TIMESTAMP", begin - self.run.begin_s)
        use.counters["F_CLOSE_END_TIMESTAMP"] = self.run.storage.now() - self.run.begin_s

    def _moved(self, use: FileUse, kind: str, offset: int, size: int, request: int, begin: float) -> None:
        calls, past = size // request, "WRITTEN" if kind == "WRITE" else "READ"
        before = use.counters.get(f"{kind}S", 0)
        for name, value in (
            (f"{kind}S", calls),
            (f"BYTES_{past}", size),
            (f"SEQ_{kind}S", calls - (0 if before else 1)),
            (f"CONSEC_{kind}S", calls - 1),
            (f"SIZE_{kind}_{_bin(request)}", calls),
            (f"F_{kind}_TIME", self.run.storage.now() - begin),
        ):
            use.add(name, value)
        use.counters["ACCESS1_ACCESS"] = request
        use.add("ACCESS1_COUNT", calls)
        last = f"MAX_BYTE_{past}"
        use.counters[last] = max(use.counters.get(last, 0), offset + size - 1)
        use.counters[f"F_{kind}_END_TIMESTAMP"] = self.run.storage.now() - self.run.begin_s


def _bin(request: int) -> str:
    return next(name for most, name in _BINS if request <= most)


@dataclass(frozen=True)
class Program:
    """A program: its user, the nodes of each run with a process each, and what a process does."""

    name: str
    user: str
    nodes: int
    does: str
    steps: Callable[[Process], Steps]


def _checkpoint(process: Process) -> Steps:
    for step in range(3):
        yield from process.compute(4.0)
        yield from process.write(
            f"{MOUNT}/ada/checkpoint/step.{step}", process.rank * 24 * MiB, 24 * MiB, 4 * MiB
        )
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
