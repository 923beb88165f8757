"""Time-resolved data of a workload, which no profile contains: bytes over time and processes, sizes against bandwidth.

It is made from the decoded calls (`vani.heat_map`), kept in memory and drawn; there is no file of it. The
definitions of a call, a byte and I/O time are those of a profile: file-system calls on data-set files, each once.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field

from vani.schema.model import Model

Count = Annotated[int, Field(ge=0)]
LibraryName = Literal["netcdf", "pnetcdf", "hdf5", "mpiio", "stdio", "posix"]
LAYERS: tuple[LibraryName, ...] = get_args(LibraryName)
"""Libraries whose time is measured, those that call others first."""
Seconds = Annotated[float, Field(ge=0)]


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


class SizeClass(Model):
    """Data operations of one direction and size."""

    direction: Literal["read", "write"]
    size: str = Field(description="size bin as in the profile's histograms, such as 4K-16K")
    operations: Count
    bytes: Count
    seconds: Seconds = Field(description="summed duration of the operations")


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


class LongCall(Model):
    """One of the calls that took longest."""

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


class HeatMap(Model):
    """Bytes and I/O seconds over time and processes.

    Bytes of a call that spans several bins are spread over them in proportion to time; sums over all bins are exactly
    the profile's bytes.
    """

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
    longest: list[LongCall] = Field(default=[], description="up to 100 longest calls, longest first")
    processes: ProcessTotals
    app_of_trace: list[str] = Field(description="app of each trace")
    first_process: list[int] = Field(description="number of the first process of each trace")
    sizes: list[SizeClass] = Field(description="number of operations by direction and size, smallest first")
    layers: list[LayerCost] = Field(description="summary by library in use")
    unsized: Count = Field(description="number of data operations whose size the trace does not record")
    uses: list[FileUse] = Field(description="readers and writers by name pattern, most bytes first")
