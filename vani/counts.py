"""Counts of a run, by a tracer that adds up calls per process and file, and keeps none of them.

One row per process (or all of them together), file and layer. Integers only: nanoseconds, bytes, calls; `UNKNOWN` where
the tracer did not count.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ALL_RANKS",
    "COLUMNS",
    "UNKNOWN",
    "Beside",
    "CountedSizes",
    "FileLayout",
    "Heat",
    "JobFacts",
    "NotCounted",
    "RunCounts",
    "Segments",
    "TargetsOfFiles",
    "Unsound",
]

UNKNOWN: Final = -1
ALL_RANKS: Final = -1
"""Rank of a row that adds up all processes of the run."""

COLUMNS: Final = (
    # whose
    "rank", "file", "layer",
    # how many calls, and bytes that they moved
    "reads", "writes", "metadata", "syncs", "opens", "stats", "bytes_read", "bytes_written",
    # length of the calls, added up; flushes are in that of writes
    "read_ns", "write_ns", "metadata_ns",
    # of a row of all ranks: time and bytes of the slowest rank and of the fastest
    "slowest_rank", "slowest_ns", "slowest_bytes", "fastest_rank", "fastest_ns", "fastest_bytes", "even_bytes",
    # moments since the run began: of all calls, of reads, of writes
    "first_ns", "last_ns", "read_first_ns", "read_last_ns", "write_first_ns", "write_last_ns",
    # end of the furthest read and write
    "read_end", "write_end",
    # where data operations begin: where the one before ended; further on; of these at one of few distances
    "placed", "consecutive", "forward", "strided", "stride", "stride_count",
)  # fmt: skip
"""Columns of `RunCounts.table`. `even_bytes` is 1 where every process moved as many bytes; `placed` is the number of
data operations that the next three describe."""

Unsound = tuple[str, Literal["read", "written"]]
"""`bytes` or `sizes` of reads or writes, where a record contradicts itself."""

Beside = Literal["layouts", "segments", "many_segments", "heat"]
"""Facts about a run besides its counts; `many_segments` are more than are taken one by one."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CountedSizes:
    """Sizes of data operations as they were counted.

    Attributes
    ----------
    bins
        Names of the tracer's own bins.
    ends
        Upper end of each bin but the last one, which belongs to it.
    read, write
        Shape (rows, bins): operations of each row of the table.
    row, kind, size, count
        Shape (n,): exact sizes that are proven to be those of reads (0) or of writes (1) of the row.
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
    """Layout of a file on Lustre; None: not known."""

    stripe_count: int | None
    stripe_size: int | None
    """Bytes; for a composite layout that of the component in which the file ends, as the count."""
    components: int


@dataclass(frozen=True, eq=False)
class TargetsOfFiles:
    """Storage targets of files; shape (pairs,) each, a pair per file and target."""

    file: Ints
    target: Ints
    """Number of the target on its file system (an OST of Lustre)."""
    of_system: Mapping[int, int]
    """By file: targets of its file system, where that is known."""


@dataclass(frozen=True)
class JobFacts:
    """The job of a run as its log or trace names it; None where it does not."""

    id: str | None = None
    user: str | None = None
    command: str | None = None
    source: str = "the trace"
    """Place of the record, in words."""


@dataclass(frozen=True)
class NotCounted:
    """I/O that happened and was not counted: see `vani.schema.profile.Unseen`."""

    kind: Literal["module_off", "module_partial", "names_excluded"]
    what: tuple[str, ...]
    """Modules, or names that were left out."""
    files: tuple[str, ...]
    cause: str
    see_with: str
    most_s: float | None = None


@dataclass(frozen=True, eq=False)
class Segments:
    """Data calls of POSIX that were kept one by one; shape (calls,) each."""

    rank: Ints
    file: Ints
    kind: Ints
    """Read (0) or write (1)."""
    offset: Ints
    size: Ints
    start_ns: Ints
    """Since the run began."""
    end_ns: Ints


@dataclass(frozen=True, eq=False)
class Heat:
    """Bytes by process and stretch of time, over all files; shape (cells,) each, a cell where something was moved."""

    width_ns: int
    """Width of each stretch; the first begins with the run."""
    layer: Ints
    """POSIX or STDIO, of `vani.calls.Layer`."""
    rank: Ints
    stretch: Ints
    """Number of the stretch, from 0."""
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
    """Calls by counter, most first."""
    span_ns: int
    through: Mapping[int, Mapping[int, tuple[int, int, int]]]
    """By layer above the file system and file: its calls, those that move data, and of these the collective ones."""
    requested: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """By layer above the file system: bytes that its calls requested to read and to write; missing where some were not
    counted."""
    layouts: Mapping[int, FileLayout] | None = None
    """By file, of those on Lustre; None where the log has no layouts."""
    mounts: Sequence[tuple[str, str]] = ()
    """(folder, type) of file systems that were mounted."""
    hosts: Sequence[str] | None = None
    """Names of the nodes; None where those of some process are not known."""
    segments: Segments | None = None
    heat: Heat | None = None
    """None where it does not cover all processes, or covers none."""
    unsound: Mapping[str, Collection[Unsound]] = field(default_factory=dict)
    """Unknown figures of files whose records contradict themselves, by path."""
    dropped: frozenset[Beside] = frozenset()
    """Kinds of records that were dropped while the program ran, or that are not taken."""
    job: JobFacts = field(default_factory=JobFacts)
    hints_passed: int | None = None
    """Opens and views of MPI-IO that passed hints; None where that was not counted."""
    not_counted: Sequence[NotCounted] = ()
    targets: TargetsOfFiles | None = None
    """None where the log does not record targets."""
