"""Interface of trace readers: they know a trace's size before reading calls, and read ranks in bounded batches."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from vani.calls import Occurrences
from vani.columns import Numbers
from vani.counts import RunCounts

BATCH_ROWS = 1 << 18
"""Rows per batch: 2 MiB per 8-byte column, so that a batch's columns fit in the processor's caches."""


@dataclass(frozen=True, eq=False)
class Limit:
    """A fact that the trace can never contain, or an assumption of its reader."""

    attribute: str
    why: str


LIMITS_OF_RECORDER = (
    Limit(
        "io.bytes",
        "Recorder stores no return values: bytes are what calls requested, short reads and failed calls look whole",
    ),
    Limit(
        "io.past_end",
        "file ends follow from writes, truncations and opens; a file that the run opens with O_CREAT before anything "
        "else is taken to have been empty then",
    ),
    Limit(
        "io.access_pattern",
        "Recorder names files, not descriptors: two descriptors of one path in one process share a position",
    ),
)
"""Limits of Recorder's traces, also of those that its converter wrote."""


@dataclass
class Piece:
    """Summary of some ranks' calls, made while they are read."""

    records: int = 0
    span_ns: int = 0
    first_ns: int | None = None
    functions: dict[str, int] = field(default_factory=dict)
    ranks_read: int = 0
    repaired_times: int = 0
    bytes: float = 0.0
    """Total bytes of all calls, including library calls."""
    time_ns: float = 0.0
    """Total time of all calls."""
    problems: list[str] = field(default_factory=list)
    renames: list[tuple[int, int, int, int]] = field(default_factory=list)
    calls: list[pa.RecordBatch] = field(default_factory=list)
    """The calls, if they stay in memory."""


class TraceReader(Protocol):
    """One trace, a folder or a file, of any tool and version."""

    @property
    def path(self) -> Path: ...

    @property
    def tool(self) -> str:
        """`recorder`, `recorder2parquet`, `wisio`, or the name of a plug-in's format."""

    @property
    def format(self) -> str:
        """The version that the trace claims, such as `2.5.0`."""

    @property
    def layout(self) -> str:
        """The layout on disk, such as `2.5g`."""

    @property
    def app(self) -> str:
        """Name of the executable, if the trace or its directory name contains it."""

    @property
    def ranks(self) -> int: ...

    @property
    def start_unix_s(self) -> float | None: ...

    @property
    def limits(self) -> tuple[Limit, ...]: ...

    @property
    def problems(self) -> Sequence[str]:
        """Damage found in the tables, which was skipped; a `Piece` may report more."""

    def digest(self) -> str:
        """Identify the state of the files on disk when the trace was opened, before anything was read."""

    def changed(self) -> bool:
        """Return whether that state has changed."""

    def calls_per_rank(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Number of calls of each rank, shape (ranks,), known without reading them."""

    def functions(self) -> pa.Table:
        """The functions that the trace can name, as `vani.calls.FUNCTIONS`."""

    def files(self) -> pa.Table:
        """The files that the trace names, as `vani.calls.FILES`."""

    def facts(self) -> Sequence[tuple[str, Sequence[str], int]]:
        """(function, arguments, number of calls) of the calls in `functions.FACTS` that the trace contains."""

    def batches(self, ranks: range, piece: Piece) -> Iterator[pa.RecordBatch]:
        """Yield the calls of `ranks`, in rank order, in batches with the schema `vani.calls.CALLS`.

        A batch contains about `BATCH_ROWS` rows, and rarely more than twice as many, so memory does not grow with
        the trace. The summary is added to `piece`. A damaged rank is reported there, and the others are still
        read.
        """


@runtime_checkable
class CountsCalls(Protocol):
    """A reader that can count occurrences of calls at a cost that does not grow with the number of calls."""

    def occurrences(self) -> Occurrences:
        """Count the calls, without expanding grammars or reading time stamps."""


@runtime_checkable
class KeepsCounts(Protocol):
    """A reader whose tracer added up calls while the program ran, and kept none of them."""

    def counts(self) -> RunCounts:
        """All counts."""

    def content(self) -> str:
        """Digest of the log's content, which copies share."""


@runtime_checkable
class KeepsTables(Protocol):
    """A reader that keeps its trace's tables in memory."""

    def release(self) -> None:
        """Drop the tables, which are read again when they are needed."""


@runtime_checkable
class DecodesAgain(Protocol):
    """A reader that can decode its trace once per pass over the calls, instead of writing and reading a store."""

    @property
    def decodes_quickly(self) -> bool:
        """Return whether that costs less."""

    def tell(self, ranks: range) -> Piece:
        """The summary that `batches` would make for some ranks, without the columns of their calls."""

    def batches(self, ranks: range, piece: Piece) -> Iterator[pa.RecordBatch]:
        """See `TraceReader.batches`."""


@runtime_checkable
class SeveralApps(Protocol):
    """A reader of traces with processes of several programs, each of which is a trace of the workload."""

    def by_app(self) -> Sequence[TraceReader]:
        """One reader per program, by start time; only the reader itself if there is one program."""


@runtime_checkable
class TellsCallSites(Protocol):
    """A reader that knows the place in a program or library that made each call."""

    def call_sites(self) -> Iterator[pa.RecordBatch] | None:
        """`vani.calls.CALL_SITES` in batches; None if the tracer did not store them."""

    def batches(self, ranks: range, piece: Piece, *, call_sites: bool = False) -> Iterator[pa.RecordBatch]:
        """See `TraceReader.batches`; with `call_sites`, each batch also has the column `vani.calls.CALL_SITE`."""


@runtime_checkable
class NamesCallers(Protocol):
    """A reader that can name the place in the program that makes most calls of a function."""

    def caller_of(self, function: str, rank: int) -> str | None:
        """`FUNCTION in PROGRAM`, or `PROGRAM+OFFSET` as `addr2line` takes it; None if no place makes most calls.

        Where reading all ranks again would take long, `rank` alone is read and named.
        """


def most_of(counts: Counter[str | None]) -> str | None:
    """The place that makes more than half of the calls; None if there is none, or it is not known."""
    place, number = max(counts.items(), key=lambda entry: entry[1], default=(None, 0))
    return place if 2 * number > counts.total() else None


@dataclass(frozen=True, eq=False)
class Format:
    """A trace format: how to recognise and read it."""

    name: str
    probe: Callable[[Path], bool]
    """Returns whether a path (folder or file) is such a trace, damaged or not. It is called for every file,
    so it must read little; `open` explains a damaged trace."""
    open: Callable[[Path], TraceReader]
    """Makes the reader, without reading calls. Raises TraceError or UnknownFormatError."""
    is_part: Callable[[str], bool] = lambda _: True
    """Returns from a file's name whether it would be read as part of a trace that is a folder."""
    probe_unnamed: Callable[[Path], bool] | None = None
    """Like `probe`, for a path that the user did not name, among files next to traces; None means `probe`."""

    def is_at(self, path: Path, *, named: bool) -> bool:
        """Return whether such a trace is at a path that the user named, or that was found below one."""
        recognises = self.probe if named or self.probe_unnamed is None else self.probe_unnamed
        return recognises(path)


def some_ranks(ranks: Numbers) -> str:
    """Name ranks in a problem: the first five, and the total number if there are more."""
    shown = ", ".join(str(r) for r in ranks[:5])
    return shown if len(ranks) <= 5 else f"{shown}, ... ({len(ranks)} in all)"
