"""profile.yaml: what a workload does to storage, as entities and attributes (tables II to XI of the Vani paper).

An attribute that could not be found is null, never a guess and never 0; `provenance` says why, by attribute path.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from vani.schema.base import Model

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "App",
    "ByKind",
    "Dataset",
    "Excluded",
    "FileCounts",
    "FileEntity",
    "IOStats",
    "Interface",
    "Phase",
    "Profile",
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

    read: Bytes | None
    written: Bytes | None
    total: Bytes | None


class Footprint(Model):
    """Distinct bytes of files touched: union of the extents over all processes."""

    read: Bytes | None
    written: Bytes | None


class PastEnd(Model):
    """Bytes requested beyond the end of the file; null where no end is known."""

    read: Bytes | None


class OpCounts(Model):
    """Number of file-system calls."""

    read: Count
    write: Count
    metadata: Count


class ByKind(Model):
    """Seconds by kind of call. A moment in which two kinds overlap is in both; `total` counts it once."""

    read: Seconds
    write: Seconds
    metadata: Seconds
    total: Seconds


class DataMeta(Model):
    """Shares of data and metadata operations, which add up to 1."""

    data: Share
    metadata: Share


class Bandwidth(Model):
    """Bytes per second of the time in which at least one process read (wrote)."""

    read: Rate | None
    write: Rate | None


class Sizes(Model):
    """Sizes of the data operations of one direction."""

    min: Bytes | None
    p50: Bytes | None
    p90: Bytes | None
    max: Bytes | None
    common: list[tuple[Bytes, Count]] = Field(description="most common sizes, exact: [size, operations]")
    histogram: dict[str, Count] = Field(
        description="operations by size, bins [low, high); adds up to the operations"
    )


class TransferSizes(Model):
    """Sizes by direction; null where there is no operation."""

    read: Sizes | None
    write: Sizes | None


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

    bytes: ByteCounts
    footprint: Footprint
    past_end: PastEnd
    ops: OpCounts
    time_s: ByKind = Field(description="per process the union of its calls' intervals, summed over processes")
    busy_s: ByKind = Field(description="union of the calls' intervals over all processes")
    ops_share: DataMeta | None
    time_share: DataMeta | None
    bandwidth: Bandwidth
    transfer_size: TransferSizes
    access_pattern: AccessPattern | None


class Generator(Model):
    """The program that wrote the profile."""

    name: str
    version: str


class TraceEntity(Model):
    """One trace directory."""

    path: str
    tool: str
    format: str
    layout: str | None = Field(
        default=None, description="layout on disk, where the format's number does not tell"
    )
    app: str
    ranks: Count
    records: Count
    functions: dict[str, Count]
    start_unix_s: Seconds | None = None
    span_s: Seconds | None = Field(default=None, description="end of the last call, by the rank's own clock")
    repaired_times: Count = Field(default=0, description="negative time stamps that were repaired")
    clock_skew_s: Seconds | None = Field(
        default=None, description="least disagreement of the ranks' clocks that collective calls prove"
    )
    complete: bool
    problems: list[str]


class JobEntity(Model):
    """Job configuration (table II)."""

    nodes: Count | None
    cpu_cores_per_node: Count | None
    gpus_per_node: Count | None
    node_local_bb_dirs: list[str] | None
    shared_bb_dirs: list[str] | None
    pfs_dirs: list[str] | None
    time_limit_s: Seconds | None
    scheduler: str | None
    memory_per_node: Bytes | None = None


class FileCounts(Model):
    """Files of the data set by how many processes used them."""

    total: Count
    shared: Count
    file_per_process: Count


class AppDependency(Model):
    """Files that one app wrote before another read them."""

    producer: str
    consumer: str
    files: Count
    bytes_written: Bytes
    bytes_read: Bytes


class Workflow(Model):
    """The whole workload (table III)."""

    apps: Count
    processes: Count
    cpu_cores_used_per_node: Count | None
    gpus_used_per_node: Count | None
    runtime_s: Seconds
    io: IOStats
    files: FileCounts
    app_dependencies: list[AppDependency]
    io_time_share: Share | None = Field(
        default=None, description="mean over the processes of I/O time / run time of their app"
    )


class ProcessDependencies(Model):
    """Files that one process wrote before another process of the app read them."""

    edges: Count = Field(description="pairs (writer, reader)")
    files: Count
    pattern: Literal["none", "one_to_many", "many_to_one", "neighbour", "all_to_all", "irregular"]


class RankBalance(Model):
    """How evenly I/O is spread over the processes of an app."""

    slowest_rank: Count
    slowest_io_time_s: Seconds
    mean_io_time_s: Seconds
    median_io_time_s: Seconds
    busiest_rank: Count = Field(description="rank that moved the most bytes")
    busiest_bytes: Bytes
    mean_bytes: float
    reading_processes: Count
    writing_processes: Count


class App(Model):
    """One executable (table IV); traces of one name are its instances."""

    name: str
    instances: Count
    processes: Count
    runtime_s: Seconds = Field(description="from its first instance's start to its last one's end")
    interface: LayerName | None = Field(description="the layer through which most bytes (else calls) went")
    io: IOStats
    files: FileCounts
    process_dependencies: ProcessDependencies
    balance: RankBalance | None
    io_time_share: Share | None
    phase_gap_s: Seconds | None = Field(
        description="pauses of all processes longer than this separate phases"
    )


class Frequency(Model):
    """How a phase's operations come (table V)."""

    kind: Literal["single", "iterative", "bulk"]
    ops_per_process: float
    size: Bytes | None = Field(description="most common size of its data operations")


class Phase(Model):
    """A stretch of an app's timeline without a pause in I/O longer than the gap (table V)."""

    app: str
    index: Count
    start_s: Seconds
    end_s: Seconds
    runtime_s: Seconds
    kind: Literal["write", "read", "mixed", "metadata"]
    processes: Count
    io: IOStats
    frequency: Frequency


class Granularity(Model):
    """Typical size of file-system transfers made under a layer."""

    data: Bytes | None
    metadata: Bytes | None


class DataRepresentation(Model):
    """How the data looks to the library."""

    dims: Count | None
    chunked: bool | None = None


class Interface(Model):
    """A library layer in use by an app (tables VI and VII)."""

    layer: LayerName
    app: str
    granularity: Granularity
    access_pattern: Literal["consecutive", "sequential", "strided", "random"] | None
    data_representation: DataRepresentation
    calls: Count
    bytes: ByteCounts
    files: Count = Field(description="data-set files accessed through it")
    time_s: Seconds
    collective_share: Share | None = Field(
        default=None, description="share of its data calls that are collective"
    )
    transfer: Literal["collective", "independent", "mixed"] | None = None
    hints: dict[str, str] | None = None


class Middleware(Model):
    """Resources left for middleware (table VII)."""

    extra_cores_per_node: Count | None
    memory_per_node: Bytes | None
    libraries: list[str]


class NodeLocalStorage(Model):
    """Storage on the node (table VIII)."""

    dir: str | None
    capacity_per_node: Bytes | None
    parallel_ops: Count | None
    max_bandwidth_per_node: Rate | None


class SharedStorage(Model):
    """The file system that the data lies on (table IX)."""

    type: str | None
    dir: str | None
    parallel_servers: Count | None
    capacity: Bytes | None
    max_bandwidth: Rate | None


class Storage(Model):
    """Tables VIII and IX."""

    node_local: NodeLocalStorage
    shared: SharedStorage


class SizeDistribution(Model):
    """Sizes of the data set's files, of those whose size is known."""

    known: Count
    min: Bytes | None
    p50: Bytes | None
    p90: Bytes | None
    max: Bytes | None
    histogram: dict[str, Count]


class Dataset(Model):
    """All files of the data set (table X)."""

    format: dict[str, Count]
    size: Bytes | None
    files: Count
    io: IOStats
    roles: dict[str, Count]
    size_distribution: SizeDistribution


class FileEntity(Model):
    """A file (table XI)."""

    path: str
    format: str
    size: Bytes | None
    role: Role | None
    access: Access
    processes: Count
    readers: Count
    writers: Count
    opens: Count
    interface: LayerName | None
    stride: int | None = Field(default=None, description="bytes between the beginnings of strided operations")
    apps: list[str]
    io: IOStats
    first_s: Seconds
    last_s: Seconds


class Excluded(Model):
    """Calls on what is no file of the data set, or whose file cannot be known (contract, "file")."""

    files: Count
    io: IOStats


class Profile(Model):
    """The characterisation of one workload."""

    schema_: Literal["vani.profile/1"] = Field(alias="schema", default="vani.profile/1")
    generator: Generator
    traces: list[TraceEntity]
    job: JobEntity
    workflow: Workflow
    apps: list[App]
    phases: list[Phase]
    interfaces: list[Interface]
    middleware: Middleware
    storage: Storage
    dataset: Dataset
    files: list[FileEntity]
    excluded: Excluded
    provenance: dict[str, str]

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

    def frame(self, table: Literal["traces", "apps", "phases", "interfaces", "files"]) -> pd.DataFrame:
        """One of the profile's tables as a pandas frame, a row per entity, columns named like `io.bytes.read`.

        Raises
        ------
        ImportError
            pandas is not installed (`pip install 'vani-io[frames]'`).
        """
        try:
            import pandas as pd  # noqa: PLC0415 - heavy and rarely wanted
        except ImportError as error:
            raise ImportError("frames need pandas: pip install 'vani-io[frames]'") from error
        return pd.json_normalize([row.model_dump() for row in getattr(self, table)])
