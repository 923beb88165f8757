"""The days of `vani centre demo` under a real Slurm, with real I/O calls on a mounted stand-in.

The hook is `vani/centre/prolog/slurm`, as a site installs it. The placement library gives files their layouts through a
stand-in for liblustreapi. Times depend on this machine and say nothing about Lustre.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from vani.centre.demo import slurm_cluster
from vani.centre.demo.centre import (
    MACHINE,
    NODES,
    CentreReport,
    Progress,
    day_costs,
    jobs_of_day,
    silent,
    snapshot_of,
)
from vani.centre.demo.cluster import Measured, Submitted
from vani.centre.demo.programs import INPUTS, MOUNT
from vani.centre.demo.real_process import log_name, scaled
from vani.centre.demo.slurm_cluster import SOURCES, Cluster, until
from vani.centre.demo.striped_model import MACHINES, MiB
from vani.centre.history.rows import PlannedRun
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.plan.learn import plan_learn
from vani.centre.plan.outcome import plan_outcome
from vani.demo import mounting
from vani.errors import InputError
from vani.readers.darshan.totals import read_totals

PACE: Final = 0.5
"""Share of the modelled day's seconds and bytes."""
DAYS: Final = (
    ("without the hook", False),
    ("without, once more", False),
    ("hook, nothing known", True),
    ("hook, learned a day", True),
)
_TARGETS: Final = "user.targets"
_COLLECT_S: Final = 1.0
_DAY_S: Final = 1800.0


def impossible() -> str:
    """Why this cannot run here; empty if it can."""
    if reason := slurm_cluster.impossible() or mounting.impossible():
        return reason
    missing = [name for name in ("cc", "make") if shutil.which(name) is None]
    return f"{' and '.join(missing)} not installed, to build the placement library" if missing else ""


class _Centre:
    """Folders that all days share, and the libraries built for them."""

    def __init__(self, folder: Path, seed: int, pace: float) -> None:
        self.folder, self.seed, self.pace = folder, seed, pace
        self.logs, self.history, self.known = folder / "logs", folder / "history.sqlite", folder / "known"
        self.snapshot, self.mount, self.libraries = folder / "now.yaml", folder / "scratch", folder / "lib"
        for place in (self.logs, self.mount):
            place.mkdir()
        sources = str(SOURCES / "vani" / "centre" / "placement_library")
        build = ["make", "-s", "-C", sources, "all", "stand-in", f"OUT={self.libraries}"]
        done = subprocess.run(build, capture_output=True, text=True, check=False)
        if done.returncode:
            raise InputError(
                f"cannot be built: {done.stderr.strip()[:500]}", where=build[3], todo="see docs/plan-place.md"
            )

    def cluster(self, number: int, hook: bool) -> Cluster:
        variables = {
            "VANI_PLACE_LIB": str(self.libraries / "liblustreapi.so"),
            "VANI_PLACE_LOG": str(self.folder / "placed.log"),
            "PYTHONPATH": str(SOURCES),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        cluster = Cluster(
            self.folder / f"day{number}",
            nodes=NODES,
            cpus=1,
            first_job=1000 * number + 101,
            hook=hook,
            variables=variables,
        )
        options = {
            "--io-nodes": 0,
            "--known": self.known,
            "--snapshot": self.snapshot,
            "--place-library": self.libraries / "libvani_place.so",
        }
        cluster.configure(
            " ".join(f"{name} {value}" for name, value in options.items()),
            more=f"VANI_LOGS={self.logs}\nVANI_HISTORY={self.history}\n",
        )
        return cluster

    @contextmanager
    def file_system(self, number: int) -> Iterator[None]:
        """Mount the stand-in with its inputs, and collect its state in a thread."""
        memory = Path("/dev/shm")
        end = threading.Event()
        with (
            tempfile.TemporaryDirectory(prefix="vani-centre-", dir=memory if memory.is_dir() else None) as backing,
            mounting.served(
                self.mount, "striped_file_system", backing, MACHINE, str(self.seed + number)
            ),
        ):
            for path, size in INPUTS.items():
                place = self.mount / path.removeprefix(f"{MOUNT}/")
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(bytes(scaled(size, self.pace, MiB)))
            collector = threading.Thread(target=self._collect, args=(end,))
            collector.start()
            try:
                yield
            finally:
                end.set()
                collector.join()

    def _collect(self, end: threading.Event) -> None:
        while True:
            stored, busy_s = self.targets()
            snapshot_of(MACHINES[MACHINE], stored, busy_s).save(self.snapshot)
            if end.wait(_COLLECT_S):
                return

    def targets(self) -> tuple[list[int], list[float]]:
        """Bytes written to each target, and its seconds of outstanding work."""
        stored, busy_s = json.loads(os.getxattr(self.mount, _TARGETS))
        return stored, busy_s

    def script(self, job: Submitted) -> str:
        words = (
            sys.executable, "-m", "vani.centre.demo.real_process", job.program.name, self.mount, self.logs, self.pace
        )
        return f"exec srun --kill-on-bad-exit {shlex.join(map(str, words))}"

    def planned(self, number: int) -> list[PlannedRun]:
        """Planned runs of a day, with their outcomes."""
        if not self.history.exists():
            return []
        with Store(self.history).reading() as connection:
            return [row for row in read.rows(connection, PlannedRun) if int(row.job) // 1000 == number]


def run_slurm_days(
    folder: Path,
    *,
    seed: int = 0,
    pace: float = PACE,
    jobs: Sequence[Submitted] | None = None,
    progress: Progress = silent,
) -> CentreReport:
    """Run the days in a new folder.

    Parameters
    ----------
    pace
        Share of the modelled day's seconds and bytes.
    jobs
        Jobs of each day; None: those of the modelled day.

    Raises
    ------
    InputError
        Something that this needs is missing, or a job failed.
    """
    if reason := impossible():
        raise InputError(reason, where="--slurm", todo="leave it out: the same day is modelled then")
    # Check before the libraries are built in the folder.
    slurm_cluster.check_folder((folder / f"day{len(DAYS)}").resolve())
    begin = time.perf_counter()
    jobs = jobs_of_day(seed) if jobs is None else jobs
    centre = _Centre(folder.resolve(), seed, pace)
    without: list[Measured] = []
    days = []
    for number, (name, hook) in enumerate(DAYS, 1):
        progress(f"a day of {len(jobs)} jobs: {name}")
        cluster = centre.cluster(number, hook)
        if hook:
            # Creates the folder in which plans wait for logs.
            plan_outcome(centre.history, cluster.state, centre.logs)
        with centre.file_system(number), cluster.running():
            ended = _day(centre, cluster, jobs, progress)
            stored, _ = centre.targets()
        without = without or ended
        days.append(day_costs(name, ended, without, centre.planned(number), stored))
        if hook:
            plan_learn(centre.history, centre.known, processes_per_node=1)
    return CentreReport(MACHINE, len(jobs), NODES, tuple(days), time.perf_counter() - begin, pace)


def _day(
    centre: _Centre, cluster: Cluster, jobs: Sequence[Submitted], progress: Progress
) -> list[Measured]:
    begin, begin_s = time.monotonic(), time.time()
    numbers = []
    for job in jobs:
        time.sleep(max(0.0, begin + job.submit_s * centre.pace - time.monotonic()))
        options = ("-N", job.program.nodes, "-n", job.program.nodes, "-J", job.program.name, "-t", 10)
        numbers.append(
            cluster.submit(centre.script(job), *map(str, options), "--dependency=singleton", "--no-requeue")
        )
    until(lambda: cluster.is_over(*numbers), _DAY_S)
    # The jobs' epilogs may still run in the background.
    until(lambda: not [*cluster.state.glob("ended/*.yaml")])
    (cluster.folder / "jobs.txt").write_text(cluster.run("scontrol", "-o", "show", "jobs"))
    ended = []
    for number, job in zip(numbers, jobs, strict=True):
        path = next(centre.logs.glob(log_name("*", job.program.name, number)), None)
        if path is None:
            raise InputError(
                f"job {number} ({job.program.name}) left no log",
                where=cluster.folder / f"{number}.out",
                todo="see why it failed",
            )
        totals = read_totals(path)
        start_s = totals.start_s - begin_s
        ended.append(Measured(job, start_s, start_s + totals.runtime_s, totals.slowest_s))
    progress(f"its jobs took {max(entry.end_s for entry in ended):.0f} s")
    return ended
