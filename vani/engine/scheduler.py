"""Schedulers that users name, parsed before anything is connected or submitted."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from vani.engine.batch_system import OptionValue, parsed_options
from vani.errors import InputError

LOCAL = ("threads", "processes", "synchronous")

_PROTOCOLS = ("tcp", "tls", "ucx", "ucxx", "ws", "wss", "inproc")
_LONGEST_FILE = 1 << 20
"""Maximum bytes read from a scheduler file: real ones have some hundred, but a device has no end."""


class Client(Protocol):
    """The part of `distributed.Client` that is used."""

    def scheduler_info(self) -> object: ...


@dataclass(frozen=True, eq=False)
class LocalScheduler:
    """This machine: one of `LOCAL`."""

    name: str = LOCAL[0]

    def __post_init__(self) -> None:
        if self.name not in LOCAL:
            raise InputError(
                f"unknown scheduler {self.name!r}",
                todo=f"known are {', '.join(LOCAL)} and the address of a Dask scheduler (tcp://host:port)",
            )


@dataclass(frozen=True, eq=False)
class SchedulerAddress:
    """A running Dask cluster, given by its scheduler's address, such as `tcp://host:8786`."""

    address: str

    def __post_init__(self) -> None:
        if not _names_port(self.address):
            raise InputError(
                f"scheduler address {self.address} names no port",
                todo=f"write it with the port of `dask scheduler`, such as {self.address.rstrip('/:')}:8786",
            )


@dataclass(frozen=True, eq=False)
class SchedulerFile:
    """A running Dask cluster, given by the file that `dask scheduler --scheduler-file FILE` writes."""

    path: Path

    def address(self) -> str:
        """Address of the scheduler that wrote the file.

        Raises
        ------
        InputError
            The file does not exist, or does not come from a scheduler.
        """
        try:
            with self.path.open("rb") as file:
                content = json.loads(file.read(_LONGEST_FILE))
        except FileNotFoundError as error:
            raise InputError(
                "no such scheduler file",
                where=self.path,
                todo="start `dask scheduler --scheduler-file FILE` first",
            ) from error
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(
                "cannot be read as a scheduler file",
                where=self.path,
                todo="name the file that `dask scheduler` wrote",
            ) from error
        address = content.get("address") if isinstance(content, dict) else None
        if not isinstance(address, str) or "://" not in address:
            raise InputError(
                "names no address of a scheduler",
                where=self.path,
                todo="name the file that `dask scheduler` wrote",
            )
        return address


@dataclass(frozen=True, eq=False)
class BatchJobs:
    """Workers as batch jobs, submitted for this run and cancelled when it ends.

    Parameters
    ----------
    system
        One of `BATCH_SYSTEMS`.
    workers
        Number of worker processes to request; None requests one job.
    options
        (name, value) pairs, as listed in `vani.engine.batch_system`. Missing ones come from Dask's
        configuration (`~/.config/dask/jobqueue.yaml`).

    Raises
    ------
    InputError
        The system or an option is unknown, or a value is invalid.
    """

    system: str
    workers: int | None = None
    options: tuple[tuple[str, str], ...] = ()
    parsed: dict[str, OptionValue] = field(init=False, repr=False, compare=False)
    """The options in the form for dask-jobqueue."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "parsed", parsed_options(self.system, self.options))


@dataclass(frozen=True, eq=False)
class OpenClient:
    """A connection that belongs to the caller, and is left open."""

    client: Client


Scheduler = LocalScheduler | SchedulerAddress | SchedulerFile | BatchJobs | OpenClient

SchedulerLike = str | Scheduler | Client | None
"""Arguments of `scheduler_of`; None is the default, threads."""


def scheduler_of(given: SchedulerLike) -> Scheduler:
    """The scheduler that a user names.

    Parameters
    ----------
    given
        `threads` (the default), `processes`, `synchronous`; the address of a Dask scheduler such as
        `tcp://host:8786`, a `SchedulerFile`, `BatchJobs`, or a `distributed.Client`.

    Raises
    ------
    InputError
        There is no such scheduler. Whether it answers is known only on first use.
    """
    if given is None:
        return LocalScheduler()
    if isinstance(given, str):
        return SchedulerAddress(given) if _is_address(given) else LocalScheduler(given)
    if isinstance(given, Scheduler):
        return given
    if not hasattr(given, "scheduler_info"):
        raise InputError(
            f"a {type(given).__name__} is not a scheduler",
            todo="give an address, a SchedulerFile, BatchJobs or a distributed.Client",
        )
    return OpenClient(given)


def _is_address(text: str) -> bool:
    from urllib.parse import urlsplit  # noqa: PLC0415 - `vani --help` pays for nothing

    try:
        parts = urlsplit(text)
        return parts.scheme in _PROTOCOLS and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _names_port(address: str) -> bool:
    from urllib.parse import urlsplit  # noqa: PLC0415

    parts = urlsplit(address)
    return parts.port is not None or parts.scheme == "inproc"
