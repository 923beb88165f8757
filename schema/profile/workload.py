"""The workload: its apps, phases, interfaces, patterns of file names, and whether its I/O matters."""

from typing import ClassVar, Final, Literal

from pydantic import Field

from vani.schema.model import Model, SparseModel
from vani.schema.profile.iostats import (
    AtLeastOne,
    ByteCounts,
    Bytes,
    Count,
    IOStats,
    LayerName,
    LibraryTime,
    OpCounts,
    Seconds,
    Share,
)

UnseenKind = Literal[
    "written_without_writes",
    "read_without_reads",
    "memory_mapped",
    "asynchronous",
    "stream_buffered",
    "copied_in_kernel",
    "forked_processes",
    "mpiio_calls_missing",
    "calls_below_missing",
    "several_launches",
    "other_api",
    "module_off",
    "module_partial",
    "names_excluded",
]
Matters = Literal["yes", "no", "open", "too_short"]


class Unseen(Model):
    """Activity that must have happened, as the trace itself shows, but that the trace does not record."""

    kind: UnseenKind = Field(
        description="kind of activity. written_without_writes: files were opened for writing and filled, but no write "
        "was recorded; read_without_reads: the same for reading; memory_mapped: files were mapped into memory; "
        "asynchronous: io_uring, libaio or POSIX aio; stream_buffered: C++ or Fortran streams, whose data calls are "
        "not traced; copied_in_kernel: copy_file_range, sendfile or splice; forked_processes: child processes without "
        "recorded calls; mpiio_calls_missing: file-system calls on MPI-IO files outside any recorded MPI-IO data "
        "call; calls_below_missing: MPI-IO or another library was to move data, and no file-system call did; "
        "several_launches: programs that overwrote each other's trace; other_api: DAOS and other interfaces; "
        "module_off, module_partial: Darshan modules that were off or ran out of memory, or layers that Score-P left "
        "out; names_excluded: files that the tracer was set to skip"
    )
    files: list[str] = Field(description="paths of up to ten such files, those open longest first")
    count: Count = Field(description="number of files, or else of calls, processes or modules")
    bytes: Bytes | None = Field(
        default=None,
        description="bytes that the layers above requested, or by which the files grew, and that no recorded call "
        "moved; for mappings that grew no file the sum of their lengths, an upper bound; null if unknown",
    )
    cause: str = Field(description="likely cause, with the calls that indicate it")
    see_with: str = Field(description="way to trace the run so that the activity is recorded")
    most_s: Seconds | None = Field(
        default=None,
        description="upper bound on the time of the unseen activity: time in which some process had one of these "
        "files open; null if nothing bounds it",
    )


class VerdictCause(SparseModel):
    """The call, or kind of call, that costs most I/O time."""

    optional_keys: ClassVar[tuple[str, ...]] = ("caller",)

    call: str = Field(
        description="function name; for counts without single calls, the kind: read, write, open, stat, flush, ..."
    )
    share: Share | None = Field(
        description="share of the I/O time summed over processes, or of the number of calls if times are unknown; "
        "null if the source does not give it"
    )
    count: Count | None = Field(description="number of these calls")
    caller: str | None = Field(
        default=None,
        description="place in the program that makes most of them; left out if unknown",
    )
    sentence: str = Field(description="cause in one sentence")


class VerdictParts(Model):
    """Things that the run waits for: shares of the run of the process with most time in I/O calls."""

    storage: Share = Field(description="share in calls of the file system, and in look-ups of names")
    library: Share = Field(description="share in calls of I/O libraries outside these: exchange, decoding, copying")
    processor: Share = Field(description="the rest: computing, communication and waiting")


class Verdict(Model):
    """Whether storage matters to this run, and why: every text that Vani writes prints this."""

    matters: Matters = Field(
        description="whether storage matters. yes; no: everything was seen, and I/O takes less than 5 % of the run; "
        "open: unrecorded or untimed activity may decide; too_short: the run takes less than a second, or its I/O "
        "less than a tenth of a second"
    )
    share: Share | None = Field(
        description="time in which any process is in a file-system call / run time; null if times are unknown, or if "
        "unrecorded activity leaves the verdict open"
    )
    share_slowest: Share | None = Field(
        description="I/O time of the slowest process / run time; null under the same conditions as `share`"
    )
    share_calls: Share | None = Field(
        default=None,
        description="share that decides: time of the slowest process in I/O calls, including library calls / run "
        "time; for several traces, time in which any process is in such a call / run time",
    )
    parts: VerdictParts | None = Field(
        default=None, description="the run in three parts; null under the same conditions as `share`"
    )
    is_lower_bound: bool = Field(
        default=False, description="true if some calls were not seen, so that the shares are lower bounds"
    )
    why: str | None = Field(
        default=None, description="reason why the verdict is open or the run too short; null for yes and no"
    )
    sentence: str = Field(description="verdict in one sentence")
    cause: VerdictCause | None = Field(description="call that costs most I/O time; null without I/O")
    where: str | None = Field(description="file, name pattern or folder with most I/O time; null without I/O")
    remedy: str | None = Field(description="suggested next step")


class NamePattern(Model):
    """Files of the data set that share a name pattern, counted over all files of the run, listed or not."""

    pattern: str = Field(
        description="path with `%d` (`%05d` if zero-padded) for each number that varies, `*` for digests and other "
        "varying text, and `**` for everything below a folder of installed software; the full path if there is only "
        "one file"
    )
    files: Count = Field(description="number of files with this pattern")
    bytes: ByteCounts = Field(description="bytes moved or requested in these files")
    time_s: Seconds | None = Field(
        description="time in all calls on these files, summed over processes; null if time stamps were not read"
    )
    metadata_time_s: Seconds | None = Field(
        description="time in metadata operations on these files, summed over processes; null if time stamps were not "
        "read"
    )
    processes: Count | None = Field(
        description="lower bound on the number of processes that used these files: only the first and the last rank "
        "of each file count; null if the source does not give them"
    )
    writers: Count | None = Field(
        description="lower bound on the number of processes that wrote these files; null if the source does not give "
        "them"
    )
    writer: Count | None = Field(
        default=None,
        description="rank (within its trace) that is the only writer of these files; null if there are none or "
        "several writers, or the source does not give it",
    )
    shared: Count = Field(description="number of these files that two or more processes used")
    reads: Count = Field(description="number of calls that read these files")
    writes: Count = Field(description="number of calls that write these files")
    flushes: Count = Field(default=0, description="number of calls that flush these files")
    opens: Count = Field(description="number of times these files were opened")
    size: Bytes | None = Field(description="sum of the file sizes; null if any of them is unknown")


class Frequency(Model):
    """How a phase's operations are spaced in time (table V)."""

    kind: Literal["single", "iterative", "bulk"] = Field(
        description="spacing of data operations. single: at most one per process; bulk: back to back; iterative: with "
        "pauses in between"
    )
    ops_per_process: float = Field(description="data operations / participating processes, per repetition")
    size: Bytes | None = Field(description="most common size of the data operations")


_MAX_SPANS: Final = 100_000


class Repeats(Model):
    """How often similar phases repeat."""

    count: AtLeastOne = Field(description="number of phases in this row")
    period_s: Seconds | None = Field(
        description="median time from the start of one phase to the start of the next; null for a single phase, or if "
        "the spacing is irregular"
    )


class Dominant(Model):
    """The calls that most of the I/O time went to."""

    kind: Literal["read", "write", "metadata", "sync"] = Field(description="kind of call")
    share: Share = Field(description="share of this kind in the time of all kinds")


class PhaseIO(IOStats):
    """The I/O of a phase; some sources give only its bytes."""

    ops: OpCounts | None = Field(  # type: ignore[assignment]
        description="number of calls; null if a source records when bytes were moved but not the number of calls"
    )

    @classmethod
    def of(cls, io: IOStats) -> "PhaseIO":
        """The same figures."""
        return cls.model_construct(**{name: getattr(io, name) for name in cls.model_fields})


class Phase(Model):
    """A stretch of an app's timeline in which its processes do I/O (table V), or several similar ones.

    Phases are separate where no process is in a call for longer than `apps[].phase_gap_s`, where most processes begin
    the same again after a pause of at least 10 ms, and where they turn from reading to writing or back.
    """

    app: str = Field(description="name of the app")
    index: Count = Field(description="number of the phase within its app, from 0")
    start_s: Seconds = Field(description="start of the first repetition, from the start of the workload")
    end_s: Seconds = Field(description="end of the last repetition, from the start of the workload")
    runtime_s: Seconds = Field(description="summed duration of all repetitions")
    repeats: Repeats | None = Field(
        default=None,
        description="number of similar phases in this row and their spacing; null where each row is one phase",
    )
    kind: Literal["write", "read", "mixed", "metadata"] = Field(
        description="kind of at least 95 % of the data operations and bytes, else mixed; metadata if there are no "
        "data operations, or if metadata takes 95 % of the I/O time and at most a quarter of the calls move data"
    )
    dominant: Dominant | None = Field(
        default=None, description="kind of call that took most of the I/O time; null if no time passed"
    )
    processes: Count = Field(description="largest number of participating processes of any repetition")
    io: PhaseIO = Field(description="I/O of all repetitions together")
    frequency: Frequency | None = Field(
        description="spacing of the data operations; null if the number of calls (`io.ops`) is unknown"
    )

    @property
    def count(self) -> int:
        """Number of phases in this entry."""
        return self.repeats.count if self.repeats is not None else 1

    @property
    def spans(self) -> list[tuple[float, float]]:
        """(start, end) of each repetition in seconds, taken as equally long and evenly spaced.

        More than 100,000 count as one: nothing distinguishes them, and a document may claim any number.
        """
        if self.count == 1 or self.count > _MAX_SPANS:
            return [(self.start_s, self.end_s)]
        length = self.runtime_s / self.count
        apart = (self.end_s - length - self.start_s) / (self.count - 1)
        return [(self.start_s + i * apart, self.start_s + i * apart + length) for i in range(self.count)]


class Granularity(Model):
    """Typical size of file-system transfers made under a layer."""

    data: Bytes | None = Field(description="transfer size that accounts for most bytes")
    metadata: Bytes | None = Field(
        description="most common transfer size among those of at most a tenth of `data`: transfers other than the "
        "bulk data"
    )


class DataRepresentation(Model):
    """How the data looks to the library."""

    dims: Count | None = Field(description="number of dimensions of a dataset or variable")
    chunked: bool | None = Field(default=None, description="true if the dataset is stored in chunks")


class Amplification(Model):
    """Bytes that the layers below moved / bytes that the calls of a library requested; 1 where nothing is added."""

    read: float | None = Field(
        ge=0, description="ratio for reads; null if no bytes were requested, or the request is unknown"
    )
    written: float | None = Field(
        ge=0, description="ratio for writes; null if no bytes were requested, or the request is unknown"
    )
    total: float | None = Field(
        ge=0,
        description="ratio for reads and writes together, including reads that writes caused; null if no bytes were "
        "requested",
    )


class Interface(Model):
    """A library layer in use by an app (tables VI and VII)."""

    layer: LayerName = Field(description="name of the library layer")
    app: str = Field(description="name of the app")
    granularity: Granularity = Field(description="typical transfer sizes")
    access_pattern: Literal["consecutive", "sequential", "strided", "random"] | None = Field(
        description="access pattern of the data operations made under this layer"
    )
    data_representation: DataRepresentation = Field(
        description="dimensions and chunking of the data; null if the trace does not show them"
    )
    calls: Count = Field(description="number of calls to the library")
    bytes: ByteCounts = Field(description="bytes of the file-system calls made under this layer")
    asked: ByteCounts | None = Field(
        default=None,
        description="bytes that the data calls requested in their own arguments; null if the trace lacks the size of "
        "some call, and for posix and stdio, whose calls move what they request",
    )
    amplification: Amplification | None = Field(
        default=None, description="ratio of `bytes` to `asked`; null if `asked` is null"
    )
    files: Count | None = Field(
        description="number of data-set files accessed through the layer; null if only call times link file-system "
        "calls to library calls"
    )
    time_s: Seconds | None = Field(
        description="time in calls to the library that are not nested in another call to it, summed over processes"
    )
    collective_share: Share | None = Field(
        default=None,
        description="share of collective calls in the bytes requested; in the calls where bytes are not known",
    )
    transfer: Literal["collective", "independent", "mixed"] | None = Field(
        default=None,
        description="mode of the data calls; HDF5 without a call that sets the mode takes the mode of MPI-IO",
    )
    hints: dict[str, str] | None = Field(
        default=None, description="MPI-IO hints set by the program; empty if it set none"
    )


class Access(Model):
    """Data calls of a layer on a file, or on all files, in one direction.

    A row of a library counts its own data calls and the bytes that their arguments request; rows of posix and stdio
    count the calls of the file system and the bytes that moved.
    """

    file: str | None = Field(description="path as in `files[].path`; null for all files of the data set")
    direction: Literal["read", "write"] = Field(description="whether the calls read or write")
    layer: Literal["hdf5", "netcdf", "pnetcdf", "mpiio", "posix", "stdio"] = Field(description="library of the calls")
    calls: Count = Field(description="number of data calls")
    bytes: Bytes | None = Field(
        description="bytes requested, or moved; for HDF5, PnetCDF and netCDF, whose arguments do not show them, those "
        "that their data calls ask of MPI-IO"
    )
    time_s: Seconds | None = Field(description="summed duration of the calls")
    processes: Count | None = Field(description="number of processes that make these calls")
    bytes_collective: Bytes | None = Field(
        description="bytes of collective calls; for posix and stdio, moved inside a collective call of a library"
    )
    bytes_by_size: dict[str, Bytes] | None = Field(description="bytes by size of the call, in the histogram's bins")
    time_by_size: dict[str, Seconds] | None = Field(description="duration of the calls by size, in the same bins")
    bytes_misaligned: Bytes | None = Field(
        description="bytes of calls that do not begin at a multiple of the file system's block"
    )
    bytes_sequential: Bytes | None = Field(
        description="bytes of calls that are not random: they continue the previous one of their process, begin "
        "further on or at a constant distance, or move 1 MiB or more"
    )


class Middleware(SparseModel):
    """Libraries between the program and the file system, and the resources that are left for them (table VII)."""

    optional_keys: ClassVar[tuple[str, ...]] = ("memory_used_share",)

    extra_cores_per_node: Count | None = Field(description="number of cores per node without a process of the job")
    memory_per_node: Bytes | None = Field(description="main memory per node")
    memory_used_share: Share | None = Field(
        default=None, description="share of that memory in use when `vani collect` ran; left out if unknown"
    )
    libraries: list[str] | None = Field(description="I/O libraries in use or loaded; null if they are not recorded")
    granularity: Granularity | None = Field(
        default=None, description="typical sizes of the transfers from the libraries to the file system"
    )
    access_pattern: Literal["consecutive", "sequential", "strided", "random"] | None = Field(
        default=None, description="access pattern of most of these transfers"
    )


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
        description="coarser graph by file, whichever bytes were read; null if it was not computed",
    )


class RankBalance(Model):
    """How evenly I/O is spread over the processes of an app."""

    slowest_rank: Count | None = Field(description="rank with most I/O time; null if every process has the same")
    slowest_io_time_s: Seconds | None = Field(description="largest I/O time of a rank")
    slowest_call_rank: Count | None = Field(
        default=None,
        description="rank with most time in I/O calls of any kind, including library calls; null likewise",
    )
    slowest_call_time_s: Seconds | None = Field(
        default=None, description="largest time of a rank in outermost calls to a library or the file system"
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
