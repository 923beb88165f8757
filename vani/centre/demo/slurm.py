"""The days of `vani centre demo` under a real Slurm on this host, with real I/O calls on a mounted stand-in.

The hook is `vani/centre/prolog/slurm`, as a site installs it. The placement library gives files their layouts through a
stand-in for liblustreapi. Times depend on this machine and say nothing about Lustre. The daemons and their state are in
a folder. Slurm looks for jobs to start every second (`bf_interval`): with an EpilogSlurmctld, it does not notice
earlier that a job on which another depends has ended.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import vani
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
from vani.centre.history.rows import PlannedRun
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.plan.learn import plan_learn
from vani.centre.plan.outcome import plan_outcome
from vani.demo import mounting
from vani.demo.striped_model import MACHINES, MiB
from vani.errors import InputError
from vani.readers.darshan.totals import read_totals

SOURCES: Final = Path(vani.__file__).resolve().parents[1]
"""Vani's source tree, unless it was installed from a wheel."""
_PROGRAMS: Final = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "squeue", "sinfo", "scontrol", "scancel")
_PATH: Final = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
_END_S: Final = 20
_MAX_FOLDER: Final = 74
"""Longest path of the folder: a socket's path has at most 107 characters, as in `spool/n12/n12_4140.4294967291`."""

_CONF: Final = """
ClusterName=vani
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/save
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SlurmdParameters=config_overrides
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerParameters=bf_interval=1,batch_sched_delay=0
MinJobAge=86400
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
FirstJobId={first_job}
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{node_ports}] CPUs={cpus} RealMemory=100
PartitionName=all Nodes=n[1-{nodes}] Default=YES MaxTime=60 State=UP OverSubscribe=YES
"""
_HOOK: Final = """
PrologSlurmctld={folder}/etc/prolog-slurmctld
EpilogSlurmctld={folder}/etc/epilog-slurmctld
TaskProlog={folder}/etc/task-prolog
"""


def impossible() -> str:
    """Why Slurm cannot run here; empty if it can."""
    missing = [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]
    if missing:
        return f"{', '.join(missing)} not installed (Debian: apt install slurmctld slurmd slurm-client munge)"
    if os.geteuid() != 0:
        return "only root can start slurmd"
    if not (SOURCES / "vani" / "centre" / "prolog" / "slurm").is_dir():
        return "the scripts for Slurm are not part of a wheel: use a clone or the source distribution"
    return ""


def check_folder(folder: Path) -> None:
    """Check that a folder can be named in Slurm's files.

    Raises
    ------
    InputError
        The path is too long, or has characters that slurm.conf, `VANI_OPTIONS` or make cannot quote.
    """
    if len(str(folder)) > _MAX_FOLDER:
        what = f"has more than {_MAX_FOLDER} letters, too many for the sockets of Slurm"
        raise InputError(what, where=folder, todo="use a folder with a shorter path")
    if other := re.search(r"[^\w./+-]", str(folder)):
        what = f"contains {other[0]!r}, which slurm.conf cannot quote"
        raise InputError(what, where=folder, todo="use a folder with letters, digits, '.', '-' and '_' alone")


class Cluster:
    """Slurm's daemons. The folder `etc` has the hook's scripts, and `vani` its state.

    Parameters
    ----------
    folder
        Absolute path.
    hook
        Put the hook's scripts into slurm.conf.
    variables
        Environment variables of all jobs.

    Raises
    ------
    InputError
        See `check_folder`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        nodes: int = 4,
        cpus: int = 4,
        first_job: int = 1,
        hook: bool = True,
        variables: dict[str, str] | None = None,
    ) -> None:
        check_folder(folder)
        self.folder, self.state, self.nodes = folder, folder / "vani", nodes
        self._variables = variables or {}
        self._begun: list[subprocess.Popen[bytes]] = []
        for name in ("save", "etc", "vani", *(f"spool/n{number}" for number in range(1, nodes + 1))):
            (folder / name).mkdir(parents=True, exist_ok=True)
        for script in (SOURCES / "vani" / "centre" / "prolog" / "slurm").iterdir():
            shutil.copy2(script, folder / "etc")
        self.vani = folder / "vani.sh"
        words = shlex.join([sys.executable, "-m", "vani"])
        self.vani.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(SOURCES))} exec {words} "$@"\n')
        self.vani.chmod(0o755)
        conf = _CONF + (_HOOK if hook else "")
        port, *others = _free_ports(1 + nodes)
        facts = {
            "folder": folder,
            "host": socket.gethostname().partition(".")[0],
            "user": getpass.getuser(),
            "port": port,
            "node_ports": f"{others[0]}-{others[-1]}",
            "nodes": nodes,
            "cpus": cpus,
            "first_job": first_job,
        }
        (folder / "slurm.conf").write_text(conf.format_map(facts))
        (folder / "munge.key").unlink(missing_ok=True)
        (folder / "munge.key").write_bytes(os.urandom(1024))
        (folder / "munge.key").chmod(0o400)

    def configure(self, options: str, vani: Path | None = None, budget: int = 8, more: str = "") -> None:
        """Write the hook's `vani.conf` with options of `vani plan job` and further lines."""
        (self.folder / "etc" / "vani.conf").write_text(
            f"VANI={shlex.quote(str(vani or self.vani))}\nVANI_STATE={shlex.quote(str(self.state))}\n"
            f"VANI_BUDGET={budget}\nVANI_OPTIONS={shlex.quote(f'{options} --log {self.folder}/plan.log')}\n{more}"
        )

    @contextmanager
    def running(self) -> Iterator[Cluster]:
        """Run the daemons for the duration of a block, and then end them and all jobs."""
        try:
            self._begin()
            yield self
        finally:
            self._end()

    def _begin(self) -> None:
        name = {key: f"{self.folder}/munge.{key}" for key in ("sock", "key", "pid", "log", "seed")}
        self._daemon(
            "munged", "--foreground", "--force", f"--socket={name['sock']}", f"--key-file={name['key']}",
            f"--pid-file={name['pid']}", f"--log-file={name['log']}", f"--seed-file={name['seed']}",
        )  # fmt: skip
        until((self.folder / "munge.sock").exists)
        self._daemon("slurmctld", "-D", "-f", f"{self.folder}/slurm.conf")
        for number in range(1, self.nodes + 1):
            self._daemon("slurmd", "-D", "-f", f"{self.folder}/slurm.conf", "-N", f"n{number}")
        until(lambda: self.run("sinfo", "-h", "-o", "%T", check=False).strip() == "idle")

    def _daemon(self, *command: str) -> None:
        with (self.folder / f"{command[0]}.out").open("ab") as out:
            # Ctrl-C reaches only this process, which ends the daemons in order.
            self._begun.append(
                subprocess.Popen(command, env=self.environment, stdout=out, stderr=out, start_new_session=True)
            )

    @property
    def environment(self) -> dict[str, str]:
        """Environment of Slurm's commands and of jobs."""
        own = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_")}
        return own | {"SLURM_CONF": f"{self.folder}/slurm.conf", "PATH": _PATH} | self._variables

    def run(self, *command: str, check: bool = True) -> str:
        """Run a Slurm command and return its output.

        Raises
        ------
        InputError
            The command failed and `check` is true.
        """
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False, timeout=120, cwd=self.folder
        )
        if check and done.returncode != 0:
            raise InputError(f"failed: {done.stderr.strip()}", where=command[0], todo=f"see the logs in {self.folder}")
        return done.stdout

    def submit(self, script: str, *options: str) -> int:
        """Submit a shell script and return the job number."""
        return int(self.run("sbatch", "--parsable", "-o", "%j.out", *options, "--wrap", script))

    def is_over(self, *numbers: int) -> bool:
        """True if none of these jobs is pending, running or completing."""
        return not self.run("squeue", "-h", "-j", ",".join(map(str, numbers)), check=False).strip()

    def _end(self) -> None:
        if self._begun:
            with suppress(InputError, subprocess.TimeoutExpired):
                self.run("scancel", "--signal=KILL", "--full", f"--user={getpass.getuser()}", check=False)
                self.run("scancel", f"--user={getpass.getuser()}", check=False)
                until(lambda: not self.run("squeue", "-h", check=False).strip(), _END_S)
        for daemon in reversed(self._begun):
            daemon.send_signal(signal.SIGTERM)
        for daemon in reversed(self._begun):
            try:
                daemon.wait(_END_S)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self._begun.clear()


def _free_ports(count: int) -> list[int]:
    """Consecutive free ports."""
    for first in range(21000, 29000, count):
        with suppress(OSError):
            for port in range(first, first + count):
                with socket.socket() as tried:
                    tried.bind(("127.0.0.1", port))
            return list(range(first, first + count))
    raise InputError("no free ports from 21000 on", where="Slurm", todo="end what uses them")


def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for a condition to become true.

    Raises
    ------
    InputError
        It did not become true within `seconds`.
    """
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise InputError(f"did not answer within {seconds:g} s", where="Slurm", todo="see the logs in its folder")
        time.sleep(0.1)


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


def impossible_days() -> str:
    """Why this cannot run here; empty if it can."""
    if reason := impossible() or mounting.impossible():
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
    if reason := impossible_days():
        raise InputError(reason, where="--slurm", todo="leave it out: the same day is modelled then")
    # Check before the libraries are built in the folder.
    check_folder((folder / f"day{len(DAYS)}").resolve())
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
