"""The scheduler that a user names, parsed before anything is connected."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from vani.errors import InputError

LOCAL = ("threads", "processes", "synchronous")

_PROTOCOLS = ("tcp", "tls", "ucx", "ucxx", "ws", "wss", "inproc")
_MAX_FILE = 1 << 20
"""Maximum bytes read from a scheduler file: real ones have some hundred, but a device has no end."""


class Client(Protocol):
    """The part of `distributed.Client` and of Dask's clusters, such as dask-jobqueue's, that identifies them."""

    @property
    def scheduler_info(self) -> object: ...


@dataclass(frozen=True, eq=False)
class Scheduler:
    """Dask's scheduler for a run."""

    name: str = LOCAL[0]
    """As the user named it: one of `LOCAL`, an address, a file."""
    file: Path | None = None
    """The file that `dask scheduler --scheduler-file FILE` writes."""
    client: Any = None
    """An open `distributed.Client`, which is left open, or a cluster."""

    @property
    def is_local(self) -> bool:
        """Whether all work is done on this machine."""
        return self.name in LOCAL

    def address(self) -> str:
        """Address of a cluster's scheduler.

        Raises
        ------
        InputError
            The file does not exist, or does not come from a scheduler.
        """
        if self.file is None:
            return self.name
        try:
            with self.file.open("rb") as file:
                content = json.loads(file.read(_MAX_FILE))
        except FileNotFoundError as error:
            raise InputError(
                "no such scheduler file",
                where=self.file,
                todo="start `dask scheduler --scheduler-file FILE` first",
            ) from error
        except (OSError, ValueError, RecursionError) as error:
            raise self._not_of_a_scheduler("cannot be read as a scheduler file") from error
        address = content.get("address") if isinstance(content, dict) else None
        if not isinstance(address, str) or "://" not in address:
            raise self._not_of_a_scheduler("names no address of a scheduler")
        return address

    def _not_of_a_scheduler(self, what: str) -> InputError:
        return InputError(what, where=self.name, todo="name the file that `dask scheduler` wrote")


SchedulerLike = str | Path | Scheduler | Client | None
"""Arguments of `scheduler_of`; None is the default, threads."""


def scheduler_of(given: SchedulerLike) -> Scheduler:
    """The scheduler that a user names.

    Parameters
    ----------
    given
        `threads` (the default), `processes`, `synchronous`; the address of a Dask scheduler such as `tcp://host:8786`,
        or the path of its scheduler file; a `distributed.Client`, or a cluster, such as dask-jobqueue's.

    Raises
    ------
    InputError
        There is no such scheduler. Whether it answers is known only on first use.
    """
    if given is None:
        return Scheduler()
    if isinstance(given, Scheduler):
        return given
    if isinstance(given, Path):
        return Scheduler(str(given), given)
    if isinstance(given, str):
        return _named(given)
    if not hasattr(given, "scheduler_info"):
        raise InputError(
            f"a {type(given).__name__} is not a scheduler",
            todo="give an address, the path of a scheduler file, a distributed.Client or a Dask cluster",
        )
    return Scheduler("the Dask cluster", client=given)


def _named(text: str) -> Scheduler:
    try:
        parts = urlsplit(text)
        if parts.scheme in _PROTOCOLS and parts.hostname and parts.port != 0:
            if parts.port is None and parts.scheme != "inproc":
                raise InputError(
                    f"scheduler address {text} names no port",
                    todo=f"write it with the port of `dask scheduler`, such as {text.rstrip('/:')}:8786",
                )
            return Scheduler(text)
    except ValueError:
        pass
    if text in LOCAL:
        return Scheduler(text)
    if "://" not in text and ("/" in text or text.endswith(".json") or Path(text).is_file()):
        return Scheduler(text, Path(text))
    raise InputError(
        f"unknown scheduler {text!r}",
        todo=f"known are {', '.join(LOCAL)}, the address of a Dask scheduler (tcp://host:port) and its scheduler file",
    )
