"""Slurm's daemons on this host, in a folder of their own, for tests of what a centre installs."""

from __future__ import annotations

import getpass
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from vani.errors import InputError

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
def impossible() -> str:
    """Why Slurm cannot run here; empty if it can."""
    missing = [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]
    if missing:
        return f"{', '.join(missing)} not installed (Debian: apt install slurmctld slurmd slurm-client munge)"
    if os.geteuid() != 0:
        return "only root can start slurmd"
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
    """Slurm's daemons.

    Parameters
    ----------
    folder
        Absolute path.
    task_prolog
        A script that `slurm.conf` names as TaskProlog; None: none.
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
        task_prolog: Path | None = None,
        variables: dict[str, str] | None = None,
    ) -> None:
        check_folder(folder)
        self.folder, self.nodes = folder, nodes
        self._variables = variables or {}
        self._begun: list[subprocess.Popen[bytes]] = []
        for name in ("save", *(f"spool/n{number}" for number in range(1, nodes + 1))):
            (folder / name).mkdir(parents=True, exist_ok=True)
        conf = _CONF + ("" if task_prolog is None else f"TaskProlog={task_prolog}\n")
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
