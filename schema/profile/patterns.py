"""Files grouped by the pattern of their names."""

from pydantic import Field

from vani.schema.model import Model
from vani.schema.profile.iostats import ByteCounts
from vani.schema.profile.quantities import Bytes, Count, Seconds

__all__ = ["NamePattern"]


class NamePattern(Model):
    """Files of the data set that share a name pattern, counted over all files of the run, listed or not."""

    pattern: str = Field(
        description="path with `%d` (`%05d`, with zeros in front) for each number that differs, `*` for digests and "
        "other differences, `**` for all that is below a folder of installed software; a path where there is one file"
    )
    files: Count = Field(description="files of this pattern")
    bytes: ByteCounts = Field(description="moved or requested in these files")
    time_s: Seconds | None = Field(
        description="in all calls on these files, added up over processes; null where times were not read"
    )
    metadata_time_s: Seconds | None = Field(
        description="in metadata operations on these files, added up; null where times were not read"
    )
    processes: Count | None = Field(
        description="processes that used these files, at least: of each file the first and the last rank are counted; "
        "null where the source does not give them"
    )
    writers: Count | None = Field(
        description="processes that wrote these files, at least; null where the source does not give them"
    )
    writer: Count | None = Field(
        default=None,
        description="rank (of its trace) that alone wrote these files; null where several did, or none, or the source "
        "does not give it",
    )
    shared: Count = Field(description="of these files, those that two or more processes used")
    reads: Count = Field(description="calls that read them")
    writes: Count = Field(description="calls that write them")
    flushes: Count = Field(default=0, description="calls that flush them")
    opens: Count = Field(description="times that these files were opened")
    size: Bytes | None = Field(description="sum of their sizes; null where one is not known")
