"""Facts in a job's environment from the batch system: Slurm, LSF, PBS and Torque, Flux."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from vani.errors import InputError
from vani.schema.host_list import expand

Environment = Mapping[str, str]

FIELDS: Final = ("job_id", "nodes", "node_list", "processes", "processes_per_node", "time_limit_s")
"""Facts that allocations and job documents share."""


@dataclass(frozen=True)
class Allocation:
    """The job's allocation; None for facts that the scheduler does not set."""

    scheduler: str | None = None
    job_id: str | None = None
    nodes: int | None = None
    node_list: list[str] | None = None
    processes: int | None = None
    processes_per_node: list[int] | None = None
    cpus_per_node: int | None = None
    """Logical CPUs; they are cores only if `cpus_are_cores`."""
    cpus_are_cores: bool = False
    gpus_per_node: int | None = None
    memory_per_node: int | None = None
    """Bytes."""
    time_limit_s: float | None = None
    unknown: dict[str, str] = field(default_factory=dict)
    """Reasons for facts that the scheduler does not provide, by field of the job."""


def read_scheduler(environment: Environment, root: Path = Path("/")) -> Allocation:
    """Read the allocation from a job script's environment; empty outside a job."""
    for variable, read in _SCHEDULERS.items():
        if environment.get(variable):
            return read(environment, root)
    why = f"not inside a job: none of {', '.join(_SCHEDULERS)} is set"
    return Allocation(unknown=dict.fromkeys(FIELDS, "not inside a job") | {"scheduler": why})


def _slurm(environment: Environment, _root: Path) -> Allocation:
    hosts = expand_hosts(_first(environment, "SLURM_JOB_NODELIST", "SLURM_NODELIST") or "")
    nodes = _number(_first(environment, "SLURM_JOB_NUM_NODES", "SLURM_NNODES")) or len(hosts) or None
    tasks = _repeated(_first(environment, "SLURM_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE") or "")
    cpus = _number(environment.get("SLURM_CPUS_ON_NODE"))
    if cpus is None:
        cpus = next(iter(_repeated(environment.get("SLURM_JOB_CPUS_PER_NODE") or "")), None)
    begin, end = (_number(environment.get(f"SLURM_JOB_{part}_TIME")) for part in ("START", "END"))
    limit = float(end - begin) if begin is not None and end is not None and end > begin else None
    return Allocation(
        scheduler="slurm",
        job_id=_first(environment, "SLURM_JOB_ID", "SLURM_JOBID"),
        nodes=nodes,
        node_list=hosts or None,
        processes=_number(_first(environment, "SLURM_NTASKS", "SLURM_NPROCS")) or sum(tasks) or None,
        processes_per_node=tasks or None,
        cpus_per_node=cpus,
        gpus_per_node=_slurm_gpus(environment),
        memory_per_node=_slurm_memory(environment, cpus),
        time_limit_s=limit,
        unknown={}
        if limit
        else {"time_limit_s": "SLURM_JOB_START_TIME and SLURM_JOB_END_TIME are not set (Slurm before 22.05)"},
    )


def _slurm_gpus(environment: Environment) -> int | None:
    on_node = _first(environment, "SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE")
    if on_node is not None:
        # `4`, `v100:4` or `v100:2,a100:2`
        numbers = [_number(part.rpartition(":")[2]) for part in on_node.split(",")]
        return sum(n for n in numbers if n is not None) if None not in numbers else None
    listed = _first(environment, "SLURM_JOB_GPUS", "SLURM_STEP_GPUS")
    return len(listed.split(",")) if listed else None


def _slurm_memory(environment: Environment, cpus: int | None) -> int | None:
    """Slurm counts in MiB. 0 requests all of a node's memory, without naming its size."""
    per_node, per_cpu = (_number(environment.get(f"SLURM_MEM_PER_{part}")) for part in ("NODE", "CPU"))
    if per_node:
        return per_node << 20
    return per_cpu * cpus << 20 if per_cpu and cpus else None


def _lsf(environment: Environment, _root: Path) -> Allocation:
    words = (environment.get("LSB_MCPU_HOSTS") or "").split()
    slots = {host: _number(count) or 0 for host, count in zip(words[::2], words[1::2], strict=False)}
    if not slots:
        slots = dict(Counter((environment.get("LSB_HOSTS") or "").split()))
    first = next(iter(slots), None)
    if first is not None and len(slots) > 1 and slots[first] == 1 and min(list(slots.values())[1:]) > 1:
        del slots[first]  # the launch node, which runs the job script but none of the processes
    return Allocation(
        scheduler="lsf",
        job_id=environment.get("LSB_JOBID"),
        nodes=len(slots) or None,
        node_list=list(slots) or None,
        cpus_per_node=min(slots.values(), default=None),
        cpus_are_cores=True,
        unknown={
            "time_limit_s": "LSF does not put the time limit into the environment",
            "processes": "LSF gives slots; the launcher decides the number of processes",
        },
    )


def _pbs(environment: Environment, root: Path) -> Allocation:
    hosts: list[str] = []
    name = environment.get("PBS_NODEFILE")
    if name:
        try:
            hosts = (root / name.lstrip("/")).read_text(errors="backslashreplace").split()
        except OSError:
            hosts = []
    per_host = Counter(hosts)
    walltime = _number(environment.get("PBS_WALLTIME"))
    unknown = {} if walltime else {"time_limit_s": "PBS_WALLTIME is not set"}
    if not hosts:
        unknown["node_list"] = "PBS_NODEFILE is not set or cannot be read"
    return Allocation(
        scheduler="pbs",
        job_id=environment.get("PBS_JOBID"),
        nodes=len(per_host) or _number(environment.get("PBS_NUM_NODES")),
        node_list=list(per_host) or None,
        processes=len(hosts) or _number(environment.get("PBS_NP")),
        processes_per_node=list(per_host.values()) or None,
        cpus_per_node=_number(_first(environment, "NCPUS", "PBS_NUM_PPN")),
        time_limit_s=float(walltime) if walltime else None,
        unknown=unknown,
    )


def _flux(environment: Environment, _root: Path) -> Allocation:
    return Allocation(
        scheduler="flux",
        job_id=_first(environment, "FLUX_JOB_ID", "FLUX_ENCLOSING_ID"),
        nodes=_number(environment.get("FLUX_JOB_NNODES")),
        processes=_number(environment.get("FLUX_JOB_SIZE")),
        unknown={
            "time_limit_s": "Flux does not put the time limit into the environment",
            "nodes": "FLUX_JOB_NNODES is set inside `flux run` only",
            "processes": "FLUX_JOB_SIZE is set inside `flux run` only",
            "node_list": "Flux does not put host names into the environment",
        },
    )


# Flux and LSF may run inside a Slurm allocation, in which case the inner one started the job.
_SCHEDULERS: Final[dict[str, Callable[[Environment, Path], Allocation]]] = {
    "FLUX_JOB_ID": _flux,
    "FLUX_ENCLOSING_ID": _flux,
    "LSB_JOBID": _lsf,
    "PBS_JOBID": _pbs,
    "SLURM_JOB_ID": _slurm,
    "SLURM_JOBID": _slurm,
}


def expand_hosts(text: str) -> list[str]:
    """Expand Slurm's short form: `n[01-03,7],login1` is n01, n02, n03, n7, login1.

    Empty for text in another form.
    """
    try:
        return expand(text)
    except InputError:
        return []


def _repeated(text: str) -> list[int]:
    """Expand `4(x2),3` to 4, 4, 3; empty for anything else."""
    counts: list[int] = []
    for part in filter(None, text.split(",")):
        match = re.fullmatch(r"(\d{1,9})(?:\(x(\d{1,6})\))?", part)
        if match is None:
            return []
        counts += [int(match[1])] * int(match[2] or 1)
    return counts


def _first(environment: Environment, *names: str) -> str | None:
    return next((environment[name] for name in names if environment.get(name)), None)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.strip().isdecimal() else None
