"""A process of a program in `vani centre demo` with real I/O calls, and the Darshan log of its run.

    srun python -m vani.centre.demo.real_process PROGRAM MOUNT LOGS PACE

Processes synchronise through a folder of the job below the current folder. The first one writes the log, as Darshan
does when a program ends. PACE is a factor for the program's seconds, records and bytes.
"""

from __future__ import annotations

import getpass
import json
import os
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from vani.centre.demo.programs import MOUNT, PROGRAMS, FileUse, Notes, Steps
from vani.demo.striped_model import Machine, layout_of

_POLL_S: Final = 0.005
_LAYOUT: Final = "user.layout"
"""Attribute with the layout of files on `vani.demo.striped_file_system`."""


def scaled(size: int, pace: float, request: int) -> int:
    """Scale a number of bytes, rounded to whole requests, at least one."""
    return max(1, round(size * pace / request)) * request


@dataclass
class RealProcess:
    """A process that performs its steps while they are iterated over, and yields no times."""

    rank: int
    processes: int
    mount: Path
    meeting: Path
    pace: float
    notes: Notes = field(default_factory=lambda: Notes(time.monotonic, time.monotonic()))
    _met: int = 0

    def compute(self, seconds: float) -> Steps:
        time.sleep(seconds * self.pace)
        yield from ()

    def barrier(self) -> Steps:
        self._met += 1
        (self.meeting / f"{self._met}.{self.rank}").touch()
        while len([*self.meeting.glob(f"{self._met}.*")]) < self.processes:
            time.sleep(_POLL_S)
        yield from ()

    def write(
        self, path: str, offset: int, size: int, request: int, *, flush: bool = True, shared: bool = False
    ) -> Steps:
        notes, place = self.notes, self.place(path)
        use, data = notes.use(str(place), self.rank), bytes(request)
        place.parent.mkdir(parents=True, exist_ok=True)
        # As in MPI-IO, the first process creates the file and the others open it.
        if shared and self.rank:
            yield from self.barrier()
        begin = time.monotonic()
        file = os.open(place, os.O_WRONLY | os.O_CREAT, 0o644)
        notes.opened(use, begin)
        if shared and not self.rank:
            yield from self.barrier()
        begin, first = time.monotonic(), round(offset * self.pace)
        size = scaled(size, self.pace, request)
        for at in range(first, first + size, request):
            _check(os.pwrite(file, data, at), request)
        if flush:
            os.fsync(file)
            use.add("FSYNCS")
        notes.moved(use, "WRITE", first, size, request, begin)
        self._close(file, use)

    def append(self, path: str, records: int, size: int) -> Steps:
        notes, place = self.notes, self.place(path)
        use, data, records = notes.use(str(place), self.rank), bytes(size), round(records * self.pace)
        place.parent.mkdir(parents=True, exist_ok=True)
        begin = time.monotonic()
        file = os.open(place, os.O_WRONLY | os.O_CREAT, 0o644)
        notes.opened(use, begin)
        begin = time.monotonic()
        for record in range(records):
            _check(os.pwrite(file, data, record * size), size)
            os.fsync(file)
        use.add("FSYNCS", records)
        notes.moved(use, "WRITE", 0, records * size, size, begin)
        self._close(file, use)
        yield from ()

    def read(self, path: str, size: int, request: int) -> Steps:
        notes, place = self.notes, self.place(path)
        use, size = notes.use(str(place), self.rank), scaled(size, self.pace, request)
        begin = time.monotonic()
        file = os.open(place, os.O_RDONLY)
        notes.opened(use, begin)
        begin = time.monotonic()
        for at in range(0, size, request):
            _check(len(os.pread(file, request, at)), request)
        notes.moved(use, "READ", 0, size, request, begin)
        self._close(file, use)
        yield from ()

    def place(self, path: str) -> Path:
        """Path on this mount for a path in a program."""
        return self.mount / path.removeprefix(f"{MOUNT}/")

    def _close(self, file: int, use: FileUse) -> None:
        begin = time.monotonic()
        os.close(file)
        self.notes.closed(use, begin)


def _check(moved: int, request: int) -> None:
    if moved != request:
        raise OSError(f"{moved} of {request} bytes were moved")


def log_name(user: str, program: str, job: int) -> str:
    """Name that Darshan gives a log."""
    return f"{user}_{program}_id{job}-1_1-1-1-1_1.darshan"


def run(name: str, mount: Path, logs: Path, pace: float, variables: Mapping[str, str], machine: Machine) -> None:
    """Run a process of a program in a Slurm job."""
    program = next(program for program in PROGRAMS if program.name == name)
    job, rank = int(variables["SLURM_JOB_ID"]), int(variables["SLURM_PROCID"])
    meeting = Path(f"{job}.ranks")
    meeting.mkdir(exist_ok=True)
    process = RealProcess(rank, int(variables["SLURM_NTASKS"]), mount, meeting, pace)
    if not rank:
        # Outputs of an earlier run.
        shutil.rmtree(mount / program.user / program.name, ignore_errors=True)
    list(process.barrier())
    begin_s = time.time()
    process.notes.begin_s = time.monotonic()
    list(program.steps(process))
    uses = [*process.notes.uses.values()]
    (meeting / f"rank{rank}.json").write_text(json.dumps([asdict(use) for use in uses]))
    list(process.barrier())
    if rank:
        return
    from vani.centre.demo.darshan_log import LoggedRun, log_bytes  # noqa: PLC0415 - loads numpy; only the first rank needs it

    uses = [FileUse(**use) for path in meeting.glob("rank*.json") for use in json.loads(path.read_text())]
    logged = LoggedRun(
        program=f"/apps/{name}",
        job=job,
        processes=process.processes,
        start_s=begin_s,
        end_s=time.time(),
        uses=uses,
        stripes={path: _stripes(path, machine) for path in dict.fromkeys(use.path for use in uses)},
        mount=str(mount),
    )
    partial = logs / f".{job}.partial"
    partial.write_bytes(log_bytes(logged))
    partial.rename(logs / log_name(getpass.getuser(), name, job))


def _stripes(path: str, machine: Machine) -> tuple[int, list[int]]:
    part = layout_of(os.getxattr(path, _LAYOUT).decode().split(), machine)[0]
    return part.size, [*part.targets] or [(part.offset + stripe) % machine.targets for stripe in range(part.count)]


if __name__ == "__main__":
    from vani.demo.striped_model import MACHINES

    run(
        sys.argv[1],
        Path(sys.argv[2]),
        Path(sys.argv[3]),
        float(sys.argv[4]),
        os.environ,
        MACHINES["many slow targets"],
    )
