"""The running jobs and their plans in a folder, and the facts about a job that its batch system gives."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from vani.errors import InputError

# Facts about a job from the environment that its batch system gives to prologs and epilogs.
#
# | fact | Slurm | Flux | PBS | LSF |
# | --- | --- | --- | --- | --- |
# | number | SLURM_JOB_ID | FLUX_JOB_ID | PBS_JOBID | LSB_JOBID, LSB_JOBINDEX |
# | name | SLURM_JOB_NAME | | PBS_JOBNAME | LSB_JOBNAME |
# | user | SLURM_JOB_USER | FLUX_JOB_USERID | PBS_O_LOGNAME | LSFUSER |
# | account | SLURM_JOB_ACCOUNT | | | LSB_PROJECT_NAME |
# | QOS | SLURM_JOB_QOS | | | |
# | partition, queue | SLURM_JOB_PARTITION | | PBS_QUEUE | LSB_QUEUE |
# | nodes | SLURM_JOB_NUM_NODES | | of PBS_NODEFILE | of the hosts |
# | array | SLURM_ARRAY_JOB_ID, SLURM_ARRAY_TASK_ID | | of the number | of the number |
# | hosts | SLURM_JOB_NODELIST | | PBS_NODEFILE | LSB_MCPU_HOSTS, LSB_HOSTS |
# | time limit | SLURM_JOB_END_TIME | | PBS_WALLTIME | |
#
# Sources: Slurm's Prolog and Epilog Guide; flux-config-job-manager(5) and Flux' guide for administrators; qsub(1B)
# and the prologue of OpenPBS; LSF's reference of environment variables. A site's script can add a fact that has no
# variable, or whose variable is not set, as `VANI_JOB_ID`, `_NAME`, `_USER`, `_ACCOUNT`, `_QOS`, `_PARTITION`,
# `_NODES`, `_HOSTS` and `_TIME_LIMIT` (seconds). Variables of the batch system take precedence.
#
# Everything except the number may be missing. Users choose the job's name, which can contain any character.

_NUMBER: Final = re.compile(r"[1-9][0-9]{0,19}(?:_[0-9]{1,9})?")
_COUNT: Final = re.compile(r"[1-9][0-9]{0,18}")
_OF_AN_ARRAY: Final = re.compile(r"([0-9]+)\[([0-9]+)\]")
_BASE_58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
"""Digits of the job numbers that Flux prints after an f."""
_MAX_FACT: Final = 200
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
    text = {key: _text(_first(environment, *names), _MAX_FACT) for key, names in _TEXTS.items()}
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
        **text,
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


# The running jobs and what each of them has: a folder shared by the prologs and epilogs of many jobs.
#
# A job's prolog writes `jobs/NUMBER` without waiting, and its epilog removes it. The file contains the batch system's
# variables as printed by `env -0`, so that a shell can write it as well. No job is lost if many start at once or one
# is killed. `state.json` contains what each job has. It is written under the lock, which ends with its process. Every
# file is written completely or not at all.

_OF_A_JOB: Final = ("env", "hints", "map", "sqlite", "yaml")
"""Suffixes of a job's files."""
_ABANDONED_S: Final = 3600.0
_LOOK_AGAIN_S: Final = 0.02
_LONGEST: Final = 1 << 20
"""Maximum size in bytes of a file in `jobs`; the list of hosts is the longest part."""
_LONGEST_STATE: Final = 1 << 28


class State:
    """A folder of running jobs.

    Parameters
    ----------
    folder
        Created if it is missing and its parent exists.

    Raises
    ------
    InputError
        The folder cannot be created, or everyone can write to it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.abspath(folder))  # noqa: PTH100 - keeps the symbolic links that the site created
        self._jobs = self.folder / "jobs"
        if not str(self.folder).isprintable():
            raise InputError("is not printable", where=self.folder, todo="name another folder")
        try:
            for directory in (self.folder, self._jobs):
                with suppress(FileExistsError):
                    directory.mkdir(mode=0o755)
            status = self._jobs.parent.stat()
        except OSError as error:
            raise InputError(
                f"cannot be used ({error.strerror})",
                where=folder,
                todo="make the folder, or name another one",
            ) from error
        if status.st_mode & stat.S_IWOTH:
            # Anyone with write access decides the environment of other users' tasks.
            raise InputError("is writable by everyone", where=folder, todo=f"chmod o-w {folder}")

    def register(self, environment: Mapping[str, str]) -> JobFacts:
        """Record that the job of this environment is running; data of an earlier run with its number is removed.

        Raises
        ------
        InputError
            There is no job number, or the state cannot be written.
        """
        number = number_of(environment)
        variables = variables_of(environment)
        place = self._jobs / number
        with suppress(OSError, ValueError):
            before, since_s = _registered(place)
            if variables_of(before) == variables:
                return facts_of(variables, since_s)  # The script that runs this has already registered the job.
        for suffix in _OF_A_JOB:
            self.file_of(number, suffix).unlink(missing_ok=True)
        text = "".join(f"{key}={value}\0" for key, value in sorted(variables.items()))
        self.write(place, text.encode(errors="surrogateescape"))
        return facts_of(variables, place.stat().st_mtime)

    def forget(self, number: str) -> None:
        """Record that a job ended; if the folder `ended` exists, its plan waits there for the outcome."""
        (self._jobs / number).unlink(missing_ok=True)
        with suppress(OSError):
            plan = self.file_of(number, "yaml")
            os.utime(plan)
            os.replace(plan, self.ended / plan.name)  # noqa: PTH105
        for suffix in _OF_A_JOB:
            self.file_of(number, suffix).unlink(missing_ok=True)

    @property
    def ended(self) -> Path:
        """The folder with plans of ended jobs, `NUMBER.yaml` each; only `vani plan outcome` creates it."""
        return self.folder / "ended"

    def has(self, number: str) -> bool:
        """Whether a job has not ended."""
        return (self._jobs / number).exists()

    def is_planned(self, number: str) -> bool:
        """Whether a job has a plan that its tasks can see."""
        return self.file_of(number, "env").exists()

    def file_of(self, number: str, suffix: str) -> Path:
        """Path of one of a job's files.

        The files are its plan (`yaml`), forwarding map (`map`), placement database (`sqlite`), hints for ROMIO
        (`hints`), and the variables of its tasks (`env`).
        """
        return self.folder / f"{number}.{suffix}"

    def running(self, *, now_s: float, expire_s: float, say: Callable[[str], None]) -> list[JobFacts]:
        """The running jobs, by start time.

        A job whose end was not reported is removed `expire_s` seconds after it started, or an hour after its time
        limit, whichever comes first. `say` is called with a line about each such job and about each unreadable
        file.
        """
        jobs = []
        for name in os.listdir(self._jobs):  # noqa: PTH208 - hundreds of paths need not be made
            if not is_number(name):
                continue
            place = self._jobs / name
            try:
                job = facts_of(*_registered(place))
                if job.job != name:
                    raise ValueError("it belongs to another job")
            except FileNotFoundError:
                continue  # The job ended just now.
            except (OSError, ValueError, InputError) as error:
                say(f"{place} is not a job and was set aside ({error})")
                with suppress(OSError):
                    os.replace(place, f"{place}.broken")  # noqa: PTH105
                continue
            last = min(job.start_s + expire_s, (job.end_s or float("inf")) + 3600.0)
            if now_s > last:
                say(f"job {job.job} was removed: its end was not reported")
                self.forget(job.job)
                continue
            jobs.append(job)
        return sorted(jobs, key=lambda job: (job.start_s, len(job.job), job.job))

    def sweep(self, now_s: float) -> None:
        """Remove files of jobs that ended during planning, and unfinished files of killed processes."""
        for folder in (self.folder, self._jobs):
            for name in os.listdir(folder):  # noqa: PTH208 - hundreds of paths need not be made
                stem, _, suffix = name.rpartition(".")
                is_left = (
                    folder == self.folder and suffix in _OF_A_JOB and is_number(stem) and not self.has(stem)
                )
                with suppress(OSError):
                    if suffix == "partial":
                        is_left = now_s - (folder / name).stat().st_mtime > _ABANDONED_S
                    if is_left:
                        (folder / name).unlink()

    def load(self, say: Callable[[str], None]) -> dict[str, Any]:
        """The data that the last owner of the lock wrote; if it cannot be read, an empty one and a message."""
        place = self.folder / "state.json"
        try:
            document = json.loads(_read(place, _LONGEST_STATE)[0])
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            say(f"{place} cannot be used and was set aside ({error})")
            with suppress(OSError):
                os.replace(place, f"{place}.broken")  # noqa: PTH105
            return {}
        return document if isinstance(document, dict) else {}

    def commit(self, what: dict[str, Any]) -> None:
        """Record what every job has; the caller must own the lock."""
        self.write(self.folder / "state.json", json.dumps(what).encode())

    @contextmanager
    def locked(self, until: Callable[[], bool]) -> Iterator[bool]:
        """Acquire the lock; yield False if `until` ended the wait.

        Raises
        ------
        InputError
            The file system does not support locks.
        """
        handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            while True:
                try:
                    fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    if error.errno not in (errno.EACCES, errno.EAGAIN):
                        raise InputError(
                            f"cannot be locked ({error.strerror})",
                            where=self.folder,
                            todo="name a folder on a local file system",
                        ) from error
                    if until():
                        yield False
                        return
                    time.sleep(_LOOK_AGAIN_S)
                    continue
                yield True
                return
        finally:
            os.close(handle)

    def write(self, path: Path, content: bytes) -> None:
        """Replace a file atomically.

        The write is not synced to disk: after a crash of this host, its jobs are gone as well.

        Raises
        ------
        InputError
            The file cannot be written.
        """
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        try:
            try:
                with partial.open("wb") as file:
                    file.write(content)
                os.replace(partial, path)  # noqa: PTH105
            except OSError:
                partial.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise InputError(
                f"cannot be written ({error.strerror})", where=path, todo="free some space"
            ) from error


def _read(path: Path, most: int) -> tuple[bytes, float]:
    """The content of a file and its modification time, in seconds since 1970."""
    with path.open("rb") as file:
        content = file.read(most + 1)
        when = os.fstat(file.fileno()).st_mtime
    if len(content) > most:
        raise ValueError("too long")
    return content, when


def _registered(path: Path) -> tuple[dict[str, str], float]:
    """The environment with which a job was registered, and when."""
    content, when = _read(path, _LONGEST)
    pairs = (entry.partition("=") for entry in content.decode(errors="surrogateescape").split("\0"))
    return {key: value for key, sign, value in pairs if sign}, when
