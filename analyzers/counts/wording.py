"""Provenance texts for attributes that counts cannot provide, or not exactly."""

from collections.abc import Mapping

from vani.analyzers.measures.extents import ExchangeCounts, ProcessExtents
from vani.analyzers.measures.io_time import ClockSkew
from vani.analyzers.measures.lengths import BeyondEnds
from vani.analyzers.measures.libraries import LibraryCallTimes, LibraryTimes
from vani.analyzers.measures.operations import FunctionCosts
from vani.counts import Beside

OTHERWISE = "the source counts calls and keeps none of them"
_NO_ORDER = "counts keep no order of calls, and removals are not counted"
_NO_PHASES = "counts do not record when each call took place"

UNKNOWN: dict[type[object], str] = {
    BeyondEnds: "bytes are those that were moved; requested bytes were not counted",
    LibraryCallTimes: "times of libraries are not taken from counts",
    LibraryTimes: "times of libraries are not taken from counts",
    ClockSkew: "counts contain no moments at which several ranks met",
    ExchangeCounts: _NO_ORDER,
    ProcessExtents: _NO_ORDER,
    FunctionCosts: "times are added up by kind of call, not by function",
}
DROPPED: Mapping[Beside, str] = {
    "layouts": "records of Lustre were dropped when memory ran out: null for their files",
    "segments": "DXT dropped calls when memory ran out",
    "many_segments": "DXT has more calls than are taken one by one",
    "heat": "records of the heat map were dropped when memory ran out",
}
"""Data that a source lost, other than counts."""
UNKNOWN_ATTRIBUTES = {
    "phases": _NO_PHASES,
    "sync_time": "the time of flushes is counted as write time",
    "repaired_times": "no time stamps of calls are kept",
}
PHASES_OF_CALLS = {
    "phases": (
        "from the reads and writes of POSIX, which DXT kept one by one: no metadata operations, flushes or buffered "
        "streams"
    )
}
PHASES_OF_HEAT = {
    "phases": (
        "from the heat map, which records bytes by process and stretch of time, to one stretch: `bounds` has both ends "
        "of start_s, end_s and runtime_s; reads and writes only, no metadata operations or flushes"
    ),
    "phases.io": "the heat map records bytes and no calls: their number, duration, size and place are null",
    "phases.io.bytes": (
        "as the heat map distributes them: calls that span several bins are rounded in each; up to 5 % may "
        "belong to standard streams, or be missing where a file's buffered streams cannot be separated from these"
    ),
    "phases.kind": "by bytes alone",
    "phases.dominant": "the heat map does not record the time of calls",
    "phases.frequency": "the heat map does not record calls",
}
_OF_FLUSHES = (
    "of files whose writes DXT all kept one by one: the time of writes and flushes of POSIX, which is counted as "
    "one, less that of these writes"
)
FLUSHES_APART = {
    "io.time_s.sync": f"{_OF_FLUSHES}; null of standard streams",
    "io.busy_s.sync": f"lower bound, as metadata; {_OF_FLUSHES}; null of standard streams",
}
ACCESSES = {
    "processes": "upper bound where a file has one record of all ranks, as files.readers",
    "bytes_by_size": "by the source's bins; null where several bins have sizes that the counters do not give",
    "time_by_size": "null where reads and writes were not kept one by one",
    "bytes_misaligned": "by the count of calls off a multiple of the file system's block; null where only some are, "
    "unless all have one direction and size",
    "bytes_sequential": "null where some calls are out of order, since their bytes are not counted apart",
    "bytes_collective": "null for records of both collective and independent calls, and for the file system's calls",
}
"""Limits of the table of accesses, by column."""
REMARKS = {
    "traces.records": "calls that were counted; the log contains none of them",
    "traces.functions": (
        "one name represents all calls of its kind (open for open64 and creat, read for pread and readv)"
    ),
    "io.bytes": "bytes that were moved, by calls that succeeded",
    "io.ops": "calls that succeeded",
    "io.time_s": (
        "sum of call lengths: for a process that calls from several threads at once more than the union"
    ),
    "io.busy_s": (
        "lower bound: the process with most of that time; `bounds` has the upper one: from the first call "
        "on each file to the last, no more than all calls take together"
    ),
    "io.bandwidth": "upper bound: bytes by the lower bound of busy_s, where reads and writes were not kept one by one",
    "io.footprint": "upper bound: bytes moved, at most the furthest end of each file",
    "io.transfer_size": (
        "histogram by the source's own bins, whose upper end belongs to them, `unknown` where it has none "
        "(buffered streams); exact sizes where the bins prove that all of the size are of one direction, percentiles "
        "where they do not depend on an unknown size's place in its bin"
    ),
    "io.access_pattern": (
        "by counts: consecutive up to the first operation of each process on a file; strided the operations at one of "
        "the four commonest distances where these are more than continue one another; random those that go back and as "
        "many that go forth; buffered streams are not counted"
    ),
    "workflow.io_time_share": "lower bound, as io.busy_s",
    "apps.io_time_share": "lower bound, as io.busy_s",
    "workflow.io_time_share_slowest": "lower bound, as apps.balance.slowest_io_time_s",
    "apps.balance.slowest_io_time_s": (
        "lower bound where a file has one record of all ranks: it gives only the slowest one's; the least "
        "that fits the sum of all"
    ),
    "apps.balance.median_io_time_s": "of times that fit the sums, as slowest_io_time_s",
    "apps.balance.busiest_bytes": (
        "lower bound where a file has one record of all ranks, as slowest_io_time_s"
    ),
    "apps.balance.reading_processes": "upper bound where a file has one record of all ranks",
    "apps.balance.writing_processes": "upper bound where a file has one record of all ranks",
    "files.processes": "ranks with a record of the file; all where one record covers all ranks",
    **{
        f"files.{who}": "upper bound where a file has one record of all ranks: all of them, or as many as there are "
        f"{calls}, or the one that moved all bytes"
        for who, calls in (("readers", "reads"), ("writers", "writes"))
    },
    "workflow.app_dependencies": (
        "by file and the order of runs: an app depends on one that wrote a file before the last read of it; whose "
        "bytes were read is not counted"
    ),
    "files.size": (
        "end of the furthest write or read of files that were written; too small where positions were moved"
        " by pread and pwrite, or by truncation; null for files that were only read"
    ),
    "files.stride": "the commonest hole and the commonest size of the file's operations, added up",
}
_FROM_DXT = "from the reads and writes of POSIX that DXT kept one by one, all that were counted"
KEPT = {
    "io.busy_s": (
        f"reads and writes {_FROM_DXT}; metadata and total: lower bound, `bounds` has the upper one: with metadata "
        "operations and flushes apart from all else"
    ),
    "io.bandwidth": f"{_FROM_DXT}; write_synced: upper bound",
    "io.footprint": _FROM_DXT,
    "io.transfer_size": f"{_FROM_DXT}; histogram by the source's own bins, whose upper end belongs to them",
    "io.access_pattern": f"{_FROM_DXT}; whether a file was opened again between two of them is not recorded",
    **dict.fromkeys(("files.readers", "files.writers", "files.stride", "apps.balance.busiest_bytes"), _FROM_DXT),
    **dict.fromkeys(("apps.balance.reading_processes", "apps.balance.writing_processes"), _FROM_DXT),
}
"""For counts whose reads and writes were all traced by DXT."""
