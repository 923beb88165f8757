"""profile.yaml: what a workload does to storage, as entities and attributes (tables II to XI of the Vani paper).

An attribute that could not be found is null, never a guess and never 0; `provenance` says why, by attribute path.
Times are null in a profile that was made without reading time stamps (`vani profile --quick`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from vani.schema.base import Model
from vani.schema.dataset_facts import Distribution, FormatAttributes
from vani.schema.extensions import extension_rows
from vani.schema.memory_file_systems import IN_MEMORY

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "App",
    "ByKind",
    "CallCost",
    "Dataset",
    "Dominant",
    "Excluded",
    "FileCounts",
    "FileEntity",
    "Folder",
    "IOStats",
    "Interface",
    "LibraryTime",
    "MetadataCost",
    "MetadataKinds",
    "Phase",
    "Profile",
    "Repeats",
    "Sizes",
    "TraceEntity",
    "Workflow",
]

Count = Annotated[int, Field(ge=0)]
Bytes = Annotated[int, Field(ge=0, description="bytes")]
Seconds = Annotated[float, Field(ge=0, description="seconds")]
Share = Annotated[float, Field(ge=0, le=1, description="share, 0..1")]
Rate = Annotated[float, Field(ge=0, description="bytes per second")]
Access = Literal["shared", "file_per_process"]
Role = Literal["input", "output", "intermediate", "temporary"]
LayerName = Literal["posix", "stdio", "mpiio", "hdf5", "pnetcdf", "netcdf", "mpi", "gpu", "user"]


class ByteCounts(Model):
    """Bytes that calls moved, or asked for where the trace stores no return values."""

    read: Bytes | None = Field(description="by read calls")
    written: Bytes | None = Field(description="by write calls")
    total: Bytes | None = Field(description="both; null as soon as one of them is")


class Footprint(Model):
    """Distinct bytes of files touched: union of the extents over all processes."""

    read: Bytes | None = Field(description="distinct bytes that were read")
    written: Bytes | None = Field(description="distinct bytes that were written")


class PastEnd(Model):
    """Bytes requested beyond the end of the file; null where no end is known."""

    read: Bytes | None = Field(
        description="by reads, a lower bound: as far as writes, truncations and known sizes show the ends"
    )


class OpCounts(Model):
    """Number of file-system calls."""

    read: Count = Field(description="calls that read")
    write: Count = Field(description="calls that write")
    metadata: Count = Field(description="all other calls: open, close, seek, stat, mkdir, ...")
    sync: Count | None = Field(
        default=None,
        description="calls that flush: fsync, fdatasync, fflush, msync, sync_file_range; "
        "null in a document of vani.profile/1, which counted them as metadata",
    )

    @property
    def all(self) -> int:
        """Calls of every kind."""
        return self.read + self.write + self.metadata + (self.sync or 0)


class ByKind(Model):
    """Seconds by kind of call. A moment in which two kinds overlap is in both; `total` counts it once.

    All are null where time stamps were not read.
    """

    read: Seconds | None = Field(description="in calls that read")
    write: Seconds | None = Field(description="in calls that write")
    metadata: Seconds | None = Field(description="in all other calls")
    sync: Seconds | None = Field(default=None, description="in calls that flush")
    total: Seconds | None = Field(description="in any of them")


class KindShares(Model):
    """Shares of data, metadata and flushing operations, which add up to 1."""

    data: Share = Field(description="reads and writes")
    metadata: Share = Field(description="everything else")
    sync: Share | None = Field(
        default=None,
        description="flushing; null in a document of vani.profile/1, which counted it as metadata",
    )


class Bandwidth(Model):
    """Bytes per second of the time in which at least one process read (wrote)."""

    read: Rate | None = Field(description="null without a read, or where no time passed")
    write: Rate | None = Field(description="null without a write, or where no time passed")
    write_synced: Rate | None = Field(
        default=None,
        description="bytes written by the time in which at least one process wrote or flushed; null without a flush",
    )


class CallCost(Model):
    """A function, what its calls cost and what they moved."""

    name: str | None = Field(description="the function, as the trace names it; null: all others together")
    count: Count = Field(description="calls")
    time_s: Seconds | None = Field(
        description="length of its calls, added up; null where time stamps were not read"
    )
    bytes: Bytes | None = Field(description="what they moved or asked for; null where they move no data")


class MetadataCost(Model):
    """Metadata operations of one kind."""

    count: Count = Field(description="calls")
    time_s: Seconds | None = Field(description="length of the calls, added up; null where it was not read")


class MetadataKinds(Model):
    """Metadata operations by what they do; they add up to `ops.metadata`."""

    open: MetadataCost = Field(description="open, creat, fopen, fdopen")
    close: MetadataCost = Field(description="close, fclose")
    stat: MetadataCost = Field(description="stat, access, readlink and their kin")
    seek: MetadataCost = Field(description="lseek, fseek, ftell, rewind")
    directory: MetadataCost = Field(description="mkdir, rmdir, opendir, readdir, chdir")
    remove: MetadataCost = Field(description="unlink, remove, rename")
    other: MetadataCost = Field(description="truncate, fcntl, chmod, dup, mmap and everything else")


class Sizes(Model):
    """Sizes of the data operations of one direction."""

    min: Bytes | None = Field(description="smallest")
    p50: Bytes | None = Field(description="median")
    p90: Bytes | None = Field(description="nine in ten are at most this large")
    max: Bytes | None = Field(description="largest")
    common: list[tuple[Bytes, Count]] = Field(description="most common sizes, exact: [size, operations]")
    histogram: dict[str, Count] = Field(
        description="operations by size, bins [low, high); adds up to the operations"
    )


class TransferSizes(Model):
    """Sizes by direction; null where there is no operation."""

    read: Sizes | None = Field(description="sizes of reads")
    write: Sizes | None = Field(description="sizes of writes")


class AccessPattern(Model):
    """Shares of data operations, per process and file, which add up to 1."""

    consecutive: Share = Field(description="begins where the one before ended")
    sequential: Share = Field(description="begins further on")
    strided: Share = Field(
        description="begins at a constant distance from the one before, three times or more"
    )
    random: Share = Field(description="anything else")


class IOStats(Model):
    """The block that every entity has. File-system calls only, each counted once."""

    bytes: ByteCounts = Field(description="what calls moved or asked for")
    footprint: Footprint = Field(description="distinct bytes touched")
    past_end: PastEnd = Field(description="asked for in vain")
    ops: OpCounts = Field(description="number of calls")
    time_s: ByKind = Field(description="per process the union of its calls' intervals, summed over processes")
    busy_s: ByKind = Field(description="union of the calls' intervals over all processes")
    ops_share: KindShares | None = Field(
        description="data, metadata and flushing by number of calls; null without calls"
    )
    time_share: KindShares | None = Field(
        description="data, metadata and flushing by time; null where no time passed"
    )
    bandwidth: Bandwidth = Field(description="rate while at least one process read (wrote)")
    transfer_size: TransferSizes = Field(description="sizes of data operations")
    access_pattern: AccessPattern | None = Field(
        description="where data operations begin; null without a data operation"
    )
    calls: list[CallCost] | None = Field(
        default=None,
        description="the twenty functions that cost most time (most calls where no time is known), "
        "then all others together",
    )
    metadata_kinds: MetadataKinds | None = Field(
        default=None, description="metadata operations by what they do; null without one"
    )


class LibraryTime(Model):
    """Time in the calls of an I/O library that no call of the same library surrounds."""

    total: Seconds = Field(description="per process the union of the calls' intervals, summed over processes")
    outside_file_system: Seconds = Field(
        description="the part of it that is not in file-system calls made under them: exchange, waiting, packing"
    )
    slowest: Seconds = Field(description="of the process that spends most time in them")


class Generator(Model):
    """The program that wrote the profile."""

    name: str = Field(description="vani")
    version: str = Field(description="its version")


class TraceEntity(Model):
    """One trace directory."""

    path: str = Field(description="where it lay, absolute")
    tool: str = Field(description="who wrote it: recorder, recorder2parquet or wisio")
    format: str = Field(description="version that the trace claims")
    layout: str | None = Field(
        default=None, description="layout on disk, where the format's number does not tell"
    )
    app: str = Field(description="name of the executable")
    ranks: Count = Field(description="processes of the run")
    records: Count = Field(description="calls in the trace, of all layers")
    functions: dict[str, Count] = Field(description="records by function, most frequent first")
    start_unix_s: Seconds | None = Field(
        default=None, description="wall clock at the start, since 1970; null where it is not stored"
    )
    span_s: Seconds | None = Field(default=None, description="end of the last call, by the rank's own clock")
    repaired_times: Count | None = Field(
        default=0, description="negative time stamps that were repaired; null where none was read"
    )
    clock_skew_s: Seconds | None = Field(
        default=None, description="least disagreement of the ranks' clocks that collective calls prove"
    )
    complete: bool | None = Field(
        description="nothing had to be left out; null where nothing was so far, but time stamps were not read"
    )
    problems: list[str] = Field(description="what was damaged, and what was left out for it")


class JobEntity(Model):
    """Job configuration (table II)."""

    nodes: Count | None = Field(description="nodes of the job")
    cpu_cores_per_node: Count | None = Field(description="cores of a node")
    gpus_per_node: Count | None = Field(description="GPUs of a node")
    node_local_bb_dirs: list[str] | None = Field(description="directories of burst buffers on the node")
    shared_bb_dirs: list[str] | None = Field(description="directories of shared burst buffers")
    pfs_dirs: list[str] | None = Field(description="directories of parallel file systems")
    time_limit_s: Seconds | None = Field(description="what the scheduler allows")
    scheduler: str | None = Field(description="slurm, lsf, pbs or flux")
    memory_per_node: Bytes | None = Field(default=None, description="main memory of a node")


class FileCounts(Model):
    """Files of the data set by how many processes used them; null where which names are one file is not known."""

    total: Count | None = Field(description="all")
    shared: Count | None = Field(description="used by two or more processes of the workload")
    file_per_process: Count | None = Field(description="used by one process")


class AppDependency(Model):
    """Files of which one app read bytes that another had written last."""

    producer: str = Field(description="app that wrote")
    consumer: str = Field(description="app that read later")
    files: Count = Field(
        description="files through which it depends: by the bytes that were moved, else by having been used"
    )
    files_by_extents: Count | None = Field(
        default=None,
        description="of these, files for which extents prove it: what was read had been written by the producer; null "
        "where extents were too many to keep",
    )
    bytes_written: Bytes | None = Field(
        description="into them by the producer; null where the trace does not have all calls that moved them"
    )
    bytes_read: Bytes | None = Field(
        description="from them by the consumer; null where the trace does not have all calls that moved them"
    )


class Workflow(Model):
    """The whole workload (table III)."""

    apps: Count = Field(description="different executables")
    processes: Count = Field(description="ranks of all traces")
    cpu_cores_used_per_node: Count | None = Field(description="cores with a process")
    gpus_used_per_node: Count | None = Field(description="GPUs that processes were given")
    runtime_s: Seconds | None = Field(description="from the first trace's start to the last call's end")
    io: IOStats = Field(description="all I/O of the workload")
    files: FileCounts = Field(description="files of the data set")
    app_dependencies: list[AppDependency] | None = Field(
        description="which apps read what others wrote; null where the order of calls is not known"
    )
    io_time_share: Share | None = Field(
        default=None,
        description="time in which any process is in a file-system call (`io.busy_s.total`) / `runtime_s`",
    )
    io_time_share_slowest: Share | None = Field(
        default=None,
        description="I/O time of the slowest process (the largest `apps[].balance.slowest_io_time_s`) / `runtime_s`",
    )
    library_time_s: dict[LayerName, LibraryTime] | None = Field(
        default=None, description="by I/O library, seconds; empty where none was called"
    )


Pattern = Literal["none", "one_to_many", "many_to_one", "neighbour", "all_to_all", "irregular"]
_SHAPE = "shape of the graph: none, one to many, many to one, neighbours, all to all, or irregular"


class FileLevelDependencies(Model):
    """The coarser graph: files that one process wrote before another one of the app read them, whichever bytes."""

    edges: Count = Field(description="pairs (writer, reader)")
    files: Count = Field(description="files of such a pair")
    pattern: Pattern = Field(description=_SHAPE)


class ProcessDependencies(Model):
    """Processes of an app that read what another one had written last.

    A process that reads again only what it wrote itself depends on none. Where calls do not tell which bytes they
    moved (appended data of unknown place, formatted output), it is enough that one wrote the file and the other read
    it later.
    """

    edges: Count = Field(description="pairs (writer, reader)")
    edges_by_extents: Count | None = Field(
        default=None,
        description="of these, pairs that extents prove; the others are known by the file only. Null where extents "
        "were too many to keep",
    )
    files: Count = Field(description="files through which processes depend")
    pattern: Pattern = Field(description=_SHAPE)
    file_level: FileLevelDependencies | None = Field(
        default=None, description="the coarser graph; null in documents of older versions"
    )


class RankBalance(Model):
    """How evenly I/O is spread over the processes of an app."""

    slowest_rank: Count | None = Field(description="rank with most I/O time")
    slowest_io_time_s: Seconds | None = Field(description="its I/O time")
    slowest_call_rank: Count | None = Field(
        default=None, description="rank with most time in I/O calls of any kind, those of libraries included"
    )
    slowest_call_time_s: Seconds | None = Field(
        default=None,
        description="its time in them: of each outermost call, library's or file-system's, all of it",
    )
    mean_io_time_s: Seconds | None = Field(description="mean over all processes")
    median_io_time_s: Seconds | None = Field(description="median over all processes")
    busiest_rank: Count = Field(description="rank that moved the most bytes")
    busiest_bytes: Bytes = Field(description="what it moved")
    mean_bytes: float = Field(description="bytes, mean over all processes")
    reading_processes: Count = Field(description="processes that read")
    writing_processes: Count = Field(description="processes that write")


class App(Model):
    """One executable (table IV); traces of one name are its instances."""

    name: str = Field(description="from job.yaml, else from the trace's directory")
    instances: Count = Field(description="traces of this name")
    processes: Count = Field(description="ranks of all instances")
    runtime_s: Seconds | None = Field(description="from its first instance's start to its last one's end")
    interface: LayerName | None = Field(description="the layer through which most bytes (else calls) went")
    io: IOStats = Field(description="its I/O")
    files: FileCounts = Field(description="files of the data set that it used")
    process_dependencies: ProcessDependencies | None = Field(
        description="between its own processes; null where the order of calls is not known"
    )
    balance: RankBalance | None = Field(description="null without I/O")
    io_time_share: Share | None = Field(
        description="time in which any of its processes is in a file-system call (`io.busy_s.total`) / `runtime_s`"
    )
    phase_gap_s: Seconds | None = Field(
        description="pauses of all processes longer than this separate phases; shorter ones do, too, where most "
        "processes begin anew"
    )
    library_time_s: dict[LayerName, LibraryTime] | None = Field(
        default=None, description="by I/O library, seconds; empty where none was called"
    )


class Frequency(Model):
    """How a phase's operations come (table V)."""

    kind: Literal["single", "iterative", "bulk"] = Field(
        description="single: at most one data operation a process; bulk: back to back; "
        "iterative: with pauses between"
    )
    ops_per_process: float = Field(description="data operations / processes that take part, each time")
    size: Bytes | None = Field(description="most common size of its data operations")


class Repeats(Model):
    """How often phases come that are alike."""

    count: Annotated[int, Field(ge=1)] = Field(description="number of phases")
    period_s: Seconds | None = Field(
        description="median of the times from the start of one to the start of the next; null for a single one, "
        "or where they come at no steady distance"
    )


class Dominant(Model):
    """What most of the I/O time went to."""

    kind: Literal["read", "write", "metadata", "sync"] = Field(description="kind of call")
    share: Share = Field(description="its share of the times of all kinds")


class Phase(Model):
    """A stretch of an app's timeline in which its processes do I/O (table V), or several that are alike.

    Phases are apart where no process is in a call for longer than `apps[].phase_gap_s`, where most processes begin the
    same anew after a pause of at least 10 ms, and where they turn from reading to writing or back.
    """

    app: str = Field(description="its app")
    index: Count = Field(description="number within its app, from 0")
    start_s: Seconds = Field(description="start of the first, since the workload began")
    end_s: Seconds = Field(description="end of the last, since the workload began")
    runtime_s: Seconds = Field(description="length of all of them together")
    repeats: Repeats | None = Field(
        default=None,
        description="how many phases this is, and how far apart; null for a document of an older version: one",
    )
    kind: Literal["write", "read", "mixed", "metadata"] = Field(
        description="what 95 % of its data operations and bytes do, else mixed; metadata without any, or where "
        "metadata takes 95 % of its I/O time and a quarter of its calls at most move data"
    )
    dominant: Dominant | None = Field(
        default=None, description="what most of its I/O time went to; null where no time passed"
    )
    processes: Count = Field(description="processes that take part, the most of all repetitions")
    io: IOStats = Field(description="I/O of all repetitions together")
    frequency: Frequency = Field(description="how its operations come")

    @property
    def count(self) -> int:
        """How many phases this is."""
        return self.repeats.count if self.repeats is not None else 1

    @property
    def spans(self) -> list[tuple[float, float]]:
        """(start, end) of each repetition in seconds, taken as equally long and evenly spaced."""
        if self.count == 1:
            return [(self.start_s, self.end_s)]
        length = self.runtime_s / self.count
        apart = (self.end_s - length - self.start_s) / (self.count - 1)
        return [(self.start_s + i * apart, self.start_s + i * apart + length) for i in range(self.count)]


class Granularity(Model):
    """Typical size of file-system transfers made under a layer."""

    data: Bytes | None = Field(description="size that moves most bytes")
    metadata: Bytes | None = Field(
        description="most common size of at most a tenth of that: what moves beside the data"
    )


class DataRepresentation(Model):
    """How the data looks to the library."""

    dims: Count | None = Field(description="dimensions of a dataset or variable")
    chunked: bool | None = Field(default=None, description="stored in chunks")


class Interface(Model):
    """A library layer in use by an app (tables VI and VII)."""

    layer: LayerName = Field(description="the library")
    app: str = Field(description="its app")
    granularity: Granularity = Field(description="size of transfers")
    access_pattern: Literal["consecutive", "sequential", "strided", "random"] | None = Field(
        description="where most data operations under it begin"
    )
    data_representation: DataRepresentation = Field(description="null where the trace does not show it")
    calls: Count = Field(description="calls of the library")
    bytes: ByteCounts = Field(description="of file-system calls made under it")
    files: Count | None = Field(
        description="data-set files accessed through it; null where times alone tell who called whom"
    )
    time_s: Seconds | None = Field(
        description="in its calls that no call of the same library surrounds, summed over processes"
    )
    collective_share: Share | None = Field(
        default=None, description="share of its data calls that are collective"
    )
    transfer: Literal["collective", "independent", "mixed"] | None = Field(
        default=None,
        description="how its data calls are made; of HDF5 without a call that sets it as MPI-IO's are",
    )
    hints: dict[str, str] | None = Field(default=None, description="MPI-IO hints that the program set")


class Middleware(Model):
    """Libraries between the program and the file system, and the resources that are left for them (table VII)."""

    extra_cores_per_node: Count | None = Field(description="cores of a node without a process of the job")
    memory_per_node: Bytes | None = Field(description="main memory of a node")
    libraries: list[str] | None = Field(
        description="I/O libraries in use; null where the source does not tell"
    )
    granularity: Granularity | None = Field(
        default=None,
        description="size of the transfers that the libraries make to the file system",
    )
    access_pattern: Literal["consecutive", "sequential", "strided", "random"] | None = Field(
        default=None, description="where most of these transfers begin"
    )


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


class Storage(Model):
    """Tables VIII and IX."""

    node_local: NodeLocalStorage = Field(description="on the compute node")
    shared: SharedStorage = Field(description="the file system that the data lies on")


class SizeDistribution(Model):
    """Sizes of the data set's files, of those whose size is known."""

    known: Count = Field(description="files whose size is known")
    min: Bytes | None = Field(description="smallest")
    p50: Bytes | None = Field(description="median")
    p90: Bytes | None = Field(description="nine in ten are at most this large")
    max: Bytes | None = Field(description="largest")
    histogram: dict[str, Count] = Field(description="files by size, bins [low, high)")


class Dataset(Model):
    """All files of the data set (table X)."""

    format: dict[str, Count] | None = Field(description="files by format")
    size: Bytes | None = Field(description="sum of the known sizes")
    files: Count | None = Field(
        description="files of the data set; null where which names are one file is not known"
    )
    io: IOStats = Field(description="I/O on them")
    roles: dict[str, Count] | None = Field(description="files by role; null where some file's is not known")
    size_distribution: SizeDistribution | None = Field(description="sizes of files")
    distribution: Distribution | None = Field(
        default=None, description="law of the values in a sample of them (table VI), from job.yaml"
    )


class FileEntity(Model):
    """A file (table XI)."""

    path: str = Field(description="absolute, links not followed; of a file that was renamed its last name")
    format: str | None = Field(
        description="by magic bytes where the file is still there, else by library and suffix"
    )
    size: Bytes | None = Field(
        description="in the end, by writes, truncations and job.yaml; null for files that were only read, or made "
        "without a recorded write, and where the trace cannot tell"
    )
    role: Role | None = Field(
        description="temporary: removed in the end; intermediate: written by one process or app, read by another "
        "later; output: written or made; input: only read; null: only opened, or the order of calls is not known"
    )
    access: Access = Field(description="used by two or more processes, or by one")
    processes: Count = Field(description="processes that opened or accessed it")
    readers: Count = Field(description="processes that read it")
    writers: Count = Field(description="processes that wrote it")
    opens: Count = Field(description="times that it was opened")
    interface: LayerName | None = Field(description="layer through which most of it was accessed")
    stride: int | None = Field(default=None, description="bytes between the beginnings of strided operations")
    apps: list[str] = Field(description="apps that used it")
    io: IOStats = Field(description="I/O on it")
    first_s: Seconds | None = Field(description="start of the first call on it")
    last_s: Seconds | None = Field(description="end of the last call on it")
    format_attributes: FormatAttributes | None = Field(
        default=None,
        description="arrays, dimensions, type, encoding and chunks: from job.yaml, else from the calls that made them",
    )


class Folder(Model):
    """A folder with files of the data set."""

    path: str = Field(description="absolute, as files name it")
    files: Count = Field(description="files of the data set directly in it, listed ones or not")
    creates: Count = Field(description="of these, files that the run made (or emptied)")
    entries: Count = Field(description="these files and the folders directly in it that hold some")
    bytes: ByteCounts = Field(description="moved or asked for in these files")
    metadata_time_s: Seconds | None = Field(
        description="in metadata operations on these files, added up; null where times were not read"
    )


class Excluded(Model):
    """Calls on what is no file of the data set, or whose file cannot be known (contract, "file")."""

    files: Count = Field(description="paths that are no files of a data set")
    io: IOStats = Field(description="calls on them, and calls whose file cannot be known")


class Profile(Model):
    """The characterisation of one workload."""

    schema_: Literal["vani.profile/2"] = Field(
        alias="schema", default="vani.profile/2", description="name and version of this schema"
    )
    generator: Generator = Field(description="who wrote this")
    traces: list[TraceEntity] = Field(fail_fast=True, description="one per trace directory")
    job: JobEntity = Field(description="the job's configuration (table II)")
    workflow: Workflow = Field(description="the whole workload (table III)")
    apps: list[App] = Field(fail_fast=True, description="one per executable (table IV)")
    phases: list[Phase] | None = Field(
        fail_fast=True,
        description="in order of time, app after app, those that are alike together (table V); null where time "
        "stamps were not read",
    )
    interfaces: list[Interface] | None = Field(
        fail_fast=True,
        description="one per library layer and app (tables VI, VII); null where the source does not tell which "
        "libraries were used",
    )
    middleware: Middleware = Field(description="resources left for middleware (table VII)")
    storage: Storage = Field(description="tables VIII and IX")
    dataset: Dataset = Field(description="all files together (table X)")
    folders: list[Folder] | None = Field(
        fail_fast=True,
        default=None,
        description="the hundred with most metadata time (most calls where no time is known), and the ten with most "
        "files, over all files of the run; null in a document of vani.profile/1",
    )
    files: list[FileEntity] = Field(
        fail_fast=True,
        description="the most important by I/O time (by bytes where that is not known), or all (table XI)",
    )
    excluded: Excluded = Field(description="what is counted apart")
    extensions: dict[str, Any] = Field(
        default_factory=dict, description="results of measures that plug-ins bring, by name"
    )
    provenance: dict[str, str] = Field(
        description="by attribute path: where a value is from, or why it is null"
    )

    @property
    def lists_all_files(self) -> bool:
        """Whether every file of the data set is in `files`."""
        return self.dataset.files is not None and self.dataset.files <= len(self.files)

    @classmethod
    def load(cls, path: str | Path) -> Profile:
        """Read a profile from YAML.

        Raises
        ------
        DocumentError
            The file is no valid profile.
        """
        from vani.schema.document import load  # noqa: PLC0415 - YAML is not needed to build a profile

        return load(Path(path), cls)

    def save(self, path: str | Path) -> None:
        """Write the profile as YAML; the file appears whole or not at all."""
        from vani.schema.document import dump  # noqa: PLC0415

        dump(self, Path(path))

    def to_yaml(self) -> str:
        """The profile as YAML text; the same profile gives the same bytes."""
        from vani.schema.document import dumps  # noqa: PLC0415

        return dumps(self)

    def frame(
        self, table: Literal["traces", "apps", "phases", "interfaces", "files", "extensions"]
    ) -> pd.DataFrame:
        """One of the profile's tables as a pandas frame, a row per entity, columns named like `io.bytes.read`.

        Of `extensions` a row per value: measure, attribute (where in the measure's result it stands), value.

        Raises
        ------
        ImportError
            pandas is not installed (`pip install 'vani-io[frames]'`).
        """
        try:
            import pandas as pd  # noqa: PLC0415 - heavy and rarely wanted
        except ImportError as error:
            raise ImportError("frames need pandas: pip install 'vani-io[frames]'") from error
        if table == "extensions":
            return pd.DataFrame(list(extension_rows(self.extensions)), columns=["measure", "attribute", "value"])
        return pd.json_normalize([row.model_dump() for row in getattr(self, table) or ()])
