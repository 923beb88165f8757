"""Interface of trace readers: they know a trace's size before they read a call, and read ranks in bounded batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.calls import Occurrences
from vani.counts import RunCounts

__all__ = [
    "BATCH_ROWS",
    "CountsCalls",
    "DecodesAgain",
    "Format",
    "KeepsCounts",
    "KeepsTables",
    "Limit",
    "Piece",
    "SeveralApps",
    "TellsCallSites",
    "TraceReader",
    "some_ranks",
]

BATCH_ROWS = 1 << 18
"""Rows of a batch: 2 MiB per 8-byte column, so a batch's columns stay near the processor's caches."""


@dataclass(frozen=True, eq=False)
class Limit:
    """Facts that this trace can never have, or assumptions of its reader."""

    attribute: str
    why: str


@dataclass
class Piece:
    """Summary of the calls of some ranks, made while they are read."""

    records: int = 0
    span_ns: int = 0
    first_ns: int | None = None
    functions: dict[str, int] = field(default_factory=dict)
    ranks_read: int = 0
    repaired_times: int = 0
    bytes: float = 0.0
    """Bytes of all calls together, those of libraries too."""
    time_ns: float = 0.0
    """Time of all calls together."""
    problems: list[str] = field(default_factory=list)
    renames: list[tuple[int, int, int, int]] = field(default_factory=list)
    calls: list[pa.RecordBatch] = field(default_factory=list)
    """The calls, where they stay in memory."""


class TraceReader(Protocol):
    """One trace, a folder or a file, of any tool and version."""

    @property
    def path(self) -> Path: ...

    @property
    def tool(self) -> str:
        """`recorder`, `recorder2parquet`, `wisio`, or what a plug-in reads."""

    @property
    def format(self) -> str:
        """The version that the trace claims, such as `2.5.0`."""

    @property
    def layout(self) -> str:
        """The layout on disk, such as `2.5g`."""

    @property
    def app(self) -> str:
        """Name of the executable, if the trace or its directory's name has it."""

    @property
    def ranks(self) -> int: ...

    @property
    def start_unix_s(self) -> float | None: ...

    @property
    def limits(self) -> tuple[Limit, ...]: ...

    @property
    def problems(self) -> Sequence[str]:
        """Damage that was left out, by the tables; a `Piece` may have more."""

    def digest(self) -> str:
        """Identify the state of the files on disk when the trace was opened, before anything of it was read."""

    def changed(self) -> bool:
        """Return whether that state has changed."""

    def calls_per_rank(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Number of calls of each rank, shape (ranks,), known without reading them."""

    def functions(self) -> pa.Table:
        """The functions that the trace can name, as `vani.calls.FUNCTIONS`."""

    def files(self) -> pa.Table:
        """The files that the trace names, as `vani.calls.FILES`."""

    def facts(self) -> Sequence[tuple[str, Sequence[str], int]]:
        """(function, arguments, number of calls) of the calls in `functions.FACTS`, as far as the trace has them."""

    def batches(self, ranks: range, piece: Piece) -> Iterator[pa.RecordBatch]:
        """Yield the calls of `ranks`, in rank order, in batches that fit `vani.calls.CALLS`.

        A batch contains about `BATCH_ROWS` rows, and hardly ever more than twice as many, so memory does not grow with
        the trace. The summary is added to `piece`. A damaged rank is reported there and the others are still
        read.
        """


@runtime_checkable
class CountsCalls(Protocol):
    """A reader that can count occurrences of calls at a cost that does not grow with the number of calls."""

    def occurrences(self) -> Occurrences:
        """Count the calls; nothing is expanded and no time stamp is read."""


@runtime_checkable
class KeepsCounts(Protocol):
    """A reader whose tracer added up calls while the program ran, and kept none of them."""

    def counts(self) -> RunCounts:
        """All counts."""

    def content(self) -> str:
        """Digest of the content of the log: copies have the same."""


@runtime_checkable
class KeepsTables(Protocol):
    """A reader that keeps the tables of its trace in memory."""

    def release(self) -> None:
        """Forget the tables, which are read again when they are needed."""


@runtime_checkable
class DecodesAgain(Protocol):
    """A reader that may decode its trace once per pass over the calls, in place of a store that is read as often."""

    @property
    def decodes_quickly(self) -> bool:
        """Return whether that costs less."""

    def tell(self, ranks: range) -> Piece:
        """The summary that `batches` would make of some ranks, without the columns of their calls."""

    def batches(self, ranks: range, piece: Piece) -> Iterator[pa.RecordBatch]:
        """See `TraceReader.batches`."""


@runtime_checkable
class SeveralApps(Protocol):
    """A reader of traces that may have processes of several programs, each of which is a trace of the workload."""

    def by_app(self) -> Sequence[TraceReader]:
        """A reader for each program, by start time; the reader itself where there is one."""


@runtime_checkable
class TellsCallSites(Protocol):
    """A reader that knows the place in a program or library from which each call was made."""

    def call_sites(self) -> Iterator[pa.RecordBatch] | None:
        """`vani.calls.CALL_SITES` in batches; None where the tracer did not store them."""

    def batches(self, ranks: range, piece: Piece, *, call_sites: bool = False) -> Iterator[pa.RecordBatch]:
        """See `TraceReader.batches`; with `call_sites` each batch has the column `vani.calls.CALL_SITE`, too."""


def _any_name(name: str) -> bool:
    del name
    return True


@dataclass(frozen=True, eq=False)
class Format:
    """A kind of trace: its recognition and its reader."""

    name: str
    probe: Callable[[Path], bool]
    """Returns whether a path, a folder or a file, is such a trace, damaged or not. It is called for every file,
    so it must read little; `open` explains a damaged trace."""
    open: Callable[[Path], TraceReader]
    """Makes the reader; reads no calls yet. Raises TraceError or UnknownFormatError."""
    is_part: Callable[[str], bool] = _any_name
    """Returns by a file's name whether it would be read as a part of a trace that is a folder."""
    probe_unnamed: Callable[[Path], bool] | None = None
    """Returns the same as `probe` for an unnamed path, among the files next to traces; None: as `probe` does."""

    def is_at(self, path: Path, *, named: bool) -> bool:
        """Return whether such a trace is at a path that the user named, or that was found below one."""
        tells = self.probe if named or self.probe_unnamed is None else self.probe_unnamed
        return tells(path)


def some_ranks(ranks: NDArray[Any]) -> str:
    """Name ranks in a problem: the first five, and the number of all if there are more."""
    shown = ", ".join(str(r) for r in ranks[:5])
    return shown if len(ranks) <= 5 else f"{shown}, ... ({len(ranks)} in all)"
