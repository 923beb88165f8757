"""ZeroMQ, where it is installed, and what it refuses, in words."""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING, Any, Final

from vani.errors import InputError

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["ENDPOINT", "check_endpoint", "refused", "zmq_or_error"]

ENDPOINT: Final = "tcp://127.0.0.1:5570"
"""Where publishers are heard unless another place is named: only this host reaches it."""

_SHAPE = re.compile(
    r"tcp://(?:\*|[A-Za-z0-9._%-]+|\[[0-9A-Fa-f:%.a-z]+\]):(?P<port>\*|[0-9]{1,5})|ipc://.{1,100}"
)
_LAST_PORT: Final = 65_535


def check_endpoint(endpoint: str) -> None:
    """Refuse what is no endpoint: the library takes some of it for another one.

    Raises
    ------
    InputError
        It is neither tcp://HOST:PORT nor ipc://FILE.
    """
    match = _SHAPE.fullmatch(endpoint)
    if match is None or ((match["port"] or "").isdecimal() and not 0 < int(match["port"]) <= _LAST_PORT):
        raise InputError(
            "is no place to listen or to send to",
            where=repr(endpoint[:100]),
            todo=f"give one such as {ENDPOINT}",
        )


def zmq_or_error() -> ModuleType:
    """The library.

    Raises
    ------
    InputError
        It is not installed.
    """
    try:
        import zmq  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise InputError("ZeroMQ is not installed", todo="pip install 'vani-io[collector]'") from error
    return zmq


def refused(endpoint: str, error: Any) -> InputError:
    """Why a socket could not be made at an endpoint."""
    code = getattr(error, "errno", None) or 0
    todo = (
        "give another port, or end who uses it"
        if code == errno.EADDRINUSE
        else "give an address of this host"
    )
    why = str(getattr(error, "strerror", None) or error).partition(" (addr=")[0]
    return InputError(f"cannot be used ({why})", where=endpoint, todo=todo)
