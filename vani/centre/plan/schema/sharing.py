"""sharing.yaml: pools of I/O nodes, who may use them, and whose bandwidth counts more, as `vani plan job` reads it.

A centre writes it once. A reservation is a pool, too: of I/O nodes by name, for the jobs of an account or a QOS.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from vani.centre.plan.schema.jobs import Name, Weight
from vani.errors import DocumentError
from vani.schema.document import Document
from vani.schema.model import Model

PathText = Annotated[str, Field(min_length=1, max_length=4096)]
Names = Annotated[list[Name], Field(min_length=1, max_length=10_000)]


class JobPool(Model):
    """I/O nodes, and the jobs that share them: jobs that match every given list."""

    name: Name = Field(description="name of the pool in plans and in the log; unique in the document")
    file_system: str | None = Field(
        default=None, description="file system that the I/O nodes serve; null if not stated"
    )
    partitions: Names | None = Field(
        default=None, description="partitions or queues whose jobs use the pool; null for all"
    )
    accounts: Names | None = Field(default=None, description="accounts whose jobs use the pool; null for all")
    qos: Names | None = Field(default=None, description="qualities of service whose jobs use the pool; null for all")
    io_nodes: Annotated[int, Field(ge=0, le=100_000)] | Names | None = Field(
        default=None,
        description="I/O nodes of the pool: names, which no other pool may use, or a maximum number; null uses all "
        "remaining ones",
    )
    snapshot: PathText | None = Field(
        default=None,
        description="path of the machine's snapshot, relative to this document's folder; null uses that of the command",
    )
    hosts_file: PathText | None = Field(
        default=None,
        description="path of the GekkoFS hosts file, relative to this document's folder; null uses that of the command",
    )

    def takes(self, *, partition: str | None, account: str | None, qos: str | None) -> bool:
        """Whether the pool serves this job; a job without an account is in no list of accounts."""
        lists = ((self.partitions, partition), (self.accounts, account), (self.qos, qos))
        return all(names is None or value in names for names, value in lists)


class SharingSettings(Document):
    """Sharing of I/O nodes among the jobs of a centre."""

    schema_: Literal["vani.sharing/1"] = Field(
        alias="schema", default="vani.sharing/1", description="name and version of this schema"
    )
    weights: Annotated[dict[Name, Weight], Field(max_length=10_000)] = Field(
        default_factory=dict,
        description="weight by QOS of a job's bandwidth in the sum that mckp maximizes; 1 for all other QOS",
    )
    pools: Annotated[list[JobPool], Field(max_length=1000)] = Field(
        default_factory=list,
        description="pools; a job uses the first one that accepts it; empty if all jobs share one pool",
    )

    def weight_of(self, qos: str | None) -> float:
        """The weight of a job."""
        return 1.0 if qos is None else self.weights.get(qos, 1.0)

    def refuse_twins(self, where: str) -> None:
        """Raise DocumentError if two pools share a name or an I/O node; errors call the document `where`."""
        names = (pool.name for pool in self.pools)
        nodes = (node for pool in self.pools if isinstance(pool.io_nodes, list) for node in pool.io_nodes)
        for what, some in (("pools are named", names), ("pools have the I/O node", nodes)):
            twin = _twin(some)
            if twin is not None:
                raise DocumentError(f"two {what} {twin!r}", where=where, todo="name it once")


def _twin(names: Iterable[str]) -> str | None:
    return next((name for name, number in Counter(names).items() if number > 1), None)
