"""Commands of batch systems that start processes on the nodes of a job."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LAUNCHERS", "Launcher", "launcher_of"]


@dataclass(frozen=True)
class Launcher:
    """Commands and variables of a batch system that starts processes on the nodes of a job.

    `command` holds `{n}`, processes per node. `rank` and `size` are the variables in which a process finds its
    number in the step and how many there are, `local` its number on its node. `hosts` prints a line per node.
    """

    command: str
    rank: str
    size: str
    local: str
    hosts: str
    beside: str

    def on_each(self, processes: int = 1) -> str:
        return self.command.format(n=processes)


LAUNCHERS = {
    "slurm": Launcher(
        'srun --nodes="$SLURM_JOB_NUM_NODES" --ntasks-per-node={n}',
        "SLURM_PROCID",
        "SLURM_NTASKS",
        "SLURM_LOCALID",
        'scontrol show hostnames "$SLURM_JOB_NODELIST"',
        'srun --overlap --nodes="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1',
    ),
    "flux": Launcher(
        'flux run --nodes="$(flux getattr size)" --tasks-per-node={n}',
        "FLUX_TASK_RANK",
        "FLUX_JOB_SIZE",
        "FLUX_TASK_LOCAL_ID",
        "flux exec -r all hostname",
        "flux exec -r all",
    ),
    "lsf": Launcher(
        "jsrun --rs_per_host=1 --tasks_per_rs={n} --cpu_per_rs=ALL_CPUS",
        "JSM_NAMESPACE_RANK",
        "JSM_NAMESPACE_SIZE",
        "JSM_NAMESPACE_LOCAL_RANK",
        'sort -u "$LSB_DJOB_HOSTFILE"',
        # A resource set of its own: the program must leave a core free.
        "jsrun --rs_per_host=1 --tasks_per_rs=1 --cpu_per_rs=1",
    ),
    "pbs": Launcher(
        "mpirun --map-by ppr:{n}:node",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        'sort -u "$PBS_NODEFILE"',
        "mpirun --map-by ppr:1:node",
    ),
}
"""By `job.scheduler`; `pbs` starts with Open MPI's mpirun."""


def launcher_of(scheduler: str | None) -> Launcher:
    """The launcher of a batch system; Slurm's where it is unknown or another one."""
    return LAUNCHERS.get((scheduler or "slurm").lower(), LAUNCHERS["slurm"])
