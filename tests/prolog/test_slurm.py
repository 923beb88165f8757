"""The scripts of `templates/slurm` under a real Slurm: four nodes on this host."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from vani.schema.plan import JobPlan

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "templates" / "slurm"
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "squeue", "sinfo", "scontrol")
SBIN = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])

MISSING = [name for name in PROGRAMS if shutil.which(name, path=SBIN) is None]

CONF = """
ClusterName=vani
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={ports[0]}
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
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
PrologSlurmctld={folder}/etc/prolog-slurmctld
EpilogSlurmctld={folder}/etc/epilog-slurmctld
TaskProlog={folder}/etc/task-prolog
NodeName=n[1-4] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{ports[1]}-{ports[4]}] CPUs=4 RealMemory=100
PartitionName=all Nodes=n[1-4] Default=YES MaxTime=60 State=UP OverSubscribe=YES
"""


class Cluster:
    """Slurm's daemons in a folder, and the scripts as a site would install them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.state = folder, folder / "vani"
        self._begun: list[subprocess.Popen[bytes]] = []
        for name in ("save", "etc", "vani", *(f"spool/n{n}" for n in range(1, 5))):
            (folder / name).mkdir(parents=True, exist_ok=True)
        for script in SCRIPTS.iterdir():
            shutil.copy2(script, folder / "etc")
        (folder / "vani.sh").write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m vani "$@"\n')
        (folder / "vani.sh").chmod(0o755)
        self.configure("--io-nodes 4 --no-direct")
        ports = free_ports(5)
        conf = CONF.format(
            folder=folder, host=socket.gethostname().partition(".")[0], user=getpass.getuser(), ports=ports
        )
        (folder / "slurm.conf").write_text(conf)
        (folder / "munge.key").write_bytes(os.urandom(1024))
        (folder / "munge.key").chmod(0o400)

    def configure(self, options: str, vani: str | None = None) -> None:
        (self.folder / "etc" / "vani.conf").write_text(
            f"VANI={vani or self.folder / 'vani.sh'}\nVANI_STATE={self.state}\nVANI_BUDGET=8\n"
            f"VANI_OPTIONS='{options} --log {self.folder}/plan.log'\n"
        )

    def begin(self) -> None:
        name = {key: f"{self.folder}/munge.{key}" for key in ("sock", "key", "pid", "log", "seed")}
        self._daemon(
            "munged", "--foreground", "--force", f"--socket={name['sock']}", f"--key-file={name['key']}",
            f"--pid-file={name['pid']}", f"--log-file={name['log']}", f"--seed-file={name['seed']}",
        )  # fmt: skip
        until((self.folder / "munge.sock").exists)
        self._daemon("slurmctld", "-D", "-f", f"{self.folder}/slurm.conf")
        for number in range(1, 5):
            self._daemon("slurmd", "-D", "-f", f"{self.folder}/slurm.conf", "-N", f"n{number}")
        until(lambda: self.run("sinfo", "-h", "-o", "%T", check=False).strip() == "idle")

    def _daemon(self, *command: str) -> None:
        with (self.folder / f"{command[0]}.out").open("ab") as out:
            self._begun.append(subprocess.Popen(command, env=self.environment, stdout=out, stderr=out))

    @property
    def environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_")}
        return kept | {"SLURM_CONF": f"{self.folder}/slurm.conf", "PATH": SBIN}

    def run(self, *command: str, check: bool = True) -> str:
        done = subprocess.run(
            command,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            cwd=self.folder,
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def submit(self, seconds: float, *options: str, script: str = "") -> int:
        return int(
            self.run(
                "sbatch",
                "--parsable",
                "-o",
                "%j.out",
                *options,
                "--wrap",
                f"srun env; {script} sleep {seconds}",
            )
        )

    def plan(self, number: int) -> JobPlan:
        until((self.state / f"{number}.env").exists)
        return JobPlan.load(self.state / f"{number}.yaml")

    def is_over(self, *numbers: int) -> bool:
        return not self.run("squeue", "-h", "-j", ",".join(map(str, numbers)), check=False).strip()

    def end(self) -> None:
        for one in reversed(self._begun):
            one.send_signal(signal.SIGTERM)
        for one in reversed(self._begun):
            with suppress(subprocess.TimeoutExpired):
                one.wait(20)
                continue
            one.kill()
            one.wait()


def free_ports(count: int) -> list[int]:
    """Ports that follow one another and that nobody listens on."""
    for first in range(21000, 29000, count):
        with suppress(OSError):
            for port in range(first, first + count):
                with socket.socket() as one:
                    one.bind(("127.0.0.1", port))
            return list(range(first, first + count))
    raise AssertionError("no free ports")


def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if MISSING:
        pytest.skip(f"Slurm is not installed here: no {', '.join(MISSING)}")
    if os.geteuid() != 0:
        pytest.skip("slurmd has to be begun by root")
    found = Cluster(tmp_path_factory.mktemp("slurm"))
    try:
        found.begin()
        yield found
    finally:
        found.end()


def exported(text: str) -> dict[str, str]:
    names = ("VANI_PLAN=", "VANI_FORWARDING", "VANI_IO_NODES=", "LIBGKFS_")
    return dict(line.split("=", 1) for line in text.splitlines() if line.startswith(names))


@pytest.mark.slow
def test_tasks_of_a_job_are_told_their_io_nodes_and_the_epilog_frees_them(cluster):
    first = cluster.submit(300, "-N4", "-n4", "-J", "bt")
    assert len(cluster.plan(first).io_nodes) == 4
    second = cluster.submit(2, "-N2", "-n2", "-J", "a'b\"c $(touch x)")
    plan = cluster.plan(second)
    assert plan.job.name == "a'b\"c $(touch x)"
    assert plan.running == 2
    kept = JobPlan.load(cluster.state / f"{first}.yaml")
    assert not set(kept.io_nodes) & set(plan.io_nodes)
    until(lambda: cluster.is_over(second))
    told = exported((cluster.folder / f"{second}.out").read_text())
    assert told == {
        "VANI_PLAN": f"{cluster.state}/{second}.yaml",
        "VANI_FORWARDING": "own",
        "VANI_IO_NODES": ",".join(plan.io_nodes),
        "VANI_FORWARDING_MAP": f"{cluster.state}/{second}.map",
        "LIBGKFS_FORWARDING_MAP_FILE": f"{cluster.state}/{second}.map",
    }
    until(lambda: len(JobPlan.load(cluster.state / f"{first}.yaml").io_nodes) == 4)
    assert not (cluster.state / f"{second}.map").exists()
    lines = (cluster.state / f"{first}.map").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["n1", "n2", "n3", "n4"]
    cluster.run("scancel", str(first))
    until(lambda: cluster.is_over(first))
    until(lambda: not (cluster.state / "jobs" / str(first)).exists())


@pytest.mark.slow
def test_a_planner_that_fails_or_hangs_starts_the_job_all_the_same_and_requeues_none(cluster):
    hangs = cluster.folder / "hangs.sh"
    hangs.write_text("#!/bin/sh\nexec sleep 1000\n")
    hangs.chmod(0o755)
    try:
        for options, vani in (
            ("--nonsense", None),
            ("--snapshot /none", None),
            ("", "/no/such/vani"),
            ("", str(hangs)),
        ):
            cluster.configure(options, vani)
            begin = time.monotonic()
            number = cluster.submit(0, "-N1", "-n1")
            until(lambda number=number: cluster.is_over(number))
            assert time.monotonic() - begin < 45
            text = (cluster.folder / f"{number}.out").read_text()
            assert "SLURM_JOB_ID" in text, "the tasks ran"
            assert exported(text) == {}
            assert "Restarts=0" in cluster.run("scontrol", "show", "job", str(number))
    finally:
        cluster.configure("--io-nodes 4 --no-direct")


@pytest.mark.slow
def test_jobs_that_begin_together_are_all_planned(cluster):
    cluster.configure("--io-nodes 16 --no-direct")
    numbers = [cluster.submit(3, "-N1", "-n1", "--mem=1", "-J", f"j{n}") for n in range(12)]
    until(lambda: cluster.is_over(*numbers), 120)
    told = [exported((cluster.folder / f"{number}.out").read_text()) for number in numbers]
    assert [one["VANI_PLAN"] for one in told] == [f"{cluster.state}/{number}.yaml" for number in numbers]
    assert {one["VANI_FORWARDING"] for one in told} == {"own"}
    assert all(one["VANI_IO_NODES"].isdecimal() for one in told)
    until(lambda: not any((cluster.state / "jobs" / str(number)).exists() for number in numbers))
