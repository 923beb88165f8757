"""system.yaml: the parts of a machine: nodes, file systems, burst buffers, forwarding nodes, network.

Figures without a source are null. `sources` names the source of each figure, by the key's path.
"""

import posixpath
from typing import Annotated, Literal

from pydantic import Field

from vani.schema.document import Document
from vani.schema.job import IN_MEMORY, is_below
from vani.schema.model import Model

Count = Annotated[int, Field(ge=0)]
Bytes = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(ge=0)]
Positive = Annotated[int, Field(gt=0)]


_MAX_RATE = 1e14
"""More no machine has, and sums of a machine's jobs stay integers of 64 bits."""


class Rates(Model):
    """Bytes per second by direction."""

    read: Rate | None = Field(default=None, description="bytes per second")
    write: Rate | None = Field(default=None, description="bytes per second")


class Compute(Model):
    """The compute nodes."""

    nodes: Count | None = Field(default=None, description="number of compute nodes of the whole machine")
    cores_per_node: Count | None = Field(default=None, description="number of cores (not hardware threads) per node")
    memory_per_node: Bytes | None = Field(default=None, description="bytes of memory per node")
    gpus_per_node: Count | None = Field(default=None, description="number of GPUs per node")


class StripingRule(Model):
    """The setting that the site recommends for single files above a size."""

    above: Bytes = Field(description="minimum file size in bytes to which the rule applies")
    stripe_count: int = Field(ge=-1, description="stripe count; -1 is all targets")
    stripe_size: Bytes | None = Field(default=None, description="stripe size in bytes")
    pool: str | None = Field(default=None, description="name of the target pool, which the command must give")
    reason: str | None = Field(default=None, description="reason given by the site, in one sentence")


class Pool(Model):
    """Targets of one kind under a name accepted by `lfs setstripe -p`."""

    name: str = Field(description="name given by the site")
    media: str | None = Field(default=None, description="storage medium, such as nvme or hdd")
    targets: Count | None = Field(default=None, description="number of targets (OSTs) in the pool")
    capacity: Bytes | None = Field(default=None, description="capacity in bytes")
    max_bandwidth: Rates = Field(default_factory=Rates, description="maximum bandwidth of the whole pool")


class StripePoint(Model):
    """Bandwidth measured on a number of targets."""

    stripe_count: Positive = Field(description="number of targets of the file")
    bandwidth: Annotated[float, Field(gt=0, le=_MAX_RATE, allow_inf_nan=False)] = Field(
        description="mean over the repetitions, bytes per second"
    )
    deviation: Annotated[float, Field(ge=0, le=_MAX_RATE, allow_inf_nan=False)] = Field(
        default=0.0, description="standard deviation of the repetitions, bytes per second"
    )


class StripeCurve(Model):
    """Bandwidth of files by the number of targets of each, and the conditions it was measured under."""

    operation: Literal["read", "write"] = Field(default="write", description="operation that was measured")
    calls: Literal["independent", "collective"] = Field(
        description="collective or independent calls of MPI-IO, or the calls of each process"
    )
    layout: Literal["shared", "file_per_process"] = Field(
        default="shared", description="one file per process, or one file shared by all"
    )
    order: Literal["contiguous", "strided"] = Field(
        default="contiguous",
        description="order of requests; strided: pieces smaller than a stripe alternate between the processes of a "
        "shared file",
    )
    nodes: Positive = Field(description="number of compute nodes of the job")
    processes_per_node: Positive | None = Field(default=None, description="number of processes per node")
    points: list[StripePoint] = Field(min_length=2, description="measurements, one per stripe count")


class FileSystem(Model):
    """A file system that all nodes share."""

    name: str = Field(description="name given by the site")
    type: str = Field(description="type of the file system: lustre, gpfs, beegfs, ceph, nfs, ...")
    mounts: list[str] = Field(default_factory=list, description="mount points on compute nodes")
    servers: Count | None = Field(default=None, description="number of data servers (OSS, NSD servers)")
    targets: Count | None = Field(default=None, description="number of targets (OSTs, NSDs, OSDs) over all servers")
    metadata_servers: Count | None = Field(default=None, description="number of metadata servers (MDS)")
    metadata_targets: Count | None = Field(default=None, description="number of metadata targets (MDTs)")
    capacity: Bytes | None = Field(default=None, description="capacity in bytes")
    bandwidth_per_target: Rates = Field(default_factory=Rates, description="bandwidth of one target")
    bandwidth_per_server: Rates = Field(default_factory=Rates, description="bandwidth of one data server")
    bandwidth_per_client: Rates = Field(
        default_factory=Rates,
        description="bandwidth of one compute node as a client, if it is below that of its network",
    )
    max_bandwidth: Rates = Field(default_factory=Rates, description="bandwidth of the whole file system")
    lock_transfer_s: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="seconds to pass a lock on a part of a shared file from one node to another"
    )
    metadata_ops_per_s: Rate | None = Field(
        default=None, description="metadata operations per second, over all servers"
    )
    metadata_capacity: Bytes | None = Field(default=None, description="total bytes of all metadata targets")
    metadata_free: Bytes | None = Field(default=None, description="free bytes on the metadata targets (`lfs df`)")
    metadata_load: Annotated[float, Field(ge=0, le=1)] | None = Field(
        default=None, description="share of the metadata servers' capacity for operations in use, 0..1"
    )
    version: str | None = Field(default=None, description="version of the server software, such as 2.15")
    stripe_count: int | None = Field(
        default=None, ge=-1, description="Lustre, CephFS: default stripe count; -1 is all targets"
    )
    stripe_size: Bytes | None = Field(
        default=None, description="Lustre: default stripe size; CephFS: default stripe unit, bytes"
    )
    object_size: Bytes | None = Field(default=None, description="CephFS: default object size, bytes")
    max_stripe_count: Count | None = Field(
        default=None, description="Lustre: largest stripe count that the site allows"
    )
    overstriping: bool | None = Field(
        default=None, description="Lustre: true if `lfs setstripe -C` works (2.13 and later)"
    )
    dom_size: Bytes | None = Field(
        default=None, description="Lustre: size of the largest Data-on-MDT component, bytes; 0 if DoM is off"
    )
    site_pfl: str | None = Field(
        default=None,
        description="Lustre: default composite layout (see `layout_policy` for whether the site wants it kept)",
    )
    layout_policy: Literal["keep", "free"] | None = Field(
        default=None,
        description="Lustre: policy of the site on manual layouts. keep: none except by `striping_rules`; free: users "
        "may set layouts; null: the site states no policy",
    )
    striping_rules: list[StripingRule] = Field(
        default_factory=list, description="Lustre: layouts that the site recommends setting manually, by file size"
    )
    stripe_curves: list[StripeCurve] = Field(
        default_factory=list,
        description="Lustre: bandwidth measured on this file system, one curve per access pattern (`vani systems "
        "detect --measure DIR --sweep`); used to choose the stripe count of shared files",
    )
    pools: list[Pool] = Field(
        default_factory=list, description="Lustre: pools of targets with different properties, the default pool first"
    )
    block_size: Bytes | None = Field(default=None, description="GPFS: block size in bytes")
    subblock_size: Bytes | None = Field(default=None, description="GPFS: size of the smallest allocation, bytes")
    note: str | None = Field(default=None, description="anything that advice should mention")


class BurstBuffer(Model):
    """Fast storage near the compute nodes."""

    name: str = Field(description="name used by users")
    kind: Literal["node_local", "shared"] = Field(description="scope: one node, or all nodes of the job")
    type: str = Field(description="tmpfs, nvme, datawarp, rabbit, beeond, ...")
    dir: str | None = Field(default=None, description="mount folder; may contain variables such as $USER")
    uses_memory: bool = Field(default=False, description="true if its bytes count against the memory of the job")
    capacity_per_node: Bytes | None = Field(default=None, description="capacity per node in bytes")
    capacity: Bytes | None = Field(default=None, description="capacity of the whole machine in bytes")
    bandwidth_per_node: Rates = Field(default_factory=Rates, description="bandwidth of one node")
    max_bandwidth: Rates = Field(default_factory=Rates, description="bandwidth of the whole machine")
    parallel_ops: Count | None = Field(default=None, description="number of operations at the same time, per node")
    request: list[str] = Field(default_factory=list, description="lines of a job script that request the burst buffer")

    @property
    def in_memory(self) -> bool:
        """Whether its files are in the node's memory, by its description or its type."""
        return self.uses_memory or self.type.lower() in IN_MEMORY


class CurvePoint(Model):
    """Bandwidth measured with a number of I/O nodes."""

    io_nodes: Count = Field(description="number of I/O nodes; 0 is direct access")
    bandwidth: Annotated[float, Field(gt=0, le=_MAX_RATE, allow_inf_nan=False)] = Field(
        description="mean over the repetitions, bytes per second"
    )
    deviation: Annotated[float, Field(ge=0, le=_MAX_RATE, allow_inf_nan=False)] = Field(
        default=0.0, description="standard deviation of the repetitions, bytes per second"
    )


class Curve(Model):
    """Bandwidth of one access pattern by number of I/O nodes, and the conditions it was measured under.

    A condition that is null is not known; such a curve decides nothing.
    """

    operation: Literal["read", "write"] | None = Field(default=None, description="operation that was measured")
    layout: Literal["file_per_process", "shared"] | None = Field(
        default=None, description="one file per process, or one file shared by all"
    )
    order: Literal["contiguous", "strided"] | None = Field(
        default=None, description="order of requests; strided: requests of the processes alternate in a shared file"
    )
    request: Positive | None = Field(default=None, description="size of one read or write in bytes")
    nodes: Positive | None = Field(default=None, description="number of compute nodes of the job")
    processes_per_node: Positive | None = Field(default=None, description="number of processes per node")
    points: list[CurvePoint] = Field(description="measurements, one per number of I/O nodes")

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
        description="kind of forwarding. gekkofwd, datawarp, ime: software whose nodes a job is assigned; io_nodes: "
        "file-system clients that serve fixed compute nodes (Blue Gene, Sunway); lnet_routers: routers of a Lustre "
        "network",
    )
    io_nodes: Count | None = Field(default=None, description="number of forwarding nodes (I/O nodes, LNet routers)")
    io_nodes_in_use: Count | None = Field(
        default=None, description="number of forwarding nodes in regular use; null if all are"
    )
    bandwidth_per_io_node: Rate | None = Field(default=None, description="bandwidth of one I/O node, bytes per second")
    compute_nodes_per_io_node: Count | None = Field(
        default=None, description="number of compute nodes that share an I/O node"
    )
    bridge_nodes_per_io_node: Count | None = Field(
        default=None, description="Blue Gene: number of bridge nodes in front of an I/O node"
    )
    link_bandwidth: Rate | None = Field(
        default=None, description="bandwidth of one link to an I/O node, bytes per second"
    )
    choices: list[Count] = Field(default_factory=list, description="numbers of I/O nodes that a job may be assigned")
    direct_access: bool | None = Field(default=None, description="true if jobs may bypass the I/O nodes")
    user_can_choose: bool | None = Field(default=None, description="true if users can set the number of I/O nodes")
    variable: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = Field(
        default=None, description="environment variable that sets the number of I/O nodes for a job"
    )
    site_can_set: list[Literal["prefetch_chunk", "request_split"]] = Field(
        default_factory=list,
        description="other settings that the site can make per job: read-ahead (prefetch_chunk), and the split of "
        "service between metadata and data requests (request_split)",
    )
    curves: list[Curve] = Field(
        default_factory=list, description="curves measured on this machine, one per access pattern"
    )

    @property
    def is_chosen_by_users(self) -> bool:
        """Whether a job's number of I/O nodes can be chosen; not for routers or nodes that serve fixed compute nodes.
        """
        return self.user_can_choose is True and self.kind not in {"io_nodes", "lnet_routers"}


class Network(Model):
    """Rates at which a compute node can send and receive."""

    type: str | None = Field(default=None, description="type of network, such as InfiniBand EDR")
    bandwidth_per_node: Rate | None = Field(default=None, description="bandwidth per node, bytes per second")


class System(Document):
    """A machine."""

    schema_: Literal["vani.system/2"] = Field(default="vani.system/2", alias="schema")
    name: str = Field(description="name of the machine")
    base: str | None = Field(
        default=None,
        description="bundled machine whose figures are used for anything that this document does not specify",
    )
    description: str | None = Field(default=None, description="description in one sentence")
    generic: bool = Field(
        False, description="true if the figures are typical values, not those of one machine; advice then says that"
    )
    scheduler: str | None = Field(default=None, description="batch scheduler: slurm, lsf, pbs, pjm or flux")
    launcher: str | None = Field(
        default=None,
        description="launcher of a job's processes, if it is not the scheduler's own, such as pals on HPE machines "
        "with PBS",
    )
    compute: Compute = Field(default_factory=Compute, description="compute nodes")
    file_systems: list[FileSystem] = Field(
        default_factory=list, description="shared file systems, scratch file system first"
    )
    burst_buffers: list[BurstBuffer] = Field(default_factory=list, description="burst buffers, nearest first")
    forwarding: Forwarding | None = Field(
        default=None, description="forwarding layer; null if compute nodes reach the servers directly"
    )
    network: Network = Field(default_factory=Network, description="network of the compute nodes")
    sources: dict[str, str] = Field(
        default_factory=dict, description="source of a figure, by path such as `file_systems[0].targets`"
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
