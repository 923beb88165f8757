"""What a publisher sends: its name, a number that counts up, and a snapshot of its own server, as JSON."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError

from vani.errors import InputError
from vani.schema.jobs import Name
from vani.schema.model import Model
from vani.schema.snapshot import Snapshot

__all__ = ["LONGEST", "TOPIC", "LoadMessage", "Role", "message_of", "packed"]

Role = Literal["oss", "mds", "forwarding"]

TOPIC: Final = b"vani.load/1 "
LONGEST: Final = 1 << 20
"""Bytes: a server with a thousand targets needs a tenth."""


class LoadMessage(Model):
    """The load of one server."""

    publisher: Name = Field(description="name of the server")
    run: Annotated[str, Field(pattern="^[0-9a-f]{16}$")] = Field(
        description="random, new each time a publisher begins"
    )
    number: Annotated[int, Field(ge=0, le=1 << 53)] = Field(
        description="counts the messages of the run, from 0"
    )
    interval_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = Field(
        description="seconds to the next message"
    )
    role: Role = Field(description="what the server is")
    snapshot: Snapshot = Field(description="of this server alone")


def packed(message: LoadMessage) -> bytes:
    """A message as it is sent."""
    return TOPIC + message.model_dump_json(by_alias=True, exclude_defaults=True).encode()


def message_of(content: bytes) -> LoadMessage:
    """Read a message.

    Raises
    ------
    InputError
        It is none, or tells of other servers than its own.
    """
    if not content.startswith(TOPIC) or len(content) > LONGEST:
        raise InputError("is no message of a publisher")
    try:
        found = LoadMessage.model_validate_json(content[len(TOPIC) :])
    except ValidationError as error:
        one = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, one["loc"]))
        raise InputError(f"{place or 'the message'}: {one['msg'].lower()}") from None
    told = found.snapshot
    told.refuse_contradictions("the message")
    parts: dict[str, set[str | None]] = {
        "oss": {*(one.name for one in told.oss), *(one.oss for one in told.ost)},
        "forwarding": {one.name for one in told.forwarding},
        "mds": {found.publisher} if told.mds else set(),
        "": {"somebody"} if told.storage or told.reach else set(),
    }
    if any(names - ({found.publisher} if role == found.role else set()) for role, names in parts.items()):
        raise InputError(f"{found.publisher} tells of other servers than itself")
    return found
