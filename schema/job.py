"""job.yaml: facts that only the running job knows: its size, its limits, its mounts, its data set.

A person may write a file with few keys by hand; `vani collect` writes all of them. Null is "not known", and `unknown`
gives the reason; an empty list is "known that there is none".
"""

import posixpath
from functools import cached_property
from typing import Annotated, Final, Literal

from pydantic import Field

from vani.schema.dataset_facts import Compression, Distribution, FormatAttributes
from vani.schema.document import Document
from vani.schema.model import Model

IN_MEMORY: Final = ("tmpfs", "ramfs", "rootfs")
"""Types of file systems whose files are in the node's memory; the root of a node without disks may be `rootfs`."""


Count = Annotated[int, Field(ge=0)]
Bytes = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]


_FAMILIES: Final = {
    "nfs4": "nfs", "fhgfs": "beegfs", "smb3": "cifs", "fuse.dfuse": "daos",
    "fuse.ceph": "ceph", "fuse.ceph-fuse": "ceph",
}  # fmt: skip


def family_of_mount(kind: str) -> str:
    """The file system behind the kernel's name of a mount's type, such as `ceph` for `fuse.ceph-fuse`."""
    return _FAMILIES.get(kind.lower(), kind.lower().removeprefix("fuse."))


class Mount(Model):
    """A file system that the job sees."""

    dir: str = Field(description="mount point")
    type: str = Field(
        description="file-system type as named by the kernel: lustre, gpfs, beegfs, nfs4, tmpfs, xfs, ..."
    )
    device: str | None = Field(default=None, description="device of the mount, such as `10.0.0.1@o2ib:/scratch`")
    capacity: Bytes | None = Field(default=None, description="total bytes")
    free: Bytes | None = Field(default=None, description="bytes that the user can still write")


class Lustre(Model):
    """Settings of a Lustre mount, from `lfs`."""

    dir: str = Field(description="mount point")
    layout_dir: str | None = Field(
        default=None,
        description="folder whose default layout this is: the data folder, else the job's working folder, else the "
        "mount point",
    )
    stripe_count: int | None = Field(
        default=None, ge=-1, description="default stripe count of that folder; -1 is all targets"
    )
    stripe_size: Bytes | None = Field(default=None, description="default stripe size of that folder, bytes")
    layout: str | None = Field(
        default=None, description="composite default layout as `-E ... -c ...`; null if the layout is not composite"
    )
    osts: Count | None = Field(default=None, description="number of object storage targets")
    mdts: Count | None = Field(default=None, description="number of metadata targets")
    capacity: Bytes | None = Field(default=None, description="total bytes over all targets")
    free: Bytes | None = Field(default=None, description="free bytes over all targets")
    mdt_capacity: Bytes | None = Field(default=None, description="total bytes over all metadata targets")
    mdt_free: Bytes | None = Field(default=None, description="free bytes over all metadata targets")


class CephLayout(Model):
    """Layout of a file on CephFS: its bytes go round a set of objects, then round the next set."""

    stripe_unit: Bytes = Field(description="consecutive bytes in one object")
    stripe_count: Count = Field(description="number of objects that are filled in turn")
    object_size: Bytes = Field(description="bytes of a full object")
    pool: str | None = Field(default=None, description="name of the pool of the objects")


class Ceph(Model):
    """Layout and targets of a CephFS mount, from extended attributes and `ceph`."""

    dir: str = Field(description="mount point")
    layout_dir: str | None = Field(
        default=None, description="folder whose new files get this layout, chosen as for Lustre"
    )
    layout: CephLayout | None = Field(
        default=None, description="layout of that folder, or of the nearest one above that has its own"
    )
    pools: list[str] | None = Field(default=None, description="names of the pools for data")
    osds: Count | None = Field(
        default=None, description="number of object storage daemons (OSDs) of the cluster that are in use"
    )


class Gpfs(Model):
    """Settings of a GPFS (Storage Scale) mount, from `mmlsfs`."""

    dir: str = Field(description="mount point")
    device: str = Field(description="name of the file system")
    block_size: Bytes | None = Field(default=None, description="block size in bytes")
    subblock_size: Bytes | None = Field(default=None, description="size of the smallest allocation, bytes")
    version: str | None = Field(default=None, description="version of the file-system format")


class Limits(Model):
    """The part of a node that the job may use."""

    cpus: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="number of cores allowed by the CPU quota of the cgroup"
    )
    affinity_cpus: Count | None = Field(default=None, description="number of logical CPUs on which the process may run")
    memory: Bytes | None = Field(default=None, description="memory limit of the cgroup, bytes")
    cgroup: Literal[1, 2] | None = Field(default=None, description="version of the control groups")


class DatasetFile(Model):
    """A file of the data set as it was when `vani collect` ran."""

    path: str = Field(description="absolute path")
    size: Bytes = Field(description="file size in bytes")
    format: str | None = Field(default=None, description="file format: hdf5, netcdf, npz, fits, ..., bin")
    dims: list[int] | None = Field(default=None, description="shape of the (largest) array in the file")
    attributes: FormatAttributes | None = Field(
        default=None,
        description="attributes of the array; null if the format's header is not read or describes no array",
    )


class FileAfter(Model):
    """A file of a traced run as it was when the run ended."""

    path: str = Field(description="absolute path")
    size: Bytes = Field(description="file size in bytes")
    allocated: Bytes = Field(description="bytes on disk, without holes and space that is only reserved")
    allocated_before: Bytes | None = Field(
        default=None, description="bytes on disk before the run; 0 for a file that the run created, null if unknown"
    )
    layout: CephLayout | None = Field(default=None, description="layout on CephFS; null elsewhere")


class DatasetSample(Model):
    """The data set, or a bounded sample of it."""

    root: str = Field(description="folder that was searched")
    files: list[DatasetFile] = Field(default_factory=list, description="files that are listed individually")
    count: Count = Field(default=0, description="number of files seen")
    formats: dict[str, Count] = Field(default_factory=dict, description="number of listed files by format")
    total_size: Bytes = Field(default=0, description="total bytes of all files seen")
    sampled: bool = Field(
        default=False, description="true if a limit ended the search, so that there may be more files"
    )
    distribution: Distribution | None = Field(
        default=None, description="statistical distribution of the values in the files"
    )
    compression: Compression | None = Field(
        default=None, description="compression ratio and speed measured on a sample of the files"
    )
    problems: list[str] = Field(default_factory=list, description="folders and files that could not be read")


class Job(Document):
    """One job of a batch system (table II), as it sees itself."""

    schema_: Literal["vani.job/1"] = Field(default="vani.job/1", alias="schema")
    scheduler: str | None = Field(
        default=None, description="batch scheduler: slurm, lsf, pbs, flux; null if none was detected"
    )
    job_id: str | None = Field(default=None, description="job ID given by the scheduler")
    nodes: Count | None = Field(default=None, description="number of compute nodes of the job")
    node_list: list[str] | None = Field(default=None, description="host names, one per node")
    processes: Count | None = Field(default=None, description="number of processes (tasks, ranks) of the job")
    processes_per_node: list[Count] | None = Field(
        default=None, description="number of processes on each node, in the order of the nodes"
    )
    cpu_cores_per_node: Count | None = Field(
        default=None, description="number of cores per node; the job's share if it shares nodes"
    )
    gpus_per_node: Count | None = Field(default=None, description="number of GPUs per node that the job may use")
    memory_per_node: Bytes | None = Field(default=None, description="bytes of memory per node that the job may use")
    memory_used_per_node: Bytes | None = Field(
        default=None,
        description="bytes of memory in use on the node where `vani collect` ran; while the program runs, its own",
    )
    time_limit_s: Seconds | None = Field(default=None, description="time limit in seconds")
    node_local_bb_dirs: list[str] | None = Field(default=None, description="folders on node-local storage")
    node_local_memory_dirs: list[str] | None = Field(
        default=None, description="mount points of file systems in node memory (tmpfs, ramfs)"
    )
    shared_bb_dirs: list[str] | None = Field(default=None, description="folders on a burst buffer that nodes share")
    pfs_dirs: list[str] | None = Field(default=None, description="mount points of parallel file systems")
    apps: dict[str, str] = Field(default_factory=dict, description="app name by name of the trace directory")
    limits: Limits = Field(default_factory=Limits, description="resource limits within a node")
    mounts: list[Mount] | None = Field(default=None, description="file systems that store data")
    lustre: list[Lustre] | None = Field(default=None, description="Lustre file systems, one entry per mount")
    ceph: list[Ceph] | None = Field(default=None, description="CephFS file systems, one entry per mount")
    gpfs: list[Gpfs] | None = Field(default=None, description="GPFS file systems, one entry per mount")
    dataset: DatasetSample | None = Field(default=None, description="input data as it was before the run")
    files_after: list[FileAfter] = Field(
        default_factory=list, description="files of the data set as `vani trace` found them after the run"
    )
    unknown: dict[str, str] = Field(default_factory=dict, description="reason why a field is null, by field name")

    @cached_property
    def _files(self) -> dict[str, DatasetFile]:
        return {posixpath.normpath(f.path): f for f in self.dataset.files} if self.dataset else {}

    def file_at(self, path: str) -> DatasetFile | None:
        """Find the file at `path`; None where the data set does not contain it.

        A relative `path` is taken from the root of the data set.
        """
        if self.dataset is None:
            return None
        return self._files.get(posixpath.normpath(posixpath.join(self.dataset.root, path)))

    def size_of(self, path: str) -> int | None:
        """Return the size in bytes that the file at `path` had; None where the data set does not contain it."""
        file = self.file_at(path)
        return None if file is None else file.size

    def mount_of(self, path: str) -> Mount | None:
        """Find the mount that contains `path`: the one with the longest mount point above it."""
        holding = [mount for mount in self.mounts or () if is_below(path, mount.dir)]
        return max(holding, key=lambda mount: len(mount.dir.rstrip("/")), default=None)


def is_below(path: str, folder: str) -> bool:
    """Return whether `path` is `folder` or is inside it, by name only."""
    path, folder = posixpath.normpath(path), posixpath.normpath(folder).rstrip("/")
    return path == folder or path.startswith(folder + "/")
