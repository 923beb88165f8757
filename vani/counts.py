"""Counts of a run, from a tracer that adds up calls per process and file, and keeps none of them.

One row per process (or all of them together), file and layer. Integers only: nanoseconds, bytes, calls; `UNKNOWN` for
values that the tracer did not count.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

UNKNOWN: Final = -1
ALL_RANKS: Final = -1
"""Rank of a row that adds up all processes of the run."""

COLUMNS: Final = (
    # keys
    "rank", "file", "layer",
    # number of calls, and bytes that they moved
    "reads", "writes", "metadata", "syncs", "opens", "stats", "bytes_read", "bytes_written",
    # total duration of the calls; write time includes flushes
    "read_ns", "write_ns", "metadata_ns",
    # only in rows of all ranks: time and bytes of the slowest and of the fastest rank
    "slowest_rank", "slowest_ns", "slowest_bytes", "fastest_rank", "fastest_ns", "fastest_bytes", "even_bytes",
    # times since the start of the run: of all calls, of reads, of writes
    "first_ns", "last_ns", "read_first_ns", "read_last_ns", "write_first_ns", "write_last_ns",
    # end of the furthest read and write
    "read_end", "write_end",
    # start offsets of data operations: at the previous end; further on; the latter at one of a few distances
    "placed", "consecutive", "forward", "strided", "stride", "stride_count",
    # operations that begin behind the furthest byte so far; operations of both kinds off a multiple of `alignment`
    "ordered_reads", "ordered_writes", "unaligned", "alignment",
)  # fmt: skip
"""Columns of `RunCounts.table`. `even_bytes` is 1 if every process moved the same number of bytes; `placed` is the
number of data operations that the next three describe."""

REQUESTS: Final = ("rank", "file", "layer", "kind", "calls", "bytes", "time_ns", "together")
"""Columns of `RunCounts.requests`; `together` are collective calls."""

Unsound = tuple[str, Literal["read", "written"]]
"""`bytes`, `sizes` or `extents` of reads or writes for which a record contradicts itself, or claims too much."""

Beside = Literal["layouts", "segments", "many_segments", "heat"]
"""Facts about a run in addition to its counts; `many_segments` are too many to read individually."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CountedSizes:
    """Counted sizes of data operations.

    Attributes
    ----------
    bins
        Names of the tracer's own bins.
    ends
        Inclusive upper end of each bin except the last one.
    read, write
        Shape (rows, bins): number of operations in each row of the table.
    row, kind, size, count
        Shape (n,): exact sizes that certainly belong to reads (0) or writes (1) of the row.
    """

    bins: tuple[str, ...]
    ends: Ints
    read: Ints
    write: Ints
    row: Ints
    kind: Ints
    size: Ints
    count: Ints


@dataclass(frozen=True, eq=False)
class FileLayout:
    """Layout of a file on Lustre or CephFS; None if unknown."""

    stripe_count: int | None
    stripe_size: int | None
    """Bytes; for a composite layout, of the component in which the file ends, like the count."""
    components: int
    object_size: int | None = None
    """Bytes, on CephFS."""


@dataclass(frozen=True, eq=False)
class TargetsOfFiles:
    """Storage targets of files; shape (pairs,) each, one pair per file and target."""

    file: Ints
    target: Ints
    """Number of the target on its file system (an OST of Lustre)."""
    of_system: Mapping[int, int]
    """Number of targets of each file's file system, if known."""


@dataclass(frozen=True)
class JobFacts:
    """The job of a run according to its log or trace; None for unknown facts."""

    id: str | None = None
    user: str | None = None
    command: str | None = None
    source: str = "the trace"
    """Source of the facts, in words."""


@dataclass(frozen=True)
class NotCounted:
    """I/O that happened but was not counted: see `vani.schema.profile.Unseen`."""

    kind: Literal["module_off", "module_partial", "names_excluded", "memory_mapped"]
    what: tuple[str, ...]
    """Modules, excluded names, or mapped files."""
    files: tuple[str, ...]
    cause: str
    see_with: str
    most_s: float | None = None


@dataclass(frozen=True, eq=False)
class Segments:
    """POSIX data calls that were kept individually; shape (calls,) each."""

    rank: Ints
    file: Ints
    kind: Ints
    """Read (0) or write (1)."""
    offset: Ints
    size: Ints
    start_ns: Ints
    """Since the start of the run."""
    end_ns: Ints


@dataclass(frozen=True, eq=False)
class Heat:
    """Bytes by process and time bin, over all files; shape (cells,) each, only for cells with bytes."""

    width_ns: int
    """Width of each bin; the first begins with the run."""
    layer: Ints
    """POSIX or STDIO, of `vani.calls.Layer`."""
    rank: Ints
    stretch: Ints
    """Number of the bin, from 0."""
    read: Ints
    written: Ints


@dataclass(frozen=True, eq=False)
class RunCounts:
    """One run of one executable."""

    paths: Sequence[str]
    file_class: NDArray[np.int8]
    """Shape (files,): a `vani.calls.FileClass`."""
    table: Mapping[str, Ints]
    """`COLUMNS`, shape (rows,) each."""
    sizes: CountedSizes
    functions: Mapping[str, int]
    """Number of calls by counter, most frequent first."""
    span_ns: int
    through: Mapping[int, Mapping[int, int]]
    """By layer above the file system and file: number of calls."""
    requests: Mapping[str, Ints] = field(default_factory=dict)
    """`REQUESTS`, shape (rows,) each: data calls of layers above the file system."""
    layouts: Mapping[int, FileLayout] | None = None
    """Layouts by file, for files on Lustre; None if the log has no layouts."""
    mounts: Sequence[tuple[str, str]] = ()
    """(folder, type) of mounted file systems."""
    hosts: Sequence[str] | None = None
    """Names of the nodes; None if those of some process are unknown."""
    segments: Segments | None = None
    heat: Heat | None = None
    """None if it does not cover all processes, or covers none."""
    unsound: Mapping[str, Collection[Unsound]] = field(default_factory=dict)
    """Unknown figures of files whose records contradict themselves, by path."""
    dropped: frozenset[Beside] = frozenset()
    """Kinds of records that were dropped while the program ran, or that are not read."""
    job: JobFacts = field(default_factory=JobFacts)
    hints_passed: int | None = None
    """Number of MPI-IO opens and views with hints; None if not counted."""
    not_counted: Sequence[NotCounted] = ()
    targets: TargetsOfFiles | None = None
    """None if the log does not record targets."""
