"""Plans of kind `path`: the forwarding nodes, storage nodes and targets of each job's I/O."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vani.centre.plan.schema.any_plan import Amount, Count, Left, Plan, Share
from vani.schema.model import Model

Capacity = Literal["binding", "eq1"]
Dimension = Literal["iobw", "iops", "mdops"]
LayerName = Literal["forwarding", "storage", "ost"]

AtLeastOne = Annotated[int, Field(ge=1)]


class PathSettings(Model):
    """The question that `vani plan path` answered."""

    capacity: Capacity = Field(
        description="capacity measure of a node. binding: the scarcest of its free bytes, operations and metadata "
        "operations per second; eq1: AIOT's equation 1 as printed, which counts bytes only"
    )
    exact: bool = Field(description="true if a maximum flow is computed when Algorithm 1 leaves demand unmet")
    pack: bool = Field(
        description="true if a job stays on a node until it is full, which confines jobs to few nodes; false if it "
        "moves on when the load reaches the next bucket"
    )
    metadata_share: Share | None = Field(
        description="P where requests are split; null uses the job's own share of metadata operations"
    )


class Flow(Model):
    """A part of a job's demand and the nodes that it passes."""

    forwarding: str = Field(description="forwarding node")
    storage: str = Field(description="storage node")
    ost: Count = Field(description="index of the storage target")
    share: Share = Field(description="share of the job's demand")


class MappedNodes(Model):
    """Consecutive compute nodes that use one forwarding node."""

    forwarding: str = Field(description="forwarding node")
    number: Count = Field(description="position among the snapshot's forwarding nodes, from 0")
    first: Count = Field(description="number of the first of these nodes within the job, from 0")
    nodes: AtLeastOne = Field(description="number of compute nodes")
    hosts: str | None = Field(description="node names as a Slurm host list; null if jobs.yaml does not name them")


class RequestSplit(Model):
    """How a forwarding node that jobs share divides its service."""

    forwarding: str = Field(description="forwarding node")
    metadata_share: Share = Field(description="P: metadata and other requests are served in the ratio P : (1 - P)")


class JobPath(Model):
    """The share of one job."""

    name: str = Field(description="name of the job")
    nodes: Count = Field(description="number of compute nodes of the job")
    iobw: Amount | None = Field(description="required bandwidth, bytes per second; null if unknown")
    iops: Amount | None = Field(description="required data operations per second; null if unknown")
    mdops: Amount | None = Field(description="required metadata operations per second; null if unknown")
    binds: Dimension | None = Field(
        description="scarcest resource of the forwarding nodes, relative to the demand; null without demand or peaks"
    )
    flow: Share | None = Field(
        description="share of the demand that nodes can carry over any paths from the job's compute nodes; null "
        "without demand"
    )
    met: Share | None = Field(
        description="share of the demand carried with one forwarding node per compute node: the sum of `flows`"
    )
    bound: Share | None = Field(
        default=None,
        description="upper bound on the share that any mapping with one forwarding node per compute node can carry; "
        "null without demand",
    )
    flows: list[Flow] = Field(description="flows that make up `met`")
    map: list[MappedNodes] = Field(description="forwarding node of each compute node")
    request_split: list[RequestSplit] = Field(
        description="forwarding nodes shared with other jobs that this job fills with metadata operations"
    )
    prefetch_chunk: Count | None = Field(
        description="bytes that the forwarding nodes read ahead of a file (equation 2); null leaves it unchanged"
    )
    stripe_count: AtLeastOne | None = Field(
        description="number of targets of each file that the job creates; null leaves it unchanged"
    )
    stripe_size: AtLeastOne | None = Field(description="stripe size in bytes; null leaves it unchanged")
    dom: AtLeastOne | None = Field(
        default=None,
        description="bytes at the start of each file stored on the metadata target (DoM); null if there are none",
    )
    lines: list[str] = Field(default_factory=list, description="commands and hints that apply these settings")
    kept: list[Left] = Field(description="settings that stay unchanged, and why")


class Balance(Model):
    """Population standard deviation of the loads of a layer / 0.5: 0 all equal, 1 half idle and half full."""

    forwarding: Share | None = Field(description="index of the forwarding nodes; null without loads")
    storage: Share | None = Field(description="index of the storage nodes; null without loads")
    ost: Share | None = Field(description="index of the storage targets; null without loads")


class NodeLoad(Model):
    """The load of a node that carries a part of the plan."""

    name: str = Field(description="name of the node, or index of the target")
    before: Amount = Field(description="load in the snapshot, 0..1")
    after: Amount = Field(
        description="load with the jobs of the plan, 0..1: increased by the largest share of any peak rate that they "
        "use"
    )


class LayerLoads(Model):
    """One layer of the path."""

    layer: LayerName = Field(description="name of the layer")
    nodes: Count = Field(description="number of usable nodes")
    unused: Count = Field(description="number of unusable nodes: not ok, or without figures")
    largest_before: Amount | None = Field(description="largest load in the snapshot; null without loads")
    largest_after: Amount | None = Field(description="largest load with the plan; null without loads")
    loads: list[NodeLoad] = Field(description="loads of the nodes that carry something, in the order of the snapshot")


class PathPlan(Plan):
    """The nodes that each job's I/O passes."""

    kind: Literal["path"] = Field(default="path", description="kind of plan: I/O paths")
    path: PathSettings = Field(description="settings of the request")
    before: Balance = Field(description="load-balance index of each layer in the snapshot")
    after: Balance = Field(description="load-balance index of each layer with the jobs of the plan")
    jobs: list[JobPath] = Field(description="jobs in the order of jobs.yaml")
    layers: list[LayerLoads] = Field(description="loads of the forwarding nodes, storage nodes and targets")
