"""The storage, the data set and its files."""

from typing import ClassVar, Literal

from pydantic import Field

from vani.schema.dataset_facts import Compression, Distribution, FormatAttributes
from vani.schema.job import IN_MEMORY
from vani.schema.model import Model, SparseModel
from vani.schema.profile.iostats import (
    AtLeastOne,
    ByteCounts,
    Bytes,
    Count,
    IOStats,
    LayerName,
    Rate,
    Seconds,
)


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
        default=None,
        description="number of storage targets (OSTs of Lustre, OSDs of CephFS); null if neither the trace nor "
        "job.yaml gives it",
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


Access = Literal["shared", "file_per_process"]
Role = Literal["input", "output", "intermediate", "temporary"]


class SizeDistribution(Model):
    """Sizes of the data set's files, where the size is known."""

    known: Count = Field(description="number of files whose size is known")
    min: Bytes | None = Field(description="smallest size")
    p50: Bytes | None = Field(description="median size")
    p90: Bytes | None = Field(description="90th percentile: nine in ten files are at most this large")
    max: Bytes | None = Field(description="largest size")
    histogram: dict[str, Count] = Field(description="number of files by size, in bins [low, high)")


class Dataset(SparseModel):
    """All files of the data set (table X)."""

    optional_keys: ClassVar[tuple[str, ...]] = ("compression",)

    format: dict[str, Count] | None = Field(description="number of files by format")
    size: Bytes | None = Field(description="sum of the known file sizes")
    files: Count | None = Field(
        description="number of files in the data set; null where the source does not show which names belong to the "
        "same file"
    )
    io: IOStats = Field(description="I/O on these files")
    roles: dict[str, Count] | None = Field(
        description="number of files by role; null where the role of some file is unknown"
    )
    size_distribution: SizeDistribution | None = Field(description="distribution of the file sizes")
    distribution: Distribution | None = Field(
        default=None,
        description="statistical distribution of the values in a sample of the files (table VI), from job.yaml",
    )
    compression: Compression | None = Field(
        default=None,
        description="compression ratio and speed measured on a sample of the files, from job.yaml; null, and left "
        "out, where nothing was measured",
    )


class FileEntity(SparseModel):
    """A file (table XI)."""

    optional_keys: ClassVar[tuple[str, ...]] = (
        "stripe_count",
        "stripe_size",
        "components",
        "direct_opens",
        "synchronous_opens",
        "synchronous_writes",
        "generations",
        "object_size",
    )

    path: str = Field(description="absolute path, symbolic links not resolved; for a renamed file, its last name")
    format: str | None = Field(
        description="file format, from the magic bytes if the file still exists, else from the library that accessed "
        "it and the file name suffix"
    )
    size: Bytes | None = Field(
        description="size at the end of the run, from job.yaml and the recorded writes and truncations; null if the "
        "file was only read, was created without a recorded write, or was written at unrecorded offsets"
    )
    role: Role | None = Field(
        description="role in the run. temporary: removed at the end; intermediate: written by one process or app, "
        "later read by another; output: written, truncated or created; input: only read; null: only opened, or the "
        "order of calls is unknown"
    )
    access: Access = Field(description="shared: used by two or more processes; file_per_process: used by one")
    processes: Count = Field(description="number of processes that opened or accessed the file")
    readers: Count = Field(description="number of processes that read the file")
    writers: Count = Field(description="number of processes that wrote the file")
    opens: Count = Field(description="number of times the file was opened")
    direct_opens: AtLeastOne | None = Field(
        default=None,
        description="number of opens with O_DIRECT; null, and left out, if there are none or the source does not "
        "record open flags",
    )
    synchronous_opens: AtLeastOne | None = Field(
        default=None,
        description="number of opens with O_SYNC or O_DSYNC, which make each write wait until the data is on storage; "
        "null, and left out, under the same conditions as `direct_opens`",
    )
    synchronous_writes: AtLeastOne | None = Field(
        default=None,
        description="number of writes that certainly go through descriptors with one of these flags: where the source "
        "follows descriptors, those of each; else all writes of files that every open opens so; null, and left out, "
        "if there are none",
    )
    generations: AtLeastOne | None = Field(
        default=None,
        description="number of files that had this name one after the other: renamed to it, or made after it was "
        "removed; the other figures cover all; null, and left out, for one",
    )
    interface: LayerName | None = Field(description="layer through which most accesses to the file were made")
    stride: int | None = Field(
        default=None, description="distance in bytes between the starts of consecutive strided operations"
    )
    stripe_count: AtLeastOne | None = Field(
        default=None,
        description="number of Lustre targets of the file, or of CephFS objects filled in turn; for a composite "
        "layout, of the component that contains the end of the file; null, and left out like `stripe_size` and "
        "`components`, if no source gives the layout",
    )
    stripe_size: AtLeastOne | None = Field(
        default=None,
        description="stripe size of the same layout component, or the stripe unit on CephFS; null under the same "
        "conditions as `stripe_count`",
    )
    components: AtLeastOne | None = Field(
        default=None,
        description="number of layout components, more than one for a composite layout; null under the same "
        "conditions as `stripe_count`",
    )
    object_size: AtLeastOne | None = Field(
        default=None, description="bytes of a full object on CephFS; null, and left out, for other file systems"
    )
    apps: list[str] = Field(description="names of the apps that used the file")
    io: IOStats = Field(description="I/O on the file")
    first_s: Seconds | None = Field(description="start of the first call on the file")
    last_s: Seconds | None = Field(description="end of the last call on the file")
    format_attributes: FormatAttributes | None = Field(
        default=None,
        description="arrays, dimensions, data type, encoding and chunks, from job.yaml, else from the calls that "
        "created them",
    )

    def keys_left_out(self) -> tuple[str, ...]:
        """All keys of the layout if it is unknown, and each later optional key without a value."""
        layout, opens = self.optional_keys[:3], self.optional_keys[3:]
        unknown = () if any(getattr(self, name) for name in layout) else layout
        return (*unknown, *(name for name in opens if not getattr(self, name)))


class Folder(Model):
    """A folder with files of the data set."""

    path: str = Field(description="absolute path, written as in the paths of its files")
    files: Count = Field(
        description="number of data-set files directly in the folder, including files that the profile does not list"
    )
    creates: Count | None = Field(
        description="number of these files that the run created (or emptied); null if a source does not record creation"
    )
    entries: Count = Field(description="number of these files plus direct subfolders that contain data-set files")
    bytes: ByteCounts = Field(description="bytes moved or requested in these files")
    metadata_time_s: Seconds | None = Field(
        description="time in metadata operations on these files, summed; null if time stamps were not read"
    )
    time_s: Seconds | None = Field(
        default=None,
        description="time in all calls on these files, summed; null if time stamps were not read, or in documents of "
        "an older Vani",
    )
    opens: Count | None = Field(
        default=None, description="number of times these files were opened; null in documents of an older Vani"
    )
    removes: Count | None = Field(
        default=None,
        description="number of these files that the run removed; null if a source does not record removal, or in "
        "documents of an older Vani",
    )
    makers: Count | None = Field(
        default=None,
        description="lower bound on the number of processes that created (or emptied) these files: if several created "
        "the same file, only the first and the last rank count; null if a source does not record which process did",
    )
    sizes: SizeDistribution | None = Field(
        default=None, description="distribution of the known sizes of these files; null if none is known"
    )


class LookUp(SparseModel):
    """A folder in which names were looked up: by opens and stats that failed, or by stats of names never opened."""

    optional_keys: ClassVar[tuple[str, ...]] = ("search_path",)

    folder: str = Field(
        description="absolute path, with `%d` and `*` for what varies in similar folders; for a search path, the "
        "folder that contains its folders"
    )
    folders: Count = Field(description="number of folders")
    names: Count = Field(description="number of names that were looked up")
    calls: Count = Field(description="number of look-ups")
    failed: Count | None = Field(
        description="number of look-ups that found nothing; null if the tracer does not record which calls failed"
    )
    most: Count = Field(description="most look-ups of one name per process; where several look it up, at least so many")
    listings: Count = Field(description="number of times the folder was opened to list it")
    time_s: Seconds | None = Field(
        description="time of the look-ups, summed over processes; null if time stamps were not read"
    )
    excluded_s: Seconds | None = Field(
        description="part of `time_s` that no I/O time contains, since the names are no files of the data set; null if "
        "time stamps were not read"
    )
    search_path: list[str] | None = Field(
        default=None,
        description="the first forty folders that a loader searched for libraries or modules, in this order; null, and "
        "left out, if none did",
    )


class Lock(Model):
    """A function that locks files."""

    call: str = Field(description="name of the function: flock, lockf or fcntl (only its commands for locks)")
    calls: Count = Field(description="number of calls that lock, unlock or query a lock")
    time_s: Seconds | None = Field(
        description="time in these calls, which includes waiting, summed over processes; null if time stamps were not "
        "read"
    )
    failed: dict[str, Count] | None = Field(
        description="number of calls that failed by error, such as EAGAIN or ENOLCK; `unknown` if the tracer does not "
        "name it; null if it does not record which calls failed"
    )
    files: list[str] = Field(description="paths of up to three files with most of this time")


class Excluded(Model):
    """Calls on paths outside the data set, or whose file cannot be known (contract, "file")."""

    files: Count = Field(description="number of paths that are not files of a data set")
    io: IOStats = Field(description="I/O on these paths, and calls whose file cannot be determined")
