"""Commands of batch systems that start processes on a job's nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System

@dataclass(frozen=True)
class Launcher:
    """Commands and variables of a launcher, which starts processes on a job's nodes.

    `command` contains `{n}`, the processes per node. `alongside` starts one process per node while the program runs.
    `rank` and `local` are the variables with a process's number in the step and on its node. `size` expands to the
    number of processes in the step, and `hosts` prints one line per node. `chain` starts a script on one node, and
    `wide` a program (`{app}`) with `{ranks}` processes on `{nodes}` nodes, `{each}` per node.
    """

    command: str
    rank: str
    size: str
    local: str
    hosts: str
    alongside: str
    chain: str
    wide: str

    def on_each(self, processes: int = 1) -> str:
        return self.command.replace("{n}", str(processes))

    def size_of(self, processes: int = 1) -> str:
        """Shell text for the number of processes that `on_each(processes)` starts."""
        return self.size.replace("{n}", str(processes))


_PBS_NODES = '"$(sort -u "$PBS_NODEFILE" | wc -l)"'

LAUNCHERS = {
    "slurm": Launcher(
        'srun --nodes="$SLURM_JOB_NUM_NODES" --ntasks-per-node={n}',
        "SLURM_PROCID",
        "$SLURM_NTASKS",
        "SLURM_LOCALID",
        'scontrol show hostnames "$SLURM_JOB_NODELIST"',
        'srun --overlap --nodes="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1',
        "srun --nodes=1 --ntasks=1 --exclusive {app}",
        "srun --relative=0 --nodes={nodes} --ntasks={ranks} --distribution=block {app}",
    ),
    "flux": Launcher(
        'flux run --nodes="$(flux getattr size)" --tasks-per-node={n}',
        "FLUX_TASK_RANK",
        "$FLUX_JOB_SIZE",
        "FLUX_TASK_LOCAL_ID",
        "flux exec -r all hostname",
        "flux exec -r all",
        "flux run --nodes=1 --ntasks=1 --exclusive {app}",
        "flux run --nodes={nodes} --ntasks={ranks} {app}",
    ),
    "lsf": Launcher(
        "jsrun --rs_per_host=1 --tasks_per_rs={n} --cpu_per_rs=ALL_CPUS",
        "JSM_NAMESPACE_RANK",
        "$JSM_NAMESPACE_SIZE",
        "JSM_NAMESPACE_LOCAL_RANK",
        'sort -u "$LSB_DJOB_HOSTFILE"',
        # A separate resource set, for which the program must leave a core free.
        "jsrun --rs_per_host=1 --tasks_per_rs=1 --cpu_per_rs=1",
        # A jsrun resource set is within a node.
        "jsrun --nrs=1 --tasks_per_rs=1 --cpu_per_rs=ALL_CPUS {app}",
        "jsrun --rs_per_host=1 --nrs={nodes} --tasks_per_rs={each} --cpu_per_rs=ALL_CPUS "
        "--launch_distribution=packed {app}",
    ),
    "pbs": Launcher(
        "mpirun --map-by ppr:{n}:node",
        "OMPI_COMM_WORLD_RANK",
        "$OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        'sort -u "$PBS_NODEFILE"',
        "mpirun --map-by ppr:1:node",
        "mpirun -np 1 {app}",
        "mpirun --map-by ppr:{each}:node -np {ranks} {app}",
    ),
    "pals": Launcher(
        f'mpiexec -n "$(({{n}} * {_PBS_NODES[1:-1]}))" --ppn {{n}}',
        "PMI_RANK",
        "$PMI_SIZE",
        "PMI_LOCAL_RANK",
        'sort -u "$PBS_NODEFILE"',
        f"mpiexec -n {_PBS_NODES} --ppn 1",
        "mpiexec -n 1 {app}",
        "mpiexec -n {ranks} --ppn {each} {app}",
    ),
    "pjm": Launcher(
        'mpiexec -np "$(({n} * PJM_NODE))"',
        "PMIX_RANK",
        "$(({n} * PJM_NODE))",
        "PLE_RANK_ON_NODE",
        'mpiexec -np "$PJM_NODE" hostname',
        'mpiexec -np "$PJM_NODE"',
        "mpiexec -np 1 {app}",
        "mpiexec -np {ranks} {app}",
    ),
}
"""Launchers by batch system; `pals` is for HPE machines on which PBS starts processes with PALS.

`pbs` uses Open MPI's mpirun, and `pjm` Fujitsu's mpiexec, which assigns processes to nodes round-robin if the job was
submitted with `--mpi rank-map-bynode`, as the request of a tier states.
"""


def launcher_of(name: str | None) -> Launcher:
    """The launcher of that name, or Slurm's if the name is unknown."""
    return LAUNCHERS.get((name or "slurm").lower(), LAUNCHERS["slurm"])


def launcher_name(profile: Profile, system: System) -> str | None:
    """Name of the launcher on the machine that the advice is for, or else of the batch system that ran the job.

    None if neither is known.

    """
    return system.launcher or system.scheduler or profile.job.scheduler
