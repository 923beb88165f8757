"""The block of I/O that every entity has: bytes, operations, times, sizes and patterns."""

from typing import Annotated, Literal

from pydantic import Field

from vani.schema.model import Model

Count = Annotated[int, Field(ge=0)]
AtLeastOne = Annotated[int, Field(ge=1)]
Bytes = Annotated[int, Field(ge=0, description="bytes")]
Seconds = Annotated[float, Field(ge=0, description="seconds")]
Share = Annotated[float, Field(ge=0, le=1, description="share, 0..1")]
Rate = Annotated[float, Field(ge=0, description="bytes per second")]
LayerName = Literal["posix", "stdio", "mpiio", "hdf5", "pnetcdf", "netcdf", "mpi", "gpu", "user"]


class ByteCounts(Model):
    """Bytes that calls moved, or requested where the trace stores no return values."""

    read: Bytes | None = Field(description="bytes of read calls")
    written: Bytes | None = Field(description="bytes of write calls")
    total: Bytes | None = Field(description="sum of both; null if either is null")


class Footprint(Model):
    """Distinct bytes of files touched: union of the extents over all processes."""

    read: Bytes | None = Field(description="distinct bytes read")
    written: Bytes | None = Field(description="distinct bytes written")


class PastEnd(Model):
    """Bytes requested beyond the end of the file; null where no end is known."""

    read: Bytes | None = Field(
        description="bytes of reads beyond the end of the file; a lower bound, based on the file ends that writes, "
        "truncations and known sizes show"
    )


class OpCounts(Model):
    """Number of file-system calls."""

    read: Count = Field(description="number of calls that read")
    write: Count = Field(description="number of calls that write")
    metadata: Count = Field(description="number of all other calls: open, close, seek, stat, mkdir, ...")
    sync: Count = Field(description="number of calls that flush: fsync, fdatasync, fflush, msync, sync_file_range")

    @property
    def all(self) -> int:
        """Calls of every kind."""
        return self.read + self.write + self.metadata + self.sync


class ByKind(Model):
    """Seconds by kind of call. A moment in which two kinds overlap is in both; `total` counts it once.

    All are null where time stamps were not read.
    """

    read: Seconds | None = Field(description="time in calls that read")
    write: Seconds | None = Field(description="time in calls that write")
    metadata: Seconds | None = Field(description="time in metadata calls")
    sync: Seconds | None = Field(default=None, description="time in calls that flush")
    total: Seconds | None = Field(description="time in any of these calls")


class KindShares(Model):
    """Shares of data, metadata and flushing operations, which add up to 1."""

    data: Share = Field(description="share of reads and writes")
    metadata: Share = Field(description="share of metadata operations")
    sync: Share | None = Field(default=None, description="share of flushes")


class Bandwidth(Model):
    """Bytes per second of the time in which at least one process read (wrote)."""

    read: Rate | None = Field(description="rate of reads; null without reads, or if no time passed")
    write: Rate | None = Field(description="rate of writes; null without writes, or if no time passed")
    write_synced: Rate | None = Field(
        default=None,
        description="bytes written / time in which at least one process wrote or flushed; null without a flush",
    )


class CallCost(Model):
    """A function, the time of its calls and the bytes they moved."""

    name: str | None = Field(
        description="function name as recorded in the trace; null for the row that sums up all other functions"
    )
    count: Count = Field(description="number of calls")
    time_s: Seconds | None = Field(description="summed duration of the calls; null if time stamps were not read")
    bytes: Bytes | None = Field(description="bytes moved or requested; null for calls that move no data")


class MetadataCost(Model):
    """Metadata operations of one kind."""

    count: Count = Field(description="number of calls")
    time_s: Seconds | None = Field(description="summed duration of the calls; null if time stamps were not read")


class MetadataKinds(Model):
    """Metadata operations by what they do; they add up to `ops.metadata`."""

    open: MetadataCost = Field(description="open, creat, fopen, fdopen")
    close: MetadataCost = Field(description="close, fclose")
    stat: MetadataCost = Field(description="stat, access, readlink and similar calls")
    seek: MetadataCost = Field(description="lseek, fseek, ftell, rewind")
    directory: MetadataCost = Field(description="mkdir, rmdir, opendir, readdir, chdir")
    remove: MetadataCost = Field(description="unlink, remove, rename")
    other: MetadataCost = Field(description="truncate, fcntl, chmod, dup, mmap and all other calls")


class Sizes(Model):
    """Sizes of the data operations of one direction."""

    min: Bytes | None = Field(description="smallest size")
    p50: Bytes | None = Field(description="median size")
    p90: Bytes | None = Field(description="90th percentile: nine in ten operations are at most this large")
    max: Bytes | None = Field(description="largest size")
    common: list[tuple[Bytes, Count]] = Field(description="most common exact sizes, as pairs [size, operations]")
    histogram: dict[str, Count] = Field(
        description="number of operations by size, in bins [low, high); the sum is the number of operations"
    )


class TransferSizes(Model):
    """Sizes by direction; null where there is no operation."""

    read: Sizes | None = Field(description="sizes of reads")
    write: Sizes | None = Field(description="sizes of writes")


class AccessPattern(Model):
    """Shares of data operations, per process and file, which add up to 1."""

    consecutive: Share = Field(description="share of operations that start where the previous one ended")
    sequential: Share = Field(
        description="share of operations that start beyond the end of the previous one, without jumping back before "
        "or after"
    )
    strided: Share = Field(
        description="share of operations in runs of three or more with a constant distance between starts"
    )
    random: Share = Field(description="share of all other operations")


class IOStats(Model):
    """The block that every entity has. File-system calls only, each counted once."""

    bytes: ByteCounts = Field(description="bytes that calls moved or requested")
    footprint: Footprint = Field(description="distinct bytes of the files touched")
    past_end: PastEnd = Field(description="bytes requested beyond the end of the file")
    ops: OpCounts = Field(description="number of calls")
    time_s: ByKind = Field(description="union of the call intervals of each process, summed over processes")
    busy_s: ByKind = Field(description="union of the call intervals over all processes")
    ops_share: KindShares | None = Field(
        description="shares of data, metadata and flush operations by number of calls; null without calls"
    )
    time_share: KindShares | None = Field(
        description="shares of data, metadata and flush operations by time; null if no time passed"
    )
    bandwidth: Bandwidth = Field(description="transfer rate over the time in which at least one process read (wrote)")
    transfer_size: TransferSizes = Field(description="sizes of data operations")
    access_pattern: AccessPattern | None = Field(
        description="shares of data operations by where they start; null without data operations"
    )
    calls: list[CallCost] | None = Field(
        default=None,
        description="cost of the twenty functions that take most time (that have most calls if times are unknown), "
        "plus one row for all others",
    )
    metadata_kinds: MetadataKinds | None = Field(
        default=None, description="metadata operations by kind; null if there are none"
    )


class LibraryCall(Model):
    """A function of an I/O library."""

    name: str = Field(description="function name as recorded in the trace")
    count: Count = Field(description="number of calls")
    time_s: Seconds = Field(description="summed duration of the calls, including nested calls")


class LibraryTime(Model):
    """Time in the calls of an I/O library that no call of the same library surrounds."""

    total: Seconds = Field(description="union of the call intervals of each process, summed over processes")
    outside_file_system: Seconds = Field(
        description="part of `total` outside the file-system calls made under the library: exchange, waiting, packing"
    )
    slowest: Seconds = Field(description="time in these calls of the process that spends most time in them")
    calls: list[LibraryCall] | None = Field(
        default=None,
        description="cost of the ten functions of the library that take most time, including nested calls; null in "
        "documents of an older Vani",
    )
