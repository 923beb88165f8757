"""Facts about a job that Slurm gives PrologSlurmctld and EpilogSlurmctld in the environment.

Everything but the job's number may be missing, and a user chooses the job's name: it may have any character.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from vani.errors import InputError

__all__ = ["JobFacts", "facts_of", "number_of"]

_NUMBER: Final = re.compile(r"[1-9][0-9]{0,18}")
_LONGEST: Final = {"name": 200, "user": 100, "partition": 100, "hosts": 100_000}
_LAST_SECOND: Final = 1 << 36
"""Slurm writes times that it does not know as very large numbers."""


@dataclass(frozen=True)
class JobFacts:
    """A job that begins; None where Slurm does not say.

    Times are seconds since 1970, `start_s` by the clock of this host.
    """

    job: str
    start_s: float
    name: str | None = None
    user: str | None = None
    partition: str | None = None
    nodes: int | None = None
    hosts: str | None = None
    """As Slurm writes lists: n[1-64]."""
    end_s: float | None = None
    """When its time limit runs out."""


def number_of(environment: Mapping[str, str]) -> str:
    """The number of the job.

    Raises
    ------
    InputError
        It is not set, or no number.
    """
    number = environment.get("SLURM_JOB_ID") or environment.get("SLURM_JOBID") or ""
    if not _NUMBER.fullmatch(number):
        what = f"is {number[:40]!r}" if number else "is not set"
        raise InputError(what, where="SLURM_JOB_ID", todo="run this as PrologSlurmctld or EpilogSlurmctld")
    return number


def facts_of(environment: Mapping[str, str], now_s: float) -> JobFacts:
    """Facts from the environment of PrologSlurmctld; `now_s` is the time.

    Raises
    ------
    InputError
        There is no number of a job.
    """
    text = {key: _text(environment.get(name), _LONGEST[key]) for key, name in _TEXTS.items()}
    nodes = _count(environment.get("SLURM_JOB_NUM_NODES") or environment.get("SLURM_NNODES"))
    end = _count(environment.get("SLURM_JOB_END_TIME"))
    return JobFacts(
        job=number_of(environment),
        start_s=now_s,
        name=text["name"],
        user=text["user"],
        partition=text["partition"],
        nodes=nodes,
        hosts=text["hosts"],
        end_s=float(end) if end and end < _LAST_SECOND else None,
    )


_TEXTS: Final = {
    "name": "SLURM_JOB_NAME",
    "user": "SLURM_JOB_USER",
    "partition": "SLURM_JOB_PARTITION",
    "hosts": "SLURM_JOB_NODELIST",
}


def _text(text: str | None, longest: int) -> str | None:
    """As it can be written into documents: bytes that are no UTF-8 are escaped."""
    return (text or "").encode(errors="backslashreplace").decode()[:longest] or None


def _count(text: str | None) -> int | None:
    return int(text) if text and _NUMBER.fullmatch(text) else None
