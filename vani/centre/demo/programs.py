"""The five programs in `vani centre demo`, for processes on the model's clock or real processes."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Final, Protocol

from vani.centre.demo.striped_model import MiB

MOUNT: Final = "/scratch"
KiB: Final = 1 << 10

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
