"""The channel from publishers to a listener: JSON messages over ZeroMQ sockets, if ZeroMQ is installed.

A message contains a publisher's name, a sequence number, and a snapshot of its own server.
"""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field, ValidationError

from vani.centre.plan.schema.jobs import Name
from vani.centre.plan.schema.snapshot import Snapshot
from vani.errors import InputError
from vani.schema.model import Model

if TYPE_CHECKING:
    from types import ModuleType

Role = Literal["oss", "mds", "forwarding"]

TOPIC: Final = b"vani.load/1 "
LONGEST: Final = 1 << 20
"""Maximum message size in bytes: a server with a thousand targets needs a tenth."""


class LoadMessage(Model):
    """The load of one server."""

    publisher: Name = Field(description="name of the server")
    run: Annotated[str, Field(pattern="^[0-9a-f]{16}$")] = Field(
        description="random, new at each start of a publisher"
    )
    number: Annotated[int, Field(ge=0, le=1 << 53)] = Field(
        description="counts the messages of the run, from 0"
    )
    interval_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = Field(
        description="seconds to the next message"
    )
    role: Role = Field(description="kind of server")
    snapshot: Snapshot = Field(description="of this server only")


def pack(message: LoadMessage) -> bytes:
    """Encode a message for sending."""
    return TOPIC + message.model_dump_json(by_alias=True, exclude_defaults=True).encode()


def message_of(content: bytes) -> LoadMessage:
    """Decode a message.

    Raises
    ------
    InputError
        It is not a message, or contains figures of other servers.
    """
    if not content.startswith(TOPIC) or len(content) > LONGEST:
        raise InputError("is not a publisher's message")
    try:
        message = LoadMessage.model_validate_json(content[len(TOPIC) :])
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, problem["loc"]))
        raise InputError(f"{place or 'the message'}: {problem['msg'].lower()}") from None
    snapshot = message.snapshot
    snapshot.refuse_contradictions("the message")
    parts: dict[str, set[str | None]] = {
        "oss": {*(server.name for server in snapshot.oss), *(target.oss for target in snapshot.ost)},
        "forwarding": {node.name for node in snapshot.forwarding},
        "mds": {message.publisher} if snapshot.mds else set(),
        "": {"somebody"} if snapshot.storage or snapshot.reach else set(),
    }
    if any(names - ({message.publisher} if role == message.role else set()) for role, names in parts.items()):
        raise InputError(f"{message.publisher} reports other servers")
    return message


ENDPOINT: Final = "tcp://127.0.0.1:5570"
"""Default address for publishers, which only this host can reach."""

_SHAPE = re.compile(
    r"tcp://(?:\*|[A-Za-z0-9._%-]+|\[[0-9A-Fa-f:%.a-z]+\]):(?P<port>\*|[0-9]{1,5})|ipc://.{1,100}"
)
_LAST_PORT: Final = 65_535


def check_endpoint(endpoint: str) -> None:
    """Refuse an invalid endpoint, because the library mistakes some for others.

    Raises
    ------
    InputError
        It is neither tcp://HOST:PORT nor ipc://FILE.
    """
    match = _SHAPE.fullmatch(endpoint)
    if match is None or ((match["port"] or "").isdecimal() and not 0 < int(match["port"]) <= _LAST_PORT):
        raise InputError(
            "is not an address to listen on or send to",
            where=repr(endpoint[:100]),
            todo=f"give one such as {ENDPOINT}",
        )


def zmq_or_error() -> ModuleType:
    """The ZeroMQ library.

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
    """The error for a socket that could not be created at an endpoint."""
    code = getattr(error, "errno", None) or 0
    todo = (
        "use another port, or stop the process that uses it"
        if code == errno.EADDRINUSE
        else "give an address of this host"
    )
    why = str(getattr(error, "strerror", None) or error).partition(" (addr=")[0]
    return InputError(f"cannot be used ({why})", where=endpoint, todo=todo)
