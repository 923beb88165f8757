"""The running jobs and what each of them has: a folder shared by the prologs and epilogs of many jobs.

A job's prolog writes `jobs/NUMBER` without waiting, and its epilog removes it. The file contains the batch system's
variables as printed by `env -0`, so that a shell can write it as well. No job is lost if many start at once or one
is killed. `state.json` contains what each job has. It is written under the lock, which ends with its process. Every
file is written completely or not at all.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from vani.centre.prolog.job_facts import JobFacts, facts_of, is_number, number_of, variables_of
from vani.errors import InputError

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
