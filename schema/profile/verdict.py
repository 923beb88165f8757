"""Activity that a trace proves but does not record, and whether storage matters to the run."""

from typing import Literal

from pydantic import Field

from vani.schema.model import Model
from vani.schema.profile.quantities import Count, Seconds, Share

UnseenKind = Literal[
    "written_without_writes",
    "read_without_reads",
    "memory_mapped",
    "asynchronous",
    "stream_buffered",
    "copied_in_kernel",
    "forked_processes",
    "mpiio_calls_missing",
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
        "call; several_launches: programs that overwrote each other's trace; other_api: DAOS and other interfaces; "
        "module_off, module_partial: Darshan modules that were off or ran out of memory, or layers that Score-P left "
        "out; names_excluded: files that the tracer was set to skip"
    )
    files: list[str] = Field(description="paths of up to ten such files, those open longest first")
    count: Count = Field(description="number of files, or else of calls, processes or modules")
    cause: str = Field(description="likely cause, with the calls that indicate it")
    see_with: str = Field(description="way to trace the run so that the activity is recorded")
    most_s: Seconds | None = Field(
        default=None,
        description="upper bound on the time of the unseen activity: time in which some process had one of these "
        "files open; null if nothing bounds it",
    )


class VerdictCause(Model):
    """The call, or kind of call, that costs most I/O time."""

    call: str = Field(
        description="function name; for counts without single calls, the kind: read, write, open, stat, flush, ..."
    )
    share: Share | None = Field(
        description="share of the I/O time summed over processes, or of the number of calls if times are unknown; "
        "null if the source does not give it"
    )
    count: Count | None = Field(description="number of these calls")
    sentence: str = Field(description="cause in one sentence")


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
