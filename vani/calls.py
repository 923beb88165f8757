"""The call table, which every reader provides and every analyzer processes.

One row per traced call, in the order in which the tracer recorded them, process by process.
Integers only; unknown values are null.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

DXT: Final = "dxt"
HEAT_MAP: Final = "heat map"
"""Layouts of the calls that a log of counts kept: reads and writes, or bytes of each process in each bin of time."""


class Layer(IntEnum):
    """The library to which a call belongs; `POSIX` and `STDIO` are the file-system calls."""

    POSIX = 0
    STDIO = 1
    MPIIO = 2
    HDF5 = 3
    PNETCDF = 4
    NETCDF = 5
    MPI = 6
    GPU = 7
    USER = 8


class Kind(IntEnum):
    """Effect of a call. A file-system call has exactly one of the first four."""

    READ = 0
    WRITE = 1
    METADATA = 2
    SYNC = 3
    """Flushes written data (fsync, fdatasync, fflush, msync, sync_file_range, MPI_File_sync)."""
    COMMUNICATION = 4
    OTHER = 5


class Flag(IntFlag):
    """Facts about a single call that attributes need and that its function's name does not show."""

    OPEN = 1 << 0
    """Opens (or creates) its file."""
    CREATE = 1 << 1
    """Creates its file if it is absent (O_CREAT, creat, fopen w or a)."""
    TRUNCATE = 1 << 2
    """Empties its file (O_TRUNC, creat, fopen w)."""
    APPEND = 1 << 3
    """Opens for appending, or writes through such a descriptor: the offset is the end of the file."""
    CLOSE = 1 << 4
    REMOVE = 1 << 5
    """Removes its path (unlink, remove)."""
    RENAME = 1 << 6
    RESIZE = 1 << 7
    """Sets the length of its file (truncate, ftruncate, MPI_File_set_size): `offset` is the new length."""
    SEEK = 1 << 8
    """Sets the file position: `offset` is the position after the call."""
    COLLECTIVE = 1 << 9
    """Involves every process of the communicator (MPI_File_*_all, MPI_Barrier, ...)."""
    WORLD = 1 << 10
    """Uses MPI_COMM_WORLD and returns only after every process has entered, so that clocks can be compared."""
    NESTED = 1 << 11
    """A file-system call made inside another file-system call, and counted with the outer one."""
    DIRECTORY = 1 << 12
    """Names a directory, which is not a file of the data set (mkdir, opendir, chdir, ...)."""
    WRITABLE = 1 << 13
    """Opens for writing (O_WRONLY, O_RDWR, fopen w, a, +). Without `OPEN`: the end of the file is unknown
    from here on, because the file may be written through a descriptor whose calls are not traced (fcntl(F_DUPFD)), or
    because a position exceeded any that a file system supports."""
    STAT = 1 << 14
    """Queries its path without opening it (stat, access, readlink)."""


DIRECT: Final = -(1 << 15)
"""Opens its file bypassing the client's cache (O_DIRECT). As the sign bit of the flags, it is no member of `Flag`."""

SYNCHRONOUS: Final = Flag.COLLECTIVE
"""Opens its file so that each write waits for the storage (O_SYNC, O_DSYNC), or writes through such a descriptor. No
open or write of a file system is collective: on those of POSIX and stdio, the bit of `Flag.COLLECTIVE` has this
meaning."""

FAILED: Final = Flag.COLLECTIVE
"""Looked for a name that is not there, or did not get a lock. The meaning of the same bit on calls of POSIX and stdio
that do not open: a failed open has no `Flag.OPEN`. Only sources with results of calls have it."""

LOCK: Final = Flag.APPEND
"""Locks or unlocks its file (flock, lockf, fcntl). Only opens and writes append: on other calls, the bit of
`Flag.APPEND` has this meaning."""


class FileClass(IntEnum):
    """Class of a path: in the data set, or counted apart (contract, "file"). All but `PROBE` follow from the path."""

    DATASET = 0
    STANDARD_STREAM = 1
    SOCKET_OR_PIPE = 2
    SYSTEM = 3
    """/proc, /sys, /dev (except /dev/shm)."""
    SHARED_LIBRARY = 4
    PROBE = 5
    """Was looked up and, according to the trace, not found (opened without O_CREAT, and nothing else)."""


CALLS = pa.schema(
    [
        pa.field("rank", pa.int32(), nullable=False),
        pa.field("thread", pa.int32(), nullable=False),
        pa.field("func", pa.int16(), nullable=False),
        pa.field("layer", pa.int8(), nullable=False),
        pa.field("kind", pa.int8(), nullable=False),
        pa.field("depth", pa.int8(), nullable=False),
        # The layer of the outermost traced call around this call. If there is none, the layer of the library whose
        # code made it, or its own if the application made it or the origin is unknown.
        pa.field("via", pa.int8(), nullable=False),
        # A bit (1 << layer) for its own layer, each layer of the traced calls around it, and the library that made it.
        pa.field("within", pa.int16(), nullable=False),
        pa.field("flags", pa.int16(), nullable=False),
        pa.field("file", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("bytes", pa.int64()),
        pa.field("start_ns", pa.int64(), nullable=False),
        pa.field("duration_ns", pa.int64(), nullable=False),
    ]
)
"""`rank` is the rank within its trace, `start_ns` counts from the start of the trace's rank 0 (on each rank's own
clock), `func` and `file` are codes into the tables below, and `bytes` are the bytes that a data call requested (or
moved, if the trace stores return values).

The meaning of `offset` depends on layer, kind and flags: the byte of the file at which a POSIX or STDIO data call
begins; the position that an MPIIO data call names, in units of its view; the position after a call with `Flag.SEEK`;
the length that a call with `Flag.RESIZE` sets; the byte at which the view of MPI_File_set_view begins. Other calls have
no offset."""

MAX_SUM = 1 << 62
"""Upper bound of the bytes and nanoseconds of all calls of a workload together (4 EiB, 146 years): 64-bit sums
can hold twice as much."""

CALL_SITE = pa.field("call_site", pa.int32())
"""Optional additional column of `CALLS`: the number of the place that made the call, among those of its
rank in `CALL_SITES`; null if unknown."""

CALL_SITES = pa.schema(
    [("rank", pa.int32()), ("call_site", pa.int32()), ("module", pa.string()), ("offset", pa.uint64())]
)
"""The places that made calls: `module` is the path of an executable or library, and `offset` the offset of the call in
it, as `addr2line` expects it."""

FUNCTIONS = pa.schema([("func", pa.int16()), ("name", pa.string()), ("layer", pa.int8()), ("kind", pa.int8())])
"""The functions of a trace: `func` is the code in `CALLS`, `layer` is a `Layer`, and `kind` is a `Kind`."""

FILES = pa.schema([("file", pa.int32()), ("path", pa.string()), ("class", pa.int8())])
"""The files of a trace: `file` is the code in `CALLS`, and `class` is a `FileClass`."""

RENAMES = pa.schema([("rank", pa.int32()), ("start_ns", pa.int64()), ("old", pa.int32()), ("new", pa.int32())])
"""Renamed files: at `start_ns` on `rank`'s clock, `old` became `new`."""

OCCURRENCES = pa.schema(
    [
        pa.field("group", pa.int32(), nullable=False),
        pa.field("func", pa.int16(), nullable=False),
        pa.field("layer", pa.int8(), nullable=False),
        pa.field("kind", pa.int8(), nullable=False),
        # Null if only times could show which call made which.
        pa.field("via", pa.int8()),
        pa.field("within", pa.int16()),
        pa.field("flags", pa.int16(), nullable=False),
        pa.field("file", pa.int32()),
        pa.field("rename_to", pa.int32()),
        pa.field("bytes", pa.int64()),
        pa.field("count", pa.int64(), nullable=False),
    ]
)
"""Distinct calls of processes that make the same calls: each process makes `count` of them. Columns are as in `CALLS`;
the file of a library call may be null if a handle names it. `Flag.APPEND` is set only on opens: whether a write appends
depends on the order of calls."""


@dataclass(frozen=True, eq=False)
class Occurrences:
    """Number of occurrences of each call in a trace, without order and times.

    Attributes
    ----------
    group_of_rank
        Shape (ranks,): ranks in one group make the same calls; -1 for a rank without calls.
    batches
        Yields record batches of `OCCURRENCES`; each group is within one batch. It can be called repeatedly.
    """

    group_of_rank: NDArray[np.int64]
    batches: Callable[[], Iterator[pa.RecordBatch]]
