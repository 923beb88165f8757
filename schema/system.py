"""system.yaml: the parts of a machine: nodes, file systems, burst buffers, forwarding nodes, network.

Figures without a source are null. `sources` names the source of each figure, by the key's path.
"""

from __future__ import annotations

import posixpath
from typing import Annotated, Literal

from pydantic import Field

from vani.schema.document import Document
from vani.schema.job import is_below
from vani.schema.memory_file_systems import IN_MEMORY
from vani.schema.model import Model

__all__ = [
    "BurstBuffer",
    "Compute",
    "Curve",
    "CurvePoint",
    "FileSystem",
    "Forwarding",
    "Network",
    "Pool",
    "Rates",
    "StripeCurve",
    "StripePoint",
    "StripingRule",
    "System",
]

Count = Annotated[int, Field(ge=0)]
Bytes = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(ge=0)]
Positive = Annotated[int, Field(gt=0)]


_MOST_RATE = 1e14
"""More no machine has, and sums of a machine's jobs stay integers of 64 bits."""


class Rates(Model):
    """Bytes per second by direction."""

    read: Rate | None = Field(default=None, description="bytes per second")
    write: Rate | None = Field(default=None, description="bytes per second")


class Compute(Model):
    """The compute nodes."""

    nodes: Count | None = Field(default=None, description="compute nodes of the whole machine")
    cores_per_node: Count | None = Field(default=None, description="cores, not hardware threads")
    memory_per_node: Bytes | None = Field(default=None, description="bytes")
    gpus_per_node: Count | None = Field(default=None, description="GPUs")


class StripingRule(Model):
    """The setting that the site recommends for single files above a size."""

    above: Bytes = Field(description="size of one file in bytes from which on the rule applies")
    stripe_count: int = Field(ge=-1, description="-1 is all targets")
    stripe_size: Bytes | None = Field(default=None, description="bytes")
    pool: str | None = Field(default=None, description="pool of targets, which the command must name")
    reason: str | None = Field(default=None, description="the site's reason, in a sentence")


class Pool(Model):
    """Targets of one kind under a name accepted by `lfs setstripe -p`."""

    name: str = Field(description="the site's name for it")
    media: str | None = Field(default=None, description="storage medium, such as nvme or hdd")
    targets: Count | None = Field(default=None, description="targets (OSTs) in it")
    capacity: Bytes | None = Field(default=None, description="bytes")
    max_bandwidth: Rates = Field(default_factory=Rates, description="of the whole pool")


class StripePoint(Model):
    """Bandwidth measured on a number of targets."""

    stripe_count: Positive = Field(description="targets of the file")
    bandwidth: Annotated[float, Field(gt=0, le=_MOST_RATE, allow_inf_nan=False)] = Field(
        description="mean over the repetitions, bytes per second"
    )
    deviation: Annotated[float, Field(ge=0, le=_MOST_RATE, allow_inf_nan=False)] = Field(
        default=0.0, description="standard deviation of the repetitions, bytes per second"
    )


class StripeCurve(Model):
    """Bandwidth of files by the number of targets of each, and the conditions it was measured under."""

    operation: Literal["read", "write"] = Field(default="write", description="what was measured")
    calls: Literal["independent", "collective"] = Field(description="of MPI-IO, or what each process does by itself")
    layout: Literal["shared", "file_per_process"] = Field(
        default="shared", description="one file of all processes, or a file each"
    )
    order: Literal["contiguous", "strided"] = Field(
        default="contiguous",
        description="strided: pieces of less than a stripe alternate between the processes of a shared file",
    )
    nodes: Positive = Field(description="compute nodes of the job")
    processes_per_node: Positive | None = Field(default=None, description="on each of them")
    points: list[StripePoint] = Field(min_length=2, description="one for each stripe count of a file")


class FileSystem(Model):
    """A file system that all nodes share."""

    name: str = Field(description="the site's name for it")
    type: str = Field(description="lustre, gpfs, beegfs, nfs, ...")
    mounts: list[str] = Field(default_factory=list, description="mount points on compute nodes")
    servers: Count | None = Field(default=None, description="data servers (OSS, NSD servers)")
    targets: Count | None = Field(default=None, description="targets (OSTs, NSDs) over all servers")
    metadata_servers: Count | None = Field(default=None, description="metadata servers (MDS)")
    metadata_targets: Count | None = Field(default=None, description="metadata targets (MDTs)")
    capacity: Bytes | None = Field(default=None, description="bytes")
    bandwidth_per_target: Rates = Field(default_factory=Rates, description="of one target")
    bandwidth_per_server: Rates = Field(default_factory=Rates, description="of one data server")
    bandwidth_per_client: Rates = Field(
        default_factory=Rates, description="of one compute node as a client, where it is below its network's"
    )
    max_bandwidth: Rates = Field(default_factory=Rates, description="of the whole file system")
    lock_transfer_s: Annotated[float, Field(ge=0)] | None = Field(
        default=None,
        description="seconds until a lock on a part of a shared file has passed from one node to another",
    )
    metadata_ops_per_s: Rate | None = Field(
        default=None, description="metadata operations per second, all servers"
    )
    metadata_capacity: Bytes | None = Field(default=None, description="bytes of all metadata targets")
    metadata_free: Bytes | None = Field(
        default=None, description="bytes free on the metadata targets (`lfs df`)"
    )
    metadata_load: Annotated[float, Field(ge=0, le=1)] | None = Field(
        default=None, description="share of the metadata servers' operations that is in use, 0..1"
    )
    version: str | None = Field(default=None, description="of the servers' software, such as 2.15")
    stripe_count: int | None = Field(default=None, ge=-1, description="Lustre: default; -1 is all targets")
    stripe_size: Bytes | None = Field(default=None, description="Lustre: default, bytes")
    max_stripe_count: Count | None = Field(default=None, description="Lustre: the most that the site allows")
    overstriping: bool | None = Field(
        default=None, description="Lustre: `lfs setstripe -C` works (2.13 and later)"
    )
    dom_size: Bytes | None = Field(
        default=None, description="Lustre: largest Data-on-MDT component, bytes; 0 is off"
    )
    site_pfl: str | None = Field(
        default=None,
        description="Lustre: default composite layout; `layout_policy` states whether the site asks to keep it",
    )
    layout_policy: Literal["keep", "free"] | None = Field(
        default=None,
        description="Lustre: keep: the site asks to set no layout by hand except by `striping_rules`; free: users "
        "may; null: the site gives no rule",
    )
    striping_rules: list[StripingRule] = Field(
        default_factory=list, description="Lustre: layouts that the site asks to set by hand, by file size"
    )
    stripe_curves: list[StripeCurve] = Field(
        default_factory=list,
        description="Lustre: measured on this file system, each for one pattern (`vani systems detect --measure DIR "
        "--sweep`); they decide how many targets advice gives a shared file",
    )
    pools: list[Pool] = Field(
        default_factory=list, description="Lustre: pools of targets, where they differ, the default one first"
    )
    block_size: Bytes | None = Field(default=None, description="GPFS: bytes")
    subblock_size: Bytes | None = Field(default=None, description="GPFS: smallest allocation, bytes")
    note: str | None = Field(default=None, description="anything that advice should repeat")


class BurstBuffer(Model):
    """Fast storage near the compute nodes."""

    name: str = Field(description="its name for users")
    kind: Literal["node_local", "shared"] = Field(description="seen by one node, or by all nodes of the job")
    type: str = Field(description="tmpfs, nvme, datawarp, rabbit, beeond, ...")
    dir: str | None = Field(default=None, description="folder; may contain variables such as $USER")
    uses_memory: bool = Field(
        default=False, description="true where its bytes are taken from the job's memory"
    )
    capacity_per_node: Bytes | None = Field(default=None, description="bytes")
    capacity: Bytes | None = Field(default=None, description="bytes over the whole machine")
    bandwidth_per_node: Rates = Field(default_factory=Rates, description="of one node")
    max_bandwidth: Rates = Field(default_factory=Rates, description="over the whole machine")
    parallel_ops: Count | None = Field(default=None, description="operations at the same time, per node")
    request: list[str] = Field(default_factory=list, description="job script lines that request it")

    @property
    def in_memory(self) -> bool:
        """Whether its files are in the node's memory, by its description or its type."""
        return self.uses_memory or self.type.lower() in IN_MEMORY


class CurvePoint(Model):
    """Bandwidth measured with a number of I/O nodes."""

    io_nodes: Count = Field(description="I/O nodes; 0 is direct access")
    bandwidth: Annotated[float, Field(gt=0, le=_MOST_RATE, allow_inf_nan=False)] = Field(
        description="mean over the repetitions, bytes per second"
    )
    deviation: Annotated[float, Field(ge=0, le=_MOST_RATE, allow_inf_nan=False)] = Field(
        default=0.0, description="standard deviation of the repetitions, bytes per second"
    )


class Curve(Model):
    """Bandwidth of one access pattern by number of I/O nodes, and the conditions it was measured under.

    A condition that is null is not known; such a curve decides nothing.
    """

    operation: Literal["read", "write"] | None = Field(default=None, description="what was measured")
    layout: Literal["file_per_process", "shared"] | None = Field(
        default=None, description="a file each, or one file of all processes"
    )
    order: Literal["contiguous", "strided"] | None = Field(
        default=None, description="strided: the processes' requests to a shared file alternate"
    )
    request: Positive | None = Field(default=None, description="bytes of one read or write")
    nodes: Positive | None = Field(default=None, description="compute nodes of the job")
    processes_per_node: Positive | None = Field(default=None, description="on each of them")
    points: list[CurvePoint] = Field(description="one for each number of I/O nodes")

    @property
    def is_complete(self) -> bool:
        """Whether all conditions are known. Files per process have no order."""
        order = self.order if self.layout == "shared" else "contiguous"
        known = (self.operation, self.layout, order, self.request, self.nodes, self.processes_per_node)
        return None not in known


class Forwarding(Model):
    """Nodes between the compute nodes and the file system that do their I/O."""

    kind: Literal["gekkofwd", "datawarp", "ime", "io_nodes", "lnet_routers"] | None = Field(
        default=None,
        description="gekkofwd, datawarp, ime: software whose nodes a job is given; io_nodes: clients of the file "
        "system that serve fixed compute nodes (Blue Gene, Sunway); lnet_routers: routers of a Lustre network",
    )
    io_nodes: Count | None = Field(default=None, description="forwarding nodes (I/O nodes, LNet routers)")
    io_nodes_in_use: Count | None = Field(
        default=None, description="of these in daily use; null where all are"
    )
    bandwidth_per_io_node: Rate | None = Field(default=None, description="bytes per second")
    compute_nodes_per_io_node: Count | None = Field(default=None, description="compute nodes that share one")
    bridge_nodes_per_io_node: Count | None = Field(
        default=None, description="Blue Gene: bridge nodes before one"
    )
    link_bandwidth: Rate | None = Field(default=None, description="of one link to it, bytes per second")
    choices: list[Count] = Field(default_factory=list, description="numbers of I/O nodes a job may be given")
    direct_access: bool | None = Field(default=None, description="true where jobs may bypass them")
    user_can_choose: bool | None = Field(default=None, description="true where a user can set the number")
    variable: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = Field(
        default=None, description="environment variable by which a user sets the number for a job"
    )
    site_can_set: list[Literal["prefetch_chunk", "request_split"]] = Field(
        default_factory=list,
        description="other settings of the forwarding nodes for a job: how far they read ahead, and how they "
        "divide their service between metadata and data",
    )
    curves: list[Curve] = Field(
        default_factory=list, description="measured on this machine, each for one access pattern"
    )

    @property
    def is_chosen_by_users(self) -> bool:
        """Whether a job's number of I/O nodes can be chosen; not for routers or nodes that serve fixed compute nodes.
        """
        return self.user_can_choose is True and self.kind not in {"io_nodes", "lnet_routers"}


class Network(Model):
    """Rates at which a compute node can send and receive."""

    type: str | None = Field(default=None, description="such as InfiniBand EDR")
    bandwidth_per_node: Rate | None = Field(default=None, description="bytes per second")


class System(Document):
    """A machine."""

    schema_: Literal["vani.system/2"] = Field(default="vani.system/2", alias="schema")
    name: str = Field(description="name of the machine")
    base: str | None = Field(
        default=None, description="bundled machine whose figures apply where this document has none"
    )
    description: str | None = Field(default=None, description="one sentence")
    generic: bool = Field(
        False, description="true where the figures are typical values and not from one machine; advice then states that"
    )
    scheduler: str | None = Field(default=None, description="of jobs: slurm, lsf, pbs, pjm or flux")
    launcher: str | None = Field(
        default=None,
        description="launcher of a job's processes, if not the scheduler's own: pals on HPE machines with PBS",
    )
    compute: Compute = Field(default_factory=Compute, description="compute nodes")
    file_systems: list[FileSystem] = Field(
        default_factory=list, description="shared file systems, scratch first"
    )
    burst_buffers: list[BurstBuffer] = Field(default_factory=list, description="nearest first")
    forwarding: Forwarding | None = Field(
        default=None, description="null where compute nodes reach the servers directly"
    )
    network: Network = Field(default_factory=Network, description="network of the compute nodes")
    sources: dict[str, str] = Field(
        default_factory=dict,
        description="where a figure comes from, by path, such as `file_systems[0].targets`",
    )

    def file_system_for(self, path: str) -> FileSystem | None:
        """Find the shared file system that contains `path`: the one with the longest mount point above it.

        None if no mount contains it, or if a burst buffer below that mount does.
        """
        mounts: list[tuple[int, FileSystem | None]] = [
            (_depth(mount), system)
            for system in self.file_systems
            for mount in system.mounts
            if is_below(path, mount)
        ]
        mounts += [(_depth(near.dir), None) for near in self.burst_buffers if _holds(near, path)]
        return max(mounts, key=lambda mount: mount[0], default=(0, None))[1]

    def burst_buffer_for(self, path: str) -> BurstBuffer | None:
        """Find the burst buffer that contains `path`."""
        return next((near for near in self.burst_buffers if _holds(near, path)), None)

    def file_system(self, type: str, *, under: str | None = None) -> FileSystem | None:
        """Find a file system of a type (such as `lustre`): the one that contains `under`, otherwise the first."""
        if under is not None:
            mounted = self.file_system_for(under)
            return mounted if mounted is not None and mounted.type == type else None
        return next((system for system in self.file_systems if system.type == type), None)

    def node_local(self) -> BurstBuffer | None:
        """The nearest storage of a node itself."""
        return next((near for near in self.burst_buffers if near.kind == "node_local"), None)

    def source_of(self, path: str) -> str | None:
        """Return the source of the figure at `path`: its own, otherwise that of the enclosing part."""
        while path:
            if path in self.sources:
                return self.sources[path]
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return None


def _depth(mount: str | None) -> int:
    return len(posixpath.normpath(mount or "").rstrip("/"))


def _holds(near: BurstBuffer, path: str) -> bool:
    """Folders with variables cover everything below their fixed part."""
    fixed = (near.dir or "").split("$")[0]
    return bool(fixed.strip("/")) and is_below(path, fixed)
