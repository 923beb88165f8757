"""The run: the job, the workflow and its apps, and their dependencies (tables II to IV)."""

from typing import ClassVar, Literal

from pydantic import Field

from vani.schema.model import Model, SparseModel
from vani.schema.profile.iostats import IOStats, LibraryTime
from vani.schema.profile.quantities import Bytes, Count, LayerName, Seconds, Share

__all__ = [
    "App",
    "AppDependency",
    "FileCounts",
    "FileLevelDependencies",
    "JobEntity",
    "ProcessDependencies",
    "RankBalance",
    "Workflow",
]


class JobEntity(SparseModel):
    """Job configuration (table II)."""

    optional_keys: ClassVar[tuple[str, ...]] = ("id", "user", "command")

    nodes: Count | None = Field(description="nodes of the job")
    cpu_cores_per_node: Count | None = Field(description="cores of a node")
    gpus_per_node: Count | None = Field(description="GPUs of a node")
    node_local_bb_dirs: list[str] | None = Field(description="directories of burst buffers on the node")
    shared_bb_dirs: list[str] | None = Field(description="directories of shared burst buffers")
    pfs_dirs: list[str] | None = Field(description="directories of parallel file systems")
    time_limit_s: Seconds | None = Field(description="the scheduler's limit")
    scheduler: str | None = Field(description="slurm, lsf, pbs or flux")
    memory_per_node: Bytes | None = Field(default=None, description="main memory of a node")
    id: str | None = Field(
        default=None,
        description="the scheduler's name of the job; absent, with the two that follow, where neither the trace nor "
        "job.yaml gives one of them",
    )
    user: str | None = Field(default=None, description="user who ran it; null as id")
    command: str | None = Field(default=None, description="its command line; null as id")



class FileCounts(Model):
    """Files of the data set by how many processes used them; null where which names are one file is not known."""

    total: Count | None = Field(description="all")
    shared: Count | None = Field(description="used by two or more processes of the workload")
    file_per_process: Count | None = Field(description="used by one process")


class AppDependency(Model):
    """Files in which one app read bytes that another had written last."""

    producer: str = Field(description="app that wrote")
    consumer: str = Field(description="app that read later")
    files: Count = Field(
        description="files through which it depends: by the bytes that were moved, else by having been used"
    )
    files_by_extents: Count | None = Field(
        default=None,
        description="of these, files for which extents prove that the producer had written the bytes read; null "
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
        description="apps that read what others wrote; null where the order of calls is not known"
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
        default=None, description="by I/O library, seconds; empty where no library was called"
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

    A process that rereads only its own bytes depends on none. Where calls do not show which bytes they
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
        default=None, description="rank with most time in I/O calls of any kind, including library calls"
    )
    slowest_call_time_s: Seconds | None = Field(
        default=None,
        description="its time in them: all of each outermost call of a library or the file system",
    )
    mean_io_time_s: Seconds | None = Field(description="mean over all processes")
    median_io_time_s: Seconds | None = Field(description="median over all processes")
    busiest_rank: Count = Field(description="rank that moved the most bytes")
    busiest_bytes: Bytes = Field(description="bytes it moved")
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
        "processes begin again"
    )
    library_time_s: dict[LayerName, LibraryTime] | None = Field(
        default=None, description="by I/O library, seconds; empty where no library was called"
    )
