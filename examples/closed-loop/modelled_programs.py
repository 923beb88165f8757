"""The programs of `programs.c` as the model sees them: the requests of each process, and who waits for whom.

    seconds("many slow targets", "large-requests", ["-c", "16", "-S", "1M"], {}, seed=1)

gives the seconds that such a run takes by `vani.demo.striped_model`, at once: nothing sleeps, nothing is
timed, and the same seed gives the same number. Of collective calls it follows what
ROMIO does with its hints: each aggregator writes a part of the region
of a call, in pieces of `cb_buffer_size`; without them each process reads, changes and writes back
pieces of 512 KiB (data sieving). On the mounted file system real programs run, with MPICH's ROMIO.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field

from vani.demo.striped_model import File, MiB, Storage, layout_of, machine_of

KiB = 1 << 10
PROCESSES = 4
PART = 16 * MiB
PIECE = 64 * KiB
STEP = 4 * MiB
SIEVE = 512 * KiB
MOST = MiB
"""Bytes of a request as FUSE passes it on."""
START_S = 0.3
"""A program begins and ends (MPI's start, a usual value on one node)."""

RUN_NOISE = 0.02
"""Others use the file system, too: deviation of the logarithm of a run's time, added to the noise of requests."""

Steps = Generator["float | None", None, None]
"""What a process does: it waits until a time, or for all others (None)."""


def seconds(machine: str, kind: str, layout: Sequence[str], hints: Mapping[str, str], seed: int) -> float:
    """Seconds of a run of a program under a layout (options of `lfs setstripe`; none: the default) and hints."""
    return _Run(machine, layout, hints, seed).carry_out(kind)


@dataclass
class _Run:
    machine: str
    layout: Sequence[str]
    hints: Mapping[str, str]
    seed: int
    now: float = 0.0
    files: dict[str, File] = field(default_factory=dict)

    def __post_init__(self) -> None:
        figures = machine_of(self.machine)
        self.storage = Storage(figures, self.seed, lambda: self.now)
        self.words = layout_of(self.layout, figures)

    def carry_out(self, kind: str) -> float:
        program = getattr(self, kind.replace("-", "_"))
        running = {rank: program(rank) for rank in range(PROCESSES)}
        waiting = [(0.0, rank) for rank in running]
        together: list[int] = []
        while waiting or together:
            if not waiting:
                # All that still run have come to where they wait for one another.
                waiting, together = [(self.now, rank) for rank in together], []
            self.now, rank = heapq.heappop(waiting)
            until = next(running[rank], False)
            if until is None:
                together.append(rank)
            elif until is not False:
                heapq.heappush(waiting, (max(until, self.now), rank))
        return START_S + self.now * math.exp(random.Random(self.seed).gauss(0.0, RUN_NOISE))

    def made(self, name: str) -> Generator[float, None, File]:
        # The kernel looks the name up before, and its attributes after.
        yield self.storage.metadata()
        file = self.files.setdefault(name, self.storage.create(self.words))
        yield self.storage.metadata(file.objects)
        yield self.storage.metadata()
        return file

    def opened(self, name: str) -> Generator[float, None, File]:
        yield self.storage.metadata()
        return self.files[name]

    def written(self, rank: int, file: File, offset: int, size: int) -> Steps:
        for at in range(offset, offset + size, MOST):
            yield self.storage.write(rank, file, at, min(MOST, offset + size - at))

    def ended(self, rank: int, file: File, *, flushes: bool = True) -> Steps:
        if flushes:
            yield self.storage.flush(rank, file)
        yield self.storage.close(rank, file)

    def shared(self, rank: int, request: int) -> Steps:
        file = yield from self.all_open(rank)
        for at in range(rank * PART, (rank + 1) * PART, request):
            yield from self.written(rank, file, at, request)
        yield from self.ended(rank, file)

    def all_open(self, rank: int) -> Generator[float | None, None, File]:
        """The first process makes the file, then all open it."""
        if rank == 0:
            yield from self.made("shared")
        yield None
        return (yield from self.opened("shared"))

    def small_requests(self, rank: int) -> Steps:
        yield from self.shared(rank, 128 * KiB)

    def large_requests(self, rank: int) -> Steps:
        yield from self.shared(rank, 4 * MiB)

    def strided_collective(self, rank: int) -> Steps:
        file = yield from self.all_open(rank)
        aggregators = min(PROCESSES, int(self.hints.get("cb_nodes", PROCESSES)))
        buffer = int(self.hints.get("cb_buffer_size", 16 * MiB))
        region = STEP * PROCESSES
        for begin in range(0, PART * PROCESSES, region):
            if self.hints.get("romio_cb_write") == "disable":
                for at in range(begin, begin + region, SIEVE):
                    yield self.storage.read(rank, file, at, SIEVE, PART * PROCESSES)
                    yield from self.written(rank, file, at, SIEVE)
                continue
            part = region // aggregators
            for at in range(0, part, buffer):
                # Each piece is exchanged first, which all wait for.
                yield None
                if rank < aggregators:
                    yield from self.written(rank, file, begin + rank * part + at, min(buffer, part - at))
        yield None
        yield from self.ended(rank, file)

    def file_per_process(self, rank: int) -> Steps:
        for step in range(3):
            file = yield from self.made(f"{rank}.{step}")
            yield from self.written(rank, file, 0, PART)
            yield from self.ended(rank, file)

    def small_files(self, rank: int) -> Steps:
        for number in range(32):
            file = yield from self.made(f"{rank}.{number}")
            yield from self.written(rank, file, 0, 16 * KiB)
            yield from self.ended(rank, file, flushes=False)

    def read_again(self, rank: int) -> Steps:
        file = yield from self.made(f"{rank}")
        yield from self.written(rank, file, 0, PART)
        yield from self.ended(rank, file)
        yield None
        for turn in range(2 * (PROCESSES - 1)):
            file = yield from self.opened(f"{(rank + 1 + turn % (PROCESSES - 1)) % PROCESSES}")
            for at in range(0, PART, MiB):
                yield self.storage.read(rank, file, at, MiB, PART)

    def flush_bound(self, rank: int) -> Steps:
        file = yield from self.made(f"{rank}")
        for record in range(300):
            yield from self.written(rank, file, record * 4 * KiB, 4 * KiB)
            yield self.storage.flush(rank, file)

    def compute(self, rank: int) -> Steps:
        yield self.now + 1.0
        file = yield from self.made(f"{rank}")
        yield from self.written(rank, file, 0, 64 * KiB)
        yield from self.ended(rank, file, flushes=False)
