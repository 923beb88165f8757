"""Storage of the data (tables VIII and IX)."""

from typing import ClassVar

from pydantic import Field

from vani.schema.memory_file_systems import IN_MEMORY
from vani.schema.model import Model, SparseModel
from vani.schema.profile.quantities import Bytes, Count, Rate, Seconds


class NodeLocalStorage(Model):
    """Storage on the node (table VIII)."""

    dir: str | None = Field(description="mount point")
    type: str | None = Field(
        default=None,
        description="file-system or device type: nvme, xfs, ...; tmpfs and ramfs use the memory of the node, not a "
        "disk",
    )
    capacity_per_node: Bytes | None = Field(description="capacity per node")
    parallel_ops: Count | None = Field(description="number of operations served at the same time")
    max_bandwidth_per_node: Rate | None = Field(description="maximum bandwidth per node")

    @property
    def in_memory(self) -> bool:
        """Whether its files are in the node's memory."""
        return self.type is not None and self.type.lower() in IN_MEMORY


class SharedStorage(Model):
    """The file system that stores the data (table IX)."""

    type: str | None = Field(description="file-system type: lustre, gpfs, nfs, ...")
    dir: str | None = Field(description="mount point")
    parallel_servers: Count | None = Field(description="number of data servers")
    capacity: Bytes | None = Field(description="total capacity")
    max_bandwidth: Rate | None = Field(description="maximum bandwidth of the file system")


class TargetUse(Model):
    """One storage target, and the files on it."""

    target: Count = Field(description="index of the target in the file system, as printed by `lfs osts`")
    files: Count = Field(description="number of data-set files with a stripe on the target")
    bytes: Bytes = Field(
        description="bytes moved on the target, with the bytes of each file divided equally among its targets"
    )
    read_s: Seconds = Field(description="time per process in all reads of such a file, mean over the files")
    write_s: Seconds = Field(description="time per process in all writes of such a file, mean over the files")


class Mount(SparseModel):
    """A mounted file system that the run used, as the trace recorded it."""

    optional_keys: ClassVar[tuple[str, ...]] = (
        "used_targets",
        "median_read_s",
        "median_write_s",
        "slowest_targets",
    )

    dir: str = Field(description="mount point")
    type: str = Field(description="file-system type in lower case: lustre, gpfs, nfs, ext4, ...")
    targets: Count | None = Field(
        default=None, description="number of Lustre storage targets (OSTs); null if the trace does not give it"
    )
    used_targets: Count | None = Field(
        default=None,
        description="number of targets with a data-set file; left out, with the keys below, if the trace does not "
        "show the targets of files",
    )
    median_read_s: Seconds | None = Field(default=None, description="median `read_s` of the used targets")
    median_write_s: Seconds | None = Field(default=None, description="median `write_s` of the used targets")
    slowest_targets: list[TargetUse] | None = Field(
        default=None, description="up to ten of the used targets with most time per file, slowest first"
    )


class Storage(Model):
    """Tables VIII and IX, and the file systems that the run used."""

    node_local: NodeLocalStorage = Field(description="storage on the compute node")
    shared: SharedStorage = Field(description="file system that stores the data")
    mounts: list[Mount] | None = Field(
        default=None,
        description="every file system with a data-set file, as recorded in the trace; overrides --system; null if "
        "the source has no mount table",
    )
