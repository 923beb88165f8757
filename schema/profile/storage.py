"""Storage of the data (tables VIII and IX)."""

from typing import ClassVar

from pydantic import Field

from vani.schema.memory_file_systems import IN_MEMORY
from vani.schema.model import Model, SparseModel
from vani.schema.profile.quantities import Bytes, Count, Rate, Seconds

__all__ = ["Mount", "NodeLocalStorage", "SharedStorage", "Storage", "TargetUse"]


class NodeLocalStorage(Model):
    """Storage on the node (table VIII)."""

    dir: str | None = Field(description="where it is mounted")
    type: str | None = Field(
        default=None, description="nvme, xfs, ...; tmpfs and ramfs are memory of the node, not a disk"
    )
    capacity_per_node: Bytes | None = Field(description="its size")
    parallel_ops: Count | None = Field(description="operations that it serves at a time")
    max_bandwidth_per_node: Rate | None = Field(description="its highest rate")

    @property
    def in_memory(self) -> bool:
        """Whether its files are in the node's memory."""
        return self.type is not None and self.type.lower() in IN_MEMORY


class SharedStorage(Model):
    """The file system that stores the data (table IX)."""

    type: str | None = Field(description="lustre, gpfs, nfs, ...")
    dir: str | None = Field(description="where it is mounted")
    parallel_servers: Count | None = Field(description="servers of data")
    capacity: Bytes | None = Field(description="its size")
    max_bandwidth: Rate | None = Field(description="its highest rate")


class TargetUse(Model):
    """One storage target, and the files on it."""

    target: Count = Field(description="its number on the file system, as `lfs osts` prints it")
    files: Count = Field(description="files of the data set with a stripe on it")
    bytes: Bytes = Field(description="that were moved, each target of a file an equal share of the file's")
    read_s: Seconds = Field(description="time in all reads of such a file, of one process; mean over the files")
    write_s: Seconds = Field(description="the same of writes")


class Mount(SparseModel):
    """A mounted file system that the run used, as the trace recorded it."""

    optional_keys: ClassVar[tuple[str, ...]] = (
        "used_targets",
        "median_read_s",
        "median_write_s",
        "slowest_targets",
    )

    dir: str = Field(description="mount point")
    type: str = Field(description="lustre, gpfs, nfs, ext4, ... in lower case")
    targets: Count | None = Field(
        default=None, description="storage targets (OSTs) of Lustre; null where the trace does not give them"
    )
    used_targets: Count | None = Field(
        default=None,
        description="targets with a file of the data set; absent, with the keys that follow, where the trace does not "
        "show which files are on which targets",
    )
    median_read_s: Seconds | None = Field(default=None, description="median of `read_s` over the used targets")
    median_write_s: Seconds | None = Field(default=None, description="median of `write_s` over the used targets")
    slowest_targets: list[TargetUse] | None = Field(
        default=None, description="at most ten of the used targets, those with most time per file first"
    )


class Storage(Model):
    """Tables VIII and IX, and the file systems that the run used."""

    node_local: NodeLocalStorage = Field(description="on the compute node")
    shared: SharedStorage = Field(description="the file system that stores the data")
    mounts: list[Mount] | None = Field(
        default=None,
        description="every file system with a file of the data set, as the trace recorded it; it overrides --system; "
        "null where the source has no mount table",
    )
