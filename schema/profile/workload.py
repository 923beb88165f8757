"""The run: the job, the workflow and its apps, and their dependencies (tables II to IV)."""

from typing import ClassVar, Literal

from pydantic import Field

from vani.schema.model import Model, SparseModel
from vani.schema.profile.iostats import IOStats, LibraryTime
from vani.schema.profile.quantities import Bytes, Count, LayerName, Seconds, Share


class JobEntity(SparseModel):
    """Job configuration (table II)."""

    optional_keys: ClassVar[tuple[str, ...]] = ("id", "user", "command")

    nodes: Count | None = Field(description="number of compute nodes")
    cpu_cores_per_node: Count | None = Field(description="number of cores per node")
    gpus_per_node: Count | None = Field(description="number of GPUs per node")
    node_local_bb_dirs: list[str] | None = Field(description="folders on node-local burst buffers")
    shared_bb_dirs: list[str] | None = Field(description="folders on shared burst buffers")
    pfs_dirs: list[str] | None = Field(description="mount points of parallel file systems")
    time_limit_s: Seconds | None = Field(description="time limit set by the scheduler")
    scheduler: str | None = Field(description="batch scheduler: slurm, lsf, pbs or flux")
    memory_per_node: Bytes | None = Field(default=None, description="main memory per node")
    id: str | None = Field(
        default=None,
        description="job ID given by the scheduler; left out, with `user` and `command`, if neither the trace nor "
        "job.yaml gives any of the three",
    )
    user: str | None = Field(default=None, description="user who ran the job; null under the same conditions as `id`")
    command: str | None = Field(
        default=None, description="command line of the job; null under the same conditions as `id`"
    )



class FileCounts(Model):
    """Files of the data set by how many processes used them; null where which names are one file is not known."""

    total: Count | None = Field(description="number of files")
    shared: Count | None = Field(description="number of files used by two or more processes of the workload")
    file_per_process: Count | None = Field(description="number of files used by a single process")


class AppDependency(Model):
    """Files in which one app read bytes that another had written last."""

    producer: str = Field(description="app that wrote the files")
    consumer: str = Field(description="app that read them later")
    files: Count = Field(
        description="number of files that link the two apps, by the bytes moved, or by use alone where bytes are not "
        "recorded"
    )
    files_by_extents: Count | None = Field(
        default=None,
        description="number of these files whose extents prove that the producer wrote the bytes read; null if there "
        "were too many extents to keep",
    )
    bytes_written: Bytes | None = Field(
        description="bytes that the producer wrote to these files; null if the trace lacks some of the calls that "
        "moved data"
    )
    bytes_read: Bytes | None = Field(
        description="bytes that the consumer read from these files; null if the trace lacks some of the calls that "
        "moved data"
    )


class Workflow(Model):
    """The whole workload (table III)."""

    apps: Count = Field(description="number of different executables")
    processes: Count = Field(description="number of ranks in all traces")
    cpu_cores_used_per_node: Count | None = Field(description="number of cores per node that run a process")
    gpus_used_per_node: Count | None = Field(description="number of GPUs per node assigned to processes")
    runtime_s: Seconds | None = Field(description="time from the start of the first trace to the end of the last call")
    io: IOStats = Field(description="all I/O of the workload")
    files: FileCounts = Field(description="number of data-set files")
    app_dependencies: list[AppDependency] | None = Field(
        description="pairs of apps where one read what the other wrote; null if the order of calls is unknown"
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
        default=None, description="time in each I/O library, by name; empty if no library was called"
    )


Pattern = Literal["none", "one_to_many", "many_to_one", "neighbour", "all_to_all", "irregular"]
_SHAPE = "shape of the graph: none, one to many, many to one, neighbours, all to all, or irregular"


class FileLevelDependencies(Model):
    """The coarser graph: files that one process wrote before another one of the app read them, whichever bytes."""

    edges: Count = Field(description="number of (writer, reader) pairs")
    files: Count = Field(description="number of files of such a pair")
    pattern: Pattern = Field(description=_SHAPE)


class ProcessDependencies(Model):
    """Processes of an app that read what another one had written last.

    A process that rereads only its own bytes depends on none. Where calls do not show which bytes they
    moved (appended data of unknown place, formatted output), it is enough that one wrote the file and the other read
    it later.
    """

    edges: Count = Field(description="number of (writer, reader) pairs")
    edges_by_extents: Count | None = Field(
        default=None,
        description="number of pairs that extents prove; the others share a file, but not provably the same bytes; "
        "null if there were too many extents to keep",
    )
    files: Count = Field(description="number of files through which processes depend on each other")
    pattern: Pattern = Field(description=_SHAPE)
    file_level: FileLevelDependencies | None = Field(
        default=None,
        description="coarser graph by file, whichever bytes were read; null in documents of an older version",
    )


class RankBalance(Model):
    """How evenly I/O is spread over the processes of an app."""

    slowest_rank: Count | None = Field(description="rank with most I/O time")
    slowest_io_time_s: Seconds | None = Field(description="I/O time of that rank")
    slowest_call_rank: Count | None = Field(
        default=None, description="rank with most time in I/O calls of any kind, including library calls"
    )
    slowest_call_time_s: Seconds | None = Field(
        default=None, description="time of that rank in outermost calls to a library or the file system"
    )
    mean_io_time_s: Seconds | None = Field(description="mean I/O time of all processes")
    median_io_time_s: Seconds | None = Field(description="median I/O time of all processes")
    busiest_rank: Count = Field(description="rank that moved most bytes")
    busiest_bytes: Bytes = Field(description="bytes moved by that rank")
    mean_bytes: float = Field(description="mean bytes moved per process")
    reading_processes: Count = Field(description="number of processes that read")
    writing_processes: Count = Field(description="number of processes that write")


class App(Model):
    """One executable (table IV); traces of one name are its instances."""

    name: str = Field(description="name from job.yaml, else from the trace directory")
    instances: Count = Field(description="number of traces with this name")
    processes: Count = Field(description="number of ranks of all instances")
    runtime_s: Seconds | None = Field(description="time from the start of the first instance to the end of the last")
    interface: LayerName | None = Field(
        description="layer through which most bytes (or calls, if bytes are unknown) went"
    )
    io: IOStats = Field(description="I/O of the app")
    files: FileCounts = Field(description="number of data-set files that the app used")
    process_dependencies: ProcessDependencies | None = Field(
        description="dependencies between the app's own processes; null if the order of calls is unknown"
    )
    balance: RankBalance | None = Field(description="distribution of I/O over the processes; null without I/O")
    io_time_share: Share | None = Field(
        description="time in which any of its processes is in a file-system call (`io.busy_s.total`) / `runtime_s`"
    )
    phase_gap_s: Seconds | None = Field(
        description="length above which a pause of all processes separates phases; shorter pauses do so too if most "
        "processes then start the same operations again"
    )
    library_time_s: dict[LayerName, LibraryTime] | None = Field(
        default=None, description="time in each I/O library, by name; empty if no library was called"
    )
