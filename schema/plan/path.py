"""Plans of kind `path`: the forwarding nodes, storage nodes and targets of each job's I/O."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vani.schema.model import Model
from vani.schema.plan.any_plan import Amount, Count, Left, Plan, Share

__all__ = [
    "Balance",
    "Capacity",
    "Dimension",
    "Flow",
    "JobPath",
    "LayerLoads",
    "LayerName",
    "MappedNodes",
    "NodeLoad",
    "PathPlan",
    "PathSettings",
    "RequestSplit",
]

Capacity = Literal["binding", "eq1"]
Dimension = Literal["iobw", "iops", "mdops"]
LayerName = Literal["forwarding", "storage", "ost"]

AtLeastOne = Annotated[int, Field(ge=1)]


class PathSettings(Model):
    """The question that `vani plan path` answered."""

    capacity: Capacity = Field(
        description="capacity of a node: binding, the scarcest of its free bytes, operations and "
        "metadata operations per second; eq1, AIOT's equation 1 as printed, which counts bytes only"
    )
    exact: bool = Field(
        description="whether a maximum flow is computed where Algorithm 1 leaves demand unmet"
    )
    pack: bool = Field(
        description="whether a job stays on a node until that is full, which keeps jobs apart on few nodes, not "
        "until its load has grown into the next bucket"
    )
    metadata_share: Share | None = Field(
        description="P where requests are split; null: the job's own share of metadata operations"
    )


class Flow(Model):
    """A part of a job's demand and the nodes that it passes."""

    forwarding: str = Field(description="forwarding node")
    storage: str = Field(description="storage node")
    ost: Count = Field(description="index of the target")
    share: Share = Field(description="of the job's demand")


class MappedNodes(Model):
    """Consecutive compute nodes that use one forwarding node."""

    forwarding: str = Field(description="forwarding node")
    number: Count = Field(description="its place among the snapshot's forwarding nodes, from 0")
    first: Count = Field(description="number of the first of these nodes within the job, from 0")
    nodes: AtLeastOne = Field(description="how many there are")
    hosts: str | None = Field(
        description="their names, as Slurm writes lists; null: jobs.yaml does not name them"
    )


class RequestSplit(Model):
    """How a forwarding node that jobs share divides its service."""

    forwarding: str = Field(description="forwarding node")
    metadata_share: Share = Field(description="P: metadata and other requests are served as P : (1 - P)")


class JobPath(Model):
    """The share of one job."""

    name: str = Field(description="of the job")
    nodes: Count = Field(description="its compute nodes")
    iobw: Amount | None = Field(description="bytes per second that it needs; null: not known")
    iops: Amount | None = Field(description="data operations per second that it needs; null: not known")
    mdops: Amount | None = Field(
        description="metadata operations per second that it needs; null: not known"
    )
    binds: Dimension | None = Field(
        description="resource that forwarding nodes have least of, relative to the demand; null: no demand or no peaks"
    )
    flow: Share | None = Field(
        description="share of the demand that nodes can carry, by any paths of its compute nodes; null: no demand"
    )
    met: Share | None = Field(
        description="share that is carried with one forwarding node for each compute node: the sum of `flows`"
    )
    bound: Share | None = Field(
        default=None,
        description="share that no mapping with one forwarding node for each compute node exceeds; null: no demand",
    )
    flows: list[Flow] = Field(description="its parts")
    map: list[MappedNodes] = Field(description="a forwarding node for each compute node")
    request_split: list[RequestSplit] = Field(
        description="forwarding nodes that it shares with others and fills with metadata operations"
    )
    prefetch_chunk: Count | None = Field(
        description="bytes that its forwarding nodes read ahead of a file (equation 2); null: as it is"
    )
    stripe_count: AtLeastOne | None = Field(
        description="targets of each file that it creates; null: as it is"
    )
    stripe_size: AtLeastOne | None = Field(description="bytes of a stripe; null: as it is")
    dom: AtLeastOne | None = Field(
        default=None, description="bytes at the beginning of each file on the metadata target (DoM); null: none"
    )
    lines: list[str] = Field(default_factory=list, description="commands and hints that apply the settings")
    kept: list[Left] = Field(description="settings that stay as they are, and why")


class Balance(Model):
    """Population standard deviation of the loads of a layer / 0.5: 0 all equal, 1 half idle and half full."""

    forwarding: Share | None = Field(description="of the forwarding nodes; null: no loads")
    storage: Share | None = Field(description="of the storage nodes; null: no loads")
    ost: Share | None = Field(description="of the targets; null: no loads")


class NodeLoad(Model):
    """The load of a node that carries a part of the plan."""

    name: str = Field(description="of the node; the index of a target")
    before: Amount = Field(description="in the snapshot, 0..1")
    after: Amount = Field(
        description="with the jobs of the plan: more by the largest share of a peak that they take"
    )


class LayerLoads(Model):
    """One layer of the path."""

    layer: LayerName = Field(description="which")
    nodes: Count = Field(description="nodes that can be used")
    unused: Count = Field(description="nodes that cannot: not ok, or without a figure")
    largest_before: Amount | None = Field(description="largest load in the snapshot; null: no loads")
    largest_after: Amount | None = Field(description="largest load with the plan; null: no loads")
    loads: list[NodeLoad] = Field(description="of the nodes that carry something, in the snapshot's order")


class PathPlan(Plan):
    """The nodes that each job's I/O passes."""

    kind: Literal["path"] = Field(default="path", description="what is planned: I/O paths")
    path: PathSettings = Field(description="settings of the request")
    before: Balance = Field(description="load-balance index of each layer in the snapshot")
    after: Balance = Field(description="the same with the jobs of the plan")
    jobs: list[JobPath] = Field(description="in the order of jobs.yaml")
    layers: list[LayerLoads] = Field(description="forwarding nodes, storage nodes, targets")
