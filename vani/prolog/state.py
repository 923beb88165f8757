"""The jobs that run, and what each of them has: a folder that prologs and epilogs of many jobs share.

`jobs/NUMBER` is written by the prolog of a job, without waiting, and removed by its epilog: the variables
of the batch system as `env -0` prints them, so that a shell can write it, too. So no job is lost where many begin at
once, or where one is killed. `state.json`, what each job has, is written under the lock, which ends with its process.
Every file appears whole or not at all.
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

from vani.errors import InputError
from vani.prolog.job_facts import JobFacts, facts_of, is_number, number_of, variables_of

__all__ = ["State"]

_OF_A_JOB: Final = ("env", "hints", "map", "sqlite", "yaml")
"""Endings of the files of a job."""
_ABANDONED_S: Final = 3600.0
_LOOK_AGAIN_S: Final = 0.02
_LONGEST: Final = 1 << 20
"""Bytes of a file in `jobs`: the list of hosts is the longest part."""
_LONGEST_STATE: Final = 1 << 28


class State:
    """A folder of running jobs.

    Parameters
    ----------
    folder
        Made where it is missing and the folder above is there.

    Raises
    ------
    InputError
        It cannot be created, or everyone may write there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.abspath(folder))  # noqa: PTH100 - links stay what the site made them
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
            # Anyone who may write there decides what is set in the tasks of other users' jobs.
            raise InputError("is writable by everyone", where=folder, todo=f"chmod o-w {folder}")

    def register(self, environment: Mapping[str, str]) -> JobFacts:
        """Write down that the job of this environment runs; what an earlier run of its number had is forgotten.

        Raises
        ------
        InputError
            There is no number of a job, or no place to write.
        """
        number = number_of(environment)
        variables = variables_of(environment)
        place = self._jobs / number
        with suppress(OSError, ValueError):
            before, since_s = _registered(place)
            if variables_of(before) == variables:
                return facts_of(variables, since_s)  # The script that runs this has done it.
        for suffix in _OF_A_JOB:
            self.file_of(number, suffix).unlink(missing_ok=True)
        text = "".join(f"{key}={value}\0" for key, value in sorted(variables.items()))
        self.write(place, text.encode(errors="surrogateescape"))
        return facts_of(variables, place.stat().st_mtime)

    def forget(self, number: str) -> None:
        """Write down that a job ended; its plan waits in `ended`, where that is there, for what the job took."""
        (self._jobs / number).unlink(missing_ok=True)
        with suppress(OSError):
            plan = self.file_of(number, "yaml")
            os.utime(plan)
            os.replace(plan, self.ended / plan.name)  # noqa: PTH105
        for suffix in _OF_A_JOB:
            self.file_of(number, suffix).unlink(missing_ok=True)

    @property
    def ended(self) -> Path:
        """The folder of plans of jobs that ended, `NUMBER.yaml` as of then; only `vani plan outcome` makes it."""
        return self.folder / "ended"

    def has(self, number: str) -> bool:
        """True for a job that has not ended."""
        return (self._jobs / number).exists()

    def is_planned(self, number: str) -> bool:
        """True where a job has a plan for its tasks to see."""
        return self.file_of(number, "env").exists()

    def file_of(self, number: str, suffix: str) -> Path:
        """A file of a job.

        Its plan (`yaml`), forwarding map (`map`), placement database (`sqlite`), hints for ROMIO (`hints`), and the
        variables of its tasks (`env`).
        """
        return self.folder / f"{number}.{suffix}"

    def running(self, *, now_s: float, expire_s: float, say: Callable[[str], None]) -> list[JobFacts]:
        """The jobs that run, by start time.

        One whose end was not reported is forgotten `expire_s` seconds after it began, or an hour after its time limit
        ran out, whichever comes first. `say` gets a line about these, and about files that cannot be read.
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
                continue  # It ended just now.
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
        """Remove what jobs left that ended while they were planned for, and what killed processes began to write."""
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
        """The figures that the last holder of the lock wrote; empty, with a message, where they cannot be read."""
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
        """Write down what every job has; the caller must have the lock."""
        self.write(self.folder / "state.json", json.dumps(what).encode())

    @contextmanager
    def locked(self, until: Callable[[], bool]) -> Iterator[bool]:
        """Acquire the lock; yields False if `until` ended the wait.

        Raises
        ------
        InputError
            The file system has no locks.
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
        """Replace a file in one step.

        Nothing waits for the disk: after a crash of this host its jobs are gone as well.

        Raises
        ------
        InputError
            It cannot be written.
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
    """The content of a file and when it was written, in seconds since 1970."""
    with path.open("rb") as file:
        content = file.read(most + 1)
        when = os.fstat(file.fileno()).st_mtime
    if len(content) > most:
        raise ValueError("too long")
    return content, when


def _registered(path: Path) -> tuple[dict[str, str], float]:
    """The environment that a job was registered with, and when."""
    content, when = _read(path, _LONGEST)
    pairs = (entry.partition("=") for entry in content.decode(errors="surrogateescape").split("\0"))
    return {key: value for key, sign, value in pairs if sign}, when
