"""Where the data lies (tables VIII and IX)."""

from pydantic import Field

from vani.schema.memory_file_systems import IN_MEMORY
from vani.schema.model import Model
from vani.schema.profile.quantities import Bytes, Count, Rate

__all__ = ["Mount", "NodeLocalStorage", "SharedStorage", "Storage"]


class NodeLocalStorage(Model):
    """Storage on the node (table VIII)."""

    dir: str | None = Field(description="where it is mounted")
    type: str | None = Field(
        default=None, description="nvme, xfs, ...; tmpfs and ramfs are memory of the node, not a disk"
    )
    capacity_per_node: Bytes | None = Field(description="its size")
    parallel_ops: Count | None = Field(description="operations that it serves at a time")
    max_bandwidth_per_node: Rate | None = Field(description="what it delivers at most")

    @property
    def in_memory(self) -> bool:
        """Whether files there lie in the node's memory."""
        return self.type is not None and self.type.lower() in IN_MEMORY


class SharedStorage(Model):
    """The file system that the data lies on (table IX)."""

    type: str | None = Field(description="lustre, gpfs, nfs, ...")
    dir: str | None = Field(description="where it is mounted")
    parallel_servers: Count | None = Field(description="servers of data")
    capacity: Bytes | None = Field(description="its size")
    max_bandwidth: Rate | None = Field(description="what it delivers at most")


class Mount(Model):
    """A mounted file system that the run used, as the trace recorded it."""

    dir: str = Field(description="mount point")
    type: str = Field(description="lustre, gpfs, nfs, ext4, ... in lower case")
    targets: Count | None = Field(
        default=None, description="storage targets (OSTs) of Lustre; null where the trace does not give them"
    )


class Storage(Model):
    """Tables VIII and IX, and the file systems that the run used."""

    node_local: NodeLocalStorage = Field(description="on the compute node")
    shared: SharedStorage = Field(description="the file system that the data lies on")
    mounts: list[Mount] | None = Field(
        default=None,
        description="every file system with a file of the data set, as the trace recorded it; it overrides --system; "
        "null where the source has no mount table",
    )
