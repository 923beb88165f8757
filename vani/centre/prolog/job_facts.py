"""Facts about a job from the environment that its batch system gives to prologs and epilogs.

| fact | Slurm | Flux | PBS | LSF |
| --- | --- | --- | --- | --- |
| number | SLURM_JOB_ID | FLUX_JOB_ID | PBS_JOBID | LSB_JOBID, LSB_JOBINDEX |
| name | SLURM_JOB_NAME | | PBS_JOBNAME | LSB_JOBNAME |
| user | SLURM_JOB_USER | FLUX_JOB_USERID | PBS_O_LOGNAME | LSFUSER |
| account | SLURM_JOB_ACCOUNT | | | LSB_PROJECT_NAME |
| QOS | SLURM_JOB_QOS | | | |
| partition, queue | SLURM_JOB_PARTITION | | PBS_QUEUE | LSB_QUEUE |
| nodes | SLURM_JOB_NUM_NODES | | of PBS_NODEFILE | of the hosts |
| array | SLURM_ARRAY_JOB_ID, SLURM_ARRAY_TASK_ID | | of the number | of the number |
| hosts | SLURM_JOB_NODELIST | | PBS_NODEFILE | LSB_MCPU_HOSTS, LSB_HOSTS |
| time limit | SLURM_JOB_END_TIME | | PBS_WALLTIME | |

Sources: Slurm's Prolog and Epilog Guide; flux-config-job-manager(5) and Flux' guide for administrators; qsub(1B)
and the prologue of OpenPBS; LSF's reference of environment variables. A site's script can add a fact that has no
variable, or whose variable is not set, as `VANI_JOB_ID`, `_NAME`, `_USER`, `_ACCOUNT`, `_QOS`, `_PARTITION`,
`_NODES`, `_HOSTS` and `_TIME_LIMIT` (seconds). Variables of the batch system take precedence.

Everything except the number may be missing. Users choose the job's name, which can contain any character.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from vani.errors import InputError

_NUMBER: Final = re.compile(r"[1-9][0-9]{0,19}(?:_[0-9]{1,9})?")
_COUNT: Final = re.compile(r"[1-9][0-9]{0,18}")
_OF_AN_ARRAY: Final = re.compile(r"([0-9]+)\[([0-9]+)\]")
_BASE_58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
"""Digits of the job numbers that Flux prints after an f."""
_LONGEST: Final = 200
_LONGEST_HOSTS: Final = 100_000
_LONGEST_FILE: Final = 1 << 20
_LAST_SECOND: Final = 1 << 36
"""Slurm writes unknown times as very large numbers."""
_PREFIXES: Final = ("SLURM_", "FLUX_JOB_", "PBS_", "LSB_", "LSFUSER", "VANI_JOB_")


@dataclass(frozen=True)
class JobFacts:
    """A job that starts; facts that its batch system does not report are None.

    Times are seconds since 1970; `start_s` is measured by the clock of this host.
    """

    job: str
    start_s: float
    name: str | None = None
    user: str | None = None
    account: str | None = None
    qos: str | None = None
    partition: str | None = None
    """The queue in PBS and LSF."""
    nodes: int | None = None
    hosts: str | None = None
    """Host list in Slurm's notation, such as n[1-64]."""
    end_s: float | None = None
    """End of its time limit."""
    array: str | None = None
    """For a job in an array, the array's number and the index, such as 123_4."""


_TEXTS: Final = {
    "name": ("SLURM_JOB_NAME", "PBS_JOBNAME", "LSB_JOBNAME", "VANI_JOB_NAME"),
    "user": ("SLURM_JOB_USER", "FLUX_JOB_USERID", "PBS_O_LOGNAME", "LSFUSER", "VANI_JOB_USER"),
    "account": ("SLURM_JOB_ACCOUNT", "LSB_PROJECT_NAME", "VANI_JOB_ACCOUNT"),
    "qos": ("SLURM_JOB_QOS", "VANI_JOB_QOS"),
    "partition": ("SLURM_JOB_PARTITION", "PBS_QUEUE", "LSB_QUEUE", "VANI_JOB_PARTITION"),
}
_NUMBERS: Final = ("SLURM_JOB_ID", "SLURM_JOBID", "FLUX_JOB_ID", "PBS_JOBID", "LSB_JOBID", "VANI_JOB_ID")


def is_number(text: str) -> bool:
    """Whether a text is a job number as `number_of` returns it: digits, or two numbers for a job in an array."""
    return _NUMBER.fullmatch(text) is not None


def number_of(environment: Mapping[str, str]) -> str:
    """The job number; NUMBER_INDEX for a job in a PBS or LSF array.

    Raises
    ------
    InputError
        The number is missing or invalid.
    """
    variable = next((name for name in _NUMBERS if environment.get(name)), _NUMBERS[0])
    text = environment.get(variable) or ""
    number = text
    if variable == "FLUX_JOB_ID":
        number = _from_base_58(text)
    elif variable == "PBS_JOBID":
        number = _OF_AN_ARRAY.sub(r"\1_\2", text.partition(".")[0])
    elif variable == "LSB_JOBID" and environment.get("LSB_JOBINDEX", "0") != "0":
        number = f"{text}_{environment['LSB_JOBINDEX']}"
    if not is_number(number):
        what = f"is {text[:40]!r}" if text else "is not set"
        todo = "run this as PrologSlurmctld or EpilogSlurmctld, or set VANI_JOB_ID"
        raise InputError(what, where=variable, todo=todo)
    return number


def variables_of(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that describe a job, with the hosts from the file that PBS writes."""
    variables = {key: value for key, value in environment.items() if key.startswith(_PREFIXES)}
    place = variables.pop("PBS_NODEFILE", None)
    if place is not None:
        try:
            with open(place, errors="backslashreplace") as file:  # noqa: PTH123 - pathlib takes longer to load
                hosts = ",".join(dict.fromkeys(file.read(_LONGEST_FILE).split()))
        except (OSError, ValueError):
            return variables
        variables.setdefault("VANI_JOB_HOSTS", hosts)
    return variables


def facts_of(environment: Mapping[str, str], now_s: float) -> JobFacts:
    """Facts from the result of `variables_of`; `now_s` is the current time.

    Raises
    ------
    InputError
        There is no job number.
    """
    text = {key: _text(_first(environment, *names), _LONGEST) for key, names in _TEXTS.items()}
    hosts = _text(_first(environment, "SLURM_JOB_NODELIST") or _hosts_of_lsf(environment), _LONGEST_HOSTS)
    hosts = hosts or _text(environment.get("VANI_JOB_HOSTS"), _LONGEST_HOSTS)
    nodes = _count(_first(environment, "SLURM_JOB_NUM_NODES", "SLURM_NNODES", "VANI_JOB_NODES"))
    end = _count(environment.get("SLURM_JOB_END_TIME"))
    limit = _count(_first(environment, "PBS_WALLTIME", "VANI_JOB_TIME_LIMIT"))
    end_s = float(end) if end and end < _LAST_SECOND else None
    if end is None and limit is not None and limit < _LAST_SECOND:
        end_s = now_s + limit
    return JobFacts(
        job=number_of(environment),
        start_s=now_s,
        name=text["name"],
        user=text["user"],
        account=text["account"],
        qos=text["qos"],
        partition=text["partition"],
        nodes=nodes,
        hosts=hosts,
        end_s=end_s,
        array=_array_of(environment),
    )


def _array_of(environment: Mapping[str, str]) -> str | None:
    """The array and index: separate variables in Slurm; parts of the job number in PBS and LSF."""
    number = number_of(environment)
    if "SLURM_ARRAY_TASK_ID" in environment:
        number = f"{environment.get('SLURM_ARRAY_JOB_ID')}_{environment['SLURM_ARRAY_TASK_ID']}"
    return number if "_" in number and is_number(number) else None


def _hosts_of_lsf(environment: Mapping[str, str]) -> str:
    """Each LSF host once, without a leading launch node, which has a single slot while others have more."""
    words = (environment.get("LSB_MCPU_HOSTS") or "").split()
    slots = dict(zip(words[::2], words[1::2], strict=False))
    if not slots:
        return ",".join(dict.fromkeys((environment.get("LSB_HOSTS") or "").split()))
    first, *others = slots
    if others and slots[first] == "1" and "1" not in (slots[name] for name in others):
        return ",".join(others)
    return ",".join(slots)


def _from_base_58(text: str) -> str:
    """A Flux job number (ƒABC or fABC, or decimal) in decimal; empty if it is not one."""
    digits = text[1:]
    if text[:1] not in ("f", "ƒ") or not 0 < len(digits) <= 11 or not set(digits) <= set(_BASE_58):
        return text
    number = 0
    for digit in digits:
        number = 58 * number + _BASE_58.index(digit)
    return str(number)


def _first(environment: Mapping[str, str], *names: str) -> str | None:
    return next((environment[name] for name in names if environment.get(name)), None)


def _text(text: str | None, longest: int) -> str | None:
    """A text that documents can contain, with bytes that are not UTF-8 escaped."""
    return (text or "").encode(errors="backslashreplace").decode()[:longest] or None


def _count(text: str | None) -> int | None:
    return int(text) if text and _COUNT.fullmatch(text) else None
