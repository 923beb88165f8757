"""Files grouped by the pattern of their names."""

from pydantic import Field

from vani.schema.model import Model
from vani.schema.profile.iostats import ByteCounts
from vani.schema.profile.quantities import Bytes, Count, Seconds


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
