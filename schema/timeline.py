"""Time-resolved data of a workload, which no profile contains: bytes over time and processes, and single calls.

It is made from the decoded calls (`vani.heat_map`), kept in memory and drawn; there is no file of it. The
definitions of a call, a byte and I/O time are those of a profile: file-system calls on data-set files, each once.
"""

from itertools import chain
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from vani.schema.model import Model
from vani.units import format_bytes

Count = Annotated[int, Field(ge=0)]
LibraryName = Literal["netcdf", "pnetcdf", "hdf5", "mpiio", "stdio", "posix"]
LAYERS: tuple[LibraryName, ...] = get_args(LibraryName)
"""Libraries whose time is measured, those that call others first."""
Seconds = Annotated[float, Field(ge=0)]
Source = Literal["bins", "data", "calls"]
"""Extent of a source over time, each with all before it: the bytes of each process in bins of time (Darshan's heat
map), each read and write (DXT), and every call (Recorder, strace, DFTracer, OTF2)."""
SOURCES: tuple[Source, ...] = get_args(Source)
_WITH_DXT = (
    "run the program once more with DXT_ENABLE_IO_TRACE=1 in the job's environment, and Darshan keeps each read and "
    "write"
)
NONE_KEPT = f"the log has counts and no times of calls: {_WITH_DXT}"
ONLY_BINS = f"the log has bytes over time and no calls: {_WITH_DXT}"


class HeatRow(Model):
    """Processes that share a row of the heat map."""

    app: str = Field(description="app of the processes; the first one if the row covers several traces")
    trace: Count = Field(description="index of the first process's trace in the profile's traces")
    first_process: Count = Field(
        description="number of the first process over all traces, in the order of the profile's traces"
    )
    processes: Count = Field(description="number of processes in the row")
    ranks: tuple[int, int] | None = Field(description="first and last rank; null if the row covers several traces")


class ProcessTotals(Model):
    """Totals of every process, each list of shape (processes,), in order of traces and ranks."""

    bytes_read: list[int]
    bytes_written: list[int]
    operations: list[int] = Field(description="number of file-system calls")
    io_s: list[float] = Field(description="I/O time: union of the call intervals")


class LayerCost(Model):
    """Time in calls of one library, those that it makes of other libraries included.

    Seconds by kind of call: per process the union of the calls' intervals, summed over processes. Calls of POSIX and
    stdio are those that the profile counts as I/O.
    """

    layer: LibraryName
    read: Seconds
    write: Seconds
    metadata: Seconds
    sync: Seconds = 0.0


class FileUse(Model):
    """Calls of one app's processes on files whose names differ only in numbers."""

    pattern: str = Field(description="path with `#` for each number that varies; empty for the row of all other files")
    files: Count = Field(description="number of files with this pattern, whichever app used them")
    app: str
    readers: Count = Field(description="number of processes that read any of these files")
    writers: Count = Field(description="number of processes that write any of these files")
    bytes_read: Count
    bytes_written: Count


class KindSeconds(Model):
    """Seconds in calls of each kind, each table of shape (rows, bins): for each process the union of its calls of a
    kind, summed over the row's processes. A moment in which a process has calls of two kinds counts for both."""

    read: list[list[float]] = Field(description="seconds in reads")
    write: list[list[float]] = Field(description="seconds in writes")
    metadata: list[list[float]] = Field(description="seconds in metadata calls")
    sync: list[list[float]] = Field(description="seconds in flushes")


class CallTimes(Model):
    """Calls of one kind with similar durations."""

    kind: Literal["read", "write", "metadata", "sync"]
    least_s: Seconds = Field(
        description="lower limit of the duration of the calls counted here: 1, 2 or 5 times a power of ten of "
        "nanoseconds, or 0"
    )
    calls: Count
    seconds: Seconds = Field(description="summed duration of these calls")


class Call(Model):
    """A single call."""

    app: str
    rank: Count
    function: str
    path: str
    kind: Literal["read", "write", "metadata", "sync"]
    start_s: Seconds = Field(description="start in seconds from the start of the workload")
    duration_s: Seconds
    bytes: Count | None = Field(
        description="bytes moved; null if the trace does not record them, or the call moves none"
    )
    offset: int | None = Field(default=None, description="first byte of a read or write in its file; null if unknown")


class HeatMap(Model):
    """Activity by process and time: bytes, I/O seconds and calls, if `source` gives them.

    Bytes of a call that spans several bins are spread over them in proportion to time; sums over all bins are exactly
    the profile's bytes.
    """

    source: Source = Field(default="calls", description="what was recorded over time")
    note: str = Field(default="", description="what the source leaves out, as a sentence; empty for calls")
    bin_s: float = Field(gt=0, description="width of a bin in seconds")
    bins: int = Field(ge=1, description="number of bins, from second 0 to the end of the last call")
    runtime_s: Seconds = Field(description="end of the last call, in seconds")
    rows: list[HeatRow] = Field(description="rows in the order of traces and ranks, at most 512")
    read: list[list[int]] = Field(description="bytes read, shape (rows, bins)")
    written: list[list[int]] = Field(description="bytes written, shape (rows, bins)")
    busy_s: list[list[float]] = Field(
        description="seconds of each bin spent in calls, shape (rows, bins): the union of the calls of each process, "
        "summed over the processes of the row"
    )
    seconds: KindSeconds | None = Field(default=None, description="`busy_s`, split by kind of call")
    calls: list[CallTimes] = Field(default=[], description="number of calls by duration, shortest first")
    longest: list[Call] = Field(default=[], description="up to 100 longest calls, longest first")
    sampled: list[Call] = Field(
        default=[], description="reads and writes of known size: all, or 2,000 that a hash chooses from more"
    )
    processes: ProcessTotals
    app_of_trace: list[str] = Field(description="app of each trace")
    first_process: list[int] = Field(description="number of the first process of each trace")
    layers: list[LayerCost] = Field(description="summary by library in use")
    uses: list[FileUse] = Field(description="readers and writers by name pattern, most bytes first")

    def with_note(self, moved: int) -> "HeatMap":
        """The same with a note on what the source leaves out of the run's bytes."""
        shown = sum(chain.from_iterable((*self.read, *self.written)))
        part = "" if shown == moved else f", {format_bytes(shown)} of {format_bytes(moved)}"
        notes = {
            "bins": "From the log's heat map: bytes of POSIX and stdio on all files, and no calls.",
            "data": f"From DXT: reads and writes of POSIX{part}, without other calls and stdio.",
        }
        return self.model_copy(update={"note": notes.get(self.source, "")})

    def gives(self, need: Source) -> bool:
        """Return whether the source records this much."""
        return SOURCES.index(self.source) >= SOURCES.index(need)

    def as_given_by(self, source: Source) -> "HeatMap":
        """The same without what bins of a source cannot show."""
        if source != "bins":
            return self.model_copy(update={"source": source})
        nothing: dict[str, Any] = {key: [] for key in ("calls", "longest", "sampled", "layers", "uses")}
        nothing["busy_s"] = [[0.0] * self.bins for _ in self.rows]
        processes = self.processes.model_copy(update={"io_s": [0.0] * len(self.processes.io_s)})
        return self.model_copy(update={**nothing, "source": source, "seconds": None, "processes": processes})
