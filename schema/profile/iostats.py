"""The block of I/O that every entity has: bytes, operations, times, sizes and patterns."""

from pydantic import Field

from vani.schema.model import Model
from vani.schema.profile.quantities import Bytes, Count, Rate, Seconds, Share

__all__ = [
    "AccessPattern",
    "Bandwidth",
    "ByKind",
    "ByteCounts",
    "CallCost",
    "Footprint",
    "IOStats",
    "KindShares",
    "LibraryCall",
    "LibraryTime",
    "MetadataCost",
    "MetadataKinds",
    "OpCounts",
    "PastEnd",
    "Sizes",
    "TransferSizes",
]


class ByteCounts(Model):
    """Bytes that calls moved, or requested where the trace stores no return values."""

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
        description="by reads; a lower bound from the ends that writes, truncations and known sizes show"
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
    """A function, the time of its calls and the bytes they moved."""

    name: str | None = Field(description="the function, as the trace names it; null: all others together")
    count: Count = Field(description="calls")
    time_s: Seconds | None = Field(
        description="length of its calls, added up; null where time stamps were not read"
    )
    bytes: Bytes | None = Field(description="bytes moved or requested; null where they move no data")


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

    bytes: ByteCounts = Field(description="bytes that calls moved or requested")
    footprint: Footprint = Field(description="distinct bytes touched")
    past_end: PastEnd = Field(description="bytes requested that returned no data")
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


class LibraryCall(Model):
    """A function of an I/O library."""

    name: str = Field(description="the function, as the trace names it")
    count: Count = Field(description="calls")
    time_s: Seconds = Field(description="length of its calls, added up, with all that happens inside them")


class LibraryTime(Model):
    """Time in the calls of an I/O library that no call of the same library surrounds."""

    total: Seconds = Field(description="per process the union of the calls' intervals, summed over processes")
    outside_file_system: Seconds = Field(
        description="the part of it outside file-system calls made under them: exchange, waiting, packing"
    )
    slowest: Seconds = Field(description="of the process that spends most time in them")
    calls: list[LibraryCall] | None = Field(
        default=None,
        description="the ten functions of the library in which processes spend most time, with all that happens inside "
        "them; null in a document of an older Vani",
    )
