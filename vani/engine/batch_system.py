"""Batch systems to which workers can be submitted, and the options of their jobs: those of dask-jobqueue, as plain
text.

Lists are options that may be given repeatedly. Missing options come from `~/.config/dask/jobqueue.yaml`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from vani.errors import InputError, nearest

OptionValue = str | int | bool | list[str]

_WALLTIME = r"(\d+-)?\d+(:\d{1,2}){0,2}"
_SIZE = r"(?i)\d+(\.\d+)?\s*([kmgtp]i?)?b?"


def _text(value: str) -> str:
    return value


def _count(value: str) -> int:
    if not value.isascii() or not value.isdigit() or not 0 < int(value) < 1 << 20:
        raise ValueError("a positive whole number")
    return int(value)


def _bytes(value: str) -> int:
    if not value.isascii() or not value.isdigit() or not int(value):
        raise ValueError("a number of bytes")
    return int(value)


def _size(value: str) -> str:
    if not re.fullmatch(_SIZE, value):
        raise ValueError("a size such as 16GB")
    return value


def _walltime(value: str) -> str:
    if not re.fullmatch(_WALLTIME, value):
        raise ValueError("a time such as 01:30:00")
    return value


def _flag(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return value.lower() == "true"


_Parse = Callable[[str], str | int | bool]

_ALL: Mapping[str, _Parse] = {
    "cores": _count,
    "memory": _size,
    "processes": _count,
    "walltime": _walltime,
    "queue": _text,
    "account": _text,
    "interface": _text,
    "local_directory": _text,
    "log_directory": _text,
    "death_timeout": _count,
    "python": _text,
    "job_name": _text,
    "job_extra_directives": _text,
    "job_directives_skip": _text,
    "job_script_prologue": _text,
    "worker_extra_args": _text,
    "scheduler_host": _text,
    "scheduler_port": _count,
    "tls": _flag,
}
_LISTS = ("job_extra_directives", "job_directives_skip", "job_script_prologue", "worker_extra_args")


@dataclass(frozen=True, eq=False)
class BatchSystem:
    """A batch system that dask-jobqueue supports."""

    submit: str
    """The command that submits a job."""
    cluster: str
    """Class of the batch system in `dask_jobqueue`."""
    options: Mapping[str, _Parse]
    """Options of its jobs in addition to those of all systems."""


BATCH_SYSTEMS: Mapping[str, BatchSystem] = {
    "slurm": BatchSystem("sbatch", "SLURMCluster", {"job_cpu": _count, "job_mem": _size}),
    "pbs": BatchSystem("qsub", "PBSCluster", {"resource_spec": _text}),
    "lsf": BatchSystem(
        "bsub",
        "LSFCluster",
        {"project": _text, "ncpus": _count, "mem": _bytes, "lsf_units": _text, "use_stdin": _flag},
    ),
}


def parsed_options(system: str, options: Sequence[tuple[str, str]]) -> dict[str, OptionValue]:
    """Convert (name, value) pairs to options for dask-jobqueue.

    Raises
    ------
    InputError
        A batch system or an option does not exist, or an option is given twice or has an invalid
        value.
    """
    if system not in BATCH_SYSTEMS:
        raise InputError(f"unknown batch system {system!r}", todo=nearest(system, BATCH_SYSTEMS))
    known = {**_ALL, **BATCH_SYSTEMS[system].options}
    values: dict[str, OptionValue] = {}
    lists: dict[str, list[str]] = {}
    for name, value in options:
        plain = name.strip().replace("-", "_")
        if plain not in known:
            raise InputError(f"unknown cluster option {name!r}", todo=nearest(plain, sorted(known)))
        if not value or not value.isprintable():
            # A line break would start a separate line in the job script.
            raise InputError(f"cluster option {plain}={value!r}", todo="give it one line of text")
        try:
            parsed = known[plain](value)
        except ValueError as error:
            raise InputError(f"cluster option {plain}={value!r}", todo=f"give {error}") from None
        if plain in _LISTS:
            lists.setdefault(plain, []).append(value)
        elif plain in values:
            raise InputError(f"cluster option {plain} is given twice", todo="give it once")
        else:
            values[plain] = parsed
    if system == "lsf" and "account" in values:
        # LSF calls accounts projects, but users of several sites expect one word.
        values.setdefault("project", values.pop("account"))
    return {**values, **lists}
