"""The five programs in `vani centre demo`, for processes on the model's clock or real processes.

Both note the counters of their POSIX calls for each file and process, as Darshan records them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Final, Protocol

from vani.units import KiB, MiB

_BINS: Final = ((10 * KiB, "1K_10K"), (100 * KiB, "10K_100K"), (MiB, "100K_1M"), (4 * MiB, "1M_4M"))
"""Largest request of each size bin of Darshan."""


@dataclass
class FileUse:
    """A process's use of a file: POSIX counters by name. Missing ones are 0."""

    path: str
    rank: int
    counters: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, value: float = 1) -> None:
        """Add to a counter."""
        self.counters[name] = self.counters.get(name, 0) + value


@dataclass
class Notes:
    """Counters of a run, or of one of its processes.

    Attributes
    ----------
    clock
        Returns the current time in seconds. Timestamps are relative to `begin_s`.
    """

    clock: Callable[[], float]
    begin_s: float
    uses: dict[tuple[str, int], FileUse] = field(default_factory=dict)

    def use(self, path: str, rank: int) -> FileUse:
        """The counters of a file and a process, initially empty."""
        return self.uses.setdefault((path, rank), FileUse(path, rank))

    def opened(self, use: FileUse, begin: float) -> None:
        """Record an open that started at `begin` and ends now."""
        use.add("OPENS")
        self._spent(use, "META", "OPEN", begin)

    def closed(self, use: FileUse, begin: float) -> None:
        """Record a close that started at `begin` and ends now."""
        self._spent(use, "META", "CLOSE", begin)

    def moved(self, use: FileUse, kind: str, offset: int, size: int, request: int, begin: float) -> None:
        """Record consecutive requests of equal size, including their flushes. `kind` is READ or WRITE."""
        calls, past = size // request, "WRITTEN" if kind == "WRITE" else "READ"
        before = use.counters.get(f"{kind}S", 0)
        for name, value in (
            (f"{kind}S", calls),
            (f"BYTES_{past}", size),
            (f"SEQ_{kind}S", calls - (0 if before else 1)),
            (f"CONSEC_{kind}S", calls - 1),
            (f"SIZE_{kind}_{_bin(request)}", calls),
        ):
            use.add(name, value)
        use.counters["ACCESS1_ACCESS"] = request
        use.add("ACCESS1_COUNT", calls)
        last = f"MAX_BYTE_{past}"
        use.counters[last] = max(use.counters.get(last, 0), offset + size - 1)
        self._spent(use, kind, kind, begin)

    def _spent(self, use: FileUse, kind: str, what: str, begin: float) -> None:
        now = self.clock()
        use.add(f"F_{kind}_TIME", now - begin)
        use.counters.setdefault(f"F_{what}_START_TIMESTAMP", begin - self.begin_s)
        use.counters[f"F_{what}_END_TIMESTAMP"] = now - self.begin_s


def _bin(request: int) -> str:
    return next(name for most, name in _BINS if request <= most)


MOUNT: Final = "/scratch"

Steps = Generator[float]
"""Times at which a process continues. Infinity means when all processes of its run have reached that point."""


class Process(Protocol):
    """A process of a run, on a node of its own."""

    rank: int

    def compute(self, seconds: float) -> Steps:
        """Compute without I/O for a time."""

    def barrier(self) -> Steps:
        """Wait for all processes of the run."""

    def write(
        self, path: str, offset: int, size: int, request: int, *, flush: bool = True, shared: bool = False
    ) -> Steps:
        """Open a file, write a part, flush, and close it. All processes write a `shared` file."""

    def append(self, path: str, records: int, size: int) -> Steps:
        """Write small records with a flush after each."""

    def read(self, path: str, size: int, request: int) -> Steps:
        """Read an existing file from beginning to end."""


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
        yield from process.write(
            f"{MOUNT}/ada/checkpoint/step.{step}", process.rank * 24 * MiB, 24 * MiB, 4 * MiB, shared=True
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
