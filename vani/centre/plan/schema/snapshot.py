"""snapshot.yaml: the present state of a machine's storage, as `vani plan` reads it.

`vani plan snapshot` writes it from what servers report; a person can, too. An unknown figure is null, and a
plan lists it under `no_data`: no load is not the same as a load of 0.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, field_serializer

from vani.centre.plan.schema.jobs import Demand, Name
from vani.errors import DocumentError
from vani.schema.document import Document
from vani.schema.model import Model, schema_field

MAX_TARGETS = 65_536
"""OST indexes of Lustre are 16 bits."""

BUSY_CPU = 0.7
BUSY_MEMORY = 0.5
"""Shares of the metadata server in use from which on OSTs are not allotted again (Tarazu, section 5.6)."""

Rates = Demand
"""Bytes, data operations and metadata operations per second; a part that is not known is null."""

State = Literal["ok", "degraded", "offline"]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Size = Annotated[int, Field(ge=0, le=1 << 62)]
Index = Annotated[int, Field(ge=0, lt=MAX_TARGETS)]


class Server(Model):
    """An object storage server (OSS)."""

    name: Name = Field(description="name, unique among the servers")
    cpu: Share | None = Field(default=None, description="share of the server's processors in use")
    memory: Share | None = Field(default=None, description="share of the server's memory in use")


class Target(Model):
    """An object storage target (OST)."""

    index: Index = Field(description="OST index as used by `lfs setstripe -o`")
    oss: Name | None = Field(default=None, description="server of the target")
    size: int = Field(ge=1, le=1 << 62, description="capacity in bytes")
    used: Size = Field(description="bytes stored or reserved")
    load: Share | None = Field(default=None, description="share of the target's bandwidth in use")
    peak: Rates | None = Field(default=None, description="highest rate observed")
    state: State = Field(default="ok", description="state. degraded: working, but slow; offline: not working")


class IoNode(Model):
    """A forwarding node, through which compute nodes reach the storage."""

    name: Name = Field(description="name, unique among the forwarding nodes")
    peak: Rates | None = Field(default=None, description="highest rates observed")
    load: Share | None = Field(default=None, description="current queue length / longest queue length, 0..1")
    state: State = Field(default="ok", description="state. degraded: working, but slow; offline: not working")
    prefetch_buffer: Size | None = Field(default=None, description="maximum bytes that the node reads ahead")


class StorageNode(Model):
    """A storage node that serves some of the targets."""

    name: Name = Field(description="name, unique among the storage nodes")
    peak: Rates | None = Field(default=None, description="highest rates observed")
    load: Share | None = Field(default=None, description="load, 0..1; null uses the mean of the node's targets")
    state: State = Field(default="ok", description="state. degraded: working, but slow; offline: not working")
    ost: list[Index] = Field(default_factory=list, max_length=MAX_TARGETS, description="OST indices of the node")


class MetadataServer(Model):
    """The metadata server."""

    cpu: Share | None = Field(default=None, description="share of the server's processors in use")
    memory: Share | None = Field(default=None, description="share of the server's memory in use")
    free: Size | None = Field(default=None, description="free bytes of the metadata targets; null if unknown")


class Missing(Model):
    """A part of the machine whose state is unknown."""

    name: str = Field(description="name of the server, or `mds`")
    reason: str = Field(description="reason why the figures are missing")


class Snapshot(Document):
    """The present load of the machine."""

    schema_: Literal["vani.snapshot/1"] = schema_field("vani.snapshot/1")
    time: datetime | None = Field(
        default=None, description="time of the snapshot, in UTC unless it states a zone; null if unknown"
    )
    oss: list[Server] = Field(default_factory=list, max_length=MAX_TARGETS, description="object storage servers")
    ost: list[Target] = Field(default_factory=list, max_length=MAX_TARGETS, description="object storage targets")
    forwarding: list[IoNode] = Field(default_factory=list, max_length=100_000, description="forwarding nodes")
    storage: list[StorageNode] = Field(default_factory=list, max_length=100_000, description="storage nodes")
    reach: dict[Name, list[Name]] | None = Field(
        default=None, description="storage nodes that each forwarding node can reach; null if each reaches all"
    )
    mds: MetadataServer | None = Field(default=None, description="metadata server; null if unknown")
    no_data: list[Missing] = Field(
        default_factory=list, max_length=100_000, description="parts whose figures are missing, and why"
    )
    notes: list[str] = Field(
        default_factory=list, max_length=1000, description="remarks needed to interpret the figures"
    )

    @field_serializer("time")
    def _written(self, time: datetime | None) -> str | None:
        return None if time is None else time.isoformat().replace("+00:00", "Z")

    def reasons_to_wait(self) -> list[str]:
        """Reasons to allot no OSTs now: a busy metadata server; empty if it is not busy or its load is unknown."""
        if self.mds is None:
            return []
        return [
            f"the metadata server uses {share:.0%} of its {what}: allot below {most:.0%}".replace("%", " %")
            for what, share, most in (
                ("processors", self.mds.cpu, BUSY_CPU),
                ("memory", self.mds.memory, BUSY_MEMORY),
            )
            if share is not None and share >= most
        ]

    def refuse_contradictions(self, where: str) -> None:
        """Check the parts for contradictions; errors call the document `where`.

        Raises
        ------
        DocumentError
            Two parts share a name, a named part is missing, or a target is filled beyond its size.
        """
        servers = _unique("OSS", [server.name for server in self.oss], where)
        targets = _unique("OST", [target.index for target in self.ost], where)
        nodes = _unique("forwarding node", [node.name for node in self.forwarding], where)
        storage = _unique("storage node", [node.name for node in self.storage], where)
        for target in self.ost:
            if target.used > target.size:
                raise DocumentError(
                    f"OST {target.index} uses {target.used:,} of {target.size:,} bytes",
                    where=where,
                    todo="give `used` of at most `size`",
                )
        _all_there("OST", "OSS", ((target.index, target.oss) for target in self.ost if target.oss), servers, where)
        behind = [(node.name, index) for node in self.storage for index in node.ost]
        _all_there("storage node", "OST", behind, targets, where)
        _unique("OST behind a storage node", [index for _, index in behind], where)
        reach = self.reach or {}
        _all_there("reach", "forwarding node", (("reach", name) for name in reach), nodes, where)
        pairs = ((name, node) for name, reached in reach.items() for node in reached)
        _all_there("reach of", "storage node", pairs, storage, where)


def _unique(what: str, names: Sequence[str | int], where: str) -> set[str | int]:
    seen: set[str | int] = set()
    for name in names:
        if name in seen:
            raise DocumentError(f"{what} {name!r} appears twice", where=where, todo="leave one of them out")
        seen.add(name)
    return seen


def _all_there(
    what: str,
    kind: str,
    pairs: Iterable[tuple[str | int, str | int]],
    known: set[str | int],
    where: str,
) -> None:
    for name, wanted in pairs:
        if wanted not in known:
            owner = what if name == what else f"{what} {name!r}"
            raise DocumentError(
                f"{owner} names the {kind} {wanted!r}, which is not there",
                where=where,
                todo=f"add that {kind}",
            )
