"""What both kinds of Parquet trace share: one scan for the tables, then ranks in groups that fit memory."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vani.calls import FILES, FUNCTIONS
from vani.errors import TraceError
from vani.readers.base import BATCH_ROWS, Limit, Piece
from vani.readers.identity import identity_of
from vani.readers.parquet.delivery import Rows, deliver
from vani.readers.parquet.parts import DamagedPartError, Parts, find_parts
from vani.readers.recorder.app_names import app_name
from vani.readers.recorder.signatures import PathTable, classes_of, classify_path, function_rows

__all__ = [
    "Known",
    "Names",
    "PairCounter",
    "ParquetReader",
    "calls_of",
    "coded",
    "indices",
    "integers",
    "nanoseconds",
    "plain_texts",
]

_GROUP_ROWS = 4 * BATCH_ROWS
"""Ranks are read in groups of about so many calls; a rank with more is read alone, and whole."""

_LONGEST_S = 4.0e9
"""126 years: times beyond are damage, and twice as much still fits 64 bits of nanoseconds."""

_MOST_FUNCTIONS = 1 << 15

Ints = NDArray[np.int64]


@dataclass
class Known:
    """What one scan of all rows tells."""

    calls: Ints
    """By rank."""
    paths: PathTable
    names: list[str]
    users: NDArray[np.int32]
    """Number of ranks that name each file."""
    nested: bool
    """Some call has a depth above 0."""
    facts: list[tuple[str, list[str], int]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    probes: NDArray[np.bool_] | None = None
    """Shape (paths,): paths that were only looked for; None where the flags of opens are not known."""


class Names:
    """Codes of function names, in order of first sight."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._code: dict[str, int] = {}

    def code(self, name: str) -> int:
        """Return the name's code, which is new if it was not seen before.

        Raises
        ------
        TraceError
            More names than any tracer's function list has.
        """
        known = self._code.setdefault(name, len(self.names))
        if known == len(self.names):
            if known >= _MOST_FUNCTIONS:
                raise TraceError(f"more than {_MOST_FUNCTIONS} function names; {name[:40]!r} is hardly one")
            self.names.append(name)
        return known


class PairCounter:
    """Counts the ranks that name each file, however often and wherever they do."""

    def __init__(self) -> None:
        self._pairs = np.empty(0, dtype=np.int64)

    def add(self, rank: Ints, file: NDArray[np.int32]) -> None:
        """Note that `rank[i]` names `file[i]`; -1 is no file."""
        named = file >= 0
        pairs = np.unique(rank[named] << 32 | file[named])
        self._pairs = np.union1d(self._pairs, pairs)

    def users(self, files: int) -> NDArray[np.int32]:
        """Number of ranks by file, shape (files,)."""
        return np.bincount(self._pairs & 0xFFFFFFFF, minlength=files).astype(np.int32)


def calls_of(counts: Ints, rank: Ints) -> Ints:
    """Add the calls of one batch to the calls by rank, which grows as ranks appear."""
    more = np.bincount(rank)
    total = np.zeros(max(len(counts), len(more)), dtype=np.int64)
    total[: len(counts)] += counts
    total[: len(more)] += more
    return total


def nanoseconds(seconds: NDArray[Any]) -> Ints:
    """Whole nanoseconds; 0 for what is no time (below 0, not a number), 126 years for what is more."""
    clean = np.nan_to_num(seconds.astype(np.float64), nan=0.0, posinf=_LONGEST_S, neginf=0.0)
    return np.rint(np.clip(clean, 0.0, _LONGEST_S) * 1e9).astype(np.int64)


def integers(column: pa.Array) -> Ints:
    """The column as 64-bit integers, 0 where it is null."""
    values: Ints = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    return values


def coded(column: pa.DictionaryArray, code: Callable[[str], int]) -> NDArray[np.int32]:
    """Give every row the code of its text, looked up once per distinct text; null reads as no text."""
    texts = plain_texts(column.dictionary)
    lookup = np.array([code(t) for t in texts] + [code("")] * min(column.null_count, 1), dtype=np.int32)
    codes: NDArray[np.int32] = lookup[indices(column)]
    return codes


def indices(column: pa.DictionaryArray) -> Ints:
    """Positions in the dictionary, the one behind its end where the column is null."""
    filled = pc.fill_null(column.indices, len(column.dictionary)) if column.null_count else column.indices
    positions: Ints = filled.to_numpy(zero_copy_only=False).astype(np.int64)
    return positions


def plain_texts(texts: pa.Array) -> list[str]:
    """Python strings of an array of texts; bytes that are no UTF-8 become replacement characters."""
    raw = pc.cast(texts, pa.large_binary()).to_pylist()
    return ["" if t is None else t.decode("utf-8", "replace") for t in raw]


class ParquetReader(ABC):
    """A trace in Parquet files: rows of a rank may lie anywhere, in any order.

    One scan of the columns that name ranks, functions and files gives the tables. Calls are then read in
    groups of ranks, from the row groups whose statistics say that they hold them; where files are not sorted
    by rank, every group reads every row group. The calls of the largest single rank must fit in memory (about
    200 bytes each).
    """

    tool: ClassVar[str]
    _required: ClassVar[Mapping[str, pa.DataType]]
    _optional: ClassVar[Mapping[str, pa.DataType]]

    def __init__(self, path: Path) -> None:
        """Read the footers of the files.

        Raises
        ------
        TraceError
            No file can be read, or a column is missing.
        """
        self.path = path
        # Before anything is read: what changes from now on is noticed.
        self._identity = identity_of(path, find_parts, with_ends=True)
        self._parts = Parts(path, self._required, self._optional)
        self._lock = threading.Lock()
        self._known: Known | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # Workers of a cluster open the trace themselves, from the shared file system.
        return type(self), (self.path.absolute(),)

    @property
    def format(self) -> str:
        """Neither converter writes its version."""
        return "parquet"

    @property
    def layout(self) -> str:
        return self.tool

    @property
    def app(self) -> str:
        path = self.path.resolve()
        return app_name(path.parent.name if path.name in ("_parquet", "parquet") else path.name)

    @property
    def ranks(self) -> int:
        return len(self.known.calls)

    @property
    def start_unix_s(self) -> float | None:
        return None

    @property
    @abstractmethod
    def limits(self) -> tuple[Limit, ...]: ...

    @property
    def problems(self) -> list[str]:
        known = self.known  # The scan may find that files are damaged.
        return [*self._parts.problems, *known.problems]

    def digest(self) -> str:
        return self._identity.digest()

    def changed(self) -> bool:
        return identity_of(self.path, find_parts, with_ends=True) != self._identity

    def calls_per_rank(self) -> Ints:
        return self.known.calls

    def functions(self) -> pa.Table:
        columns = list(zip(*function_rows(tuple(self.known.names)), strict=True))
        return pa.Table.from_arrays(
            [pa.array(c, t.type) for c, t in zip(columns, FUNCTIONS, strict=True)], schema=FUNCTIONS
        )

    def files(self) -> pa.Table:
        paths = self.known.paths.paths
        classes = np.array([int(classify_path(p)) for p in paths], np.int8)
        if self.known.probes is not None:
            classes = classes_of(classes, self.known.probes)
        return pa.Table.from_arrays(
            [
                pa.array(np.arange(len(paths), dtype=np.int32)),
                pa.array(paths, pa.string()),
                pa.array(classes, pa.int8()),
            ],
            schema=FILES,
        )

    def facts(self) -> list[tuple[str, list[str], int]]:
        """(function, arguments, number of calls) of the calls in `functions.FACTS`, if arguments are kept."""
        return self.known.facts

    @property
    def known(self) -> Known:
        """The tables, from one scan; files whose rows cannot be read are left out and reported."""
        with self._lock:
            while self._known is None:
                try:
                    known = self._scan()
                except DamagedPartError as error:
                    self._parts.drop(error)
                    continue
                if not known.calls.any():
                    raise TraceError("holds no call", where=self.path, todo="trace or convert the run again")
                self._known = known
            return self._known

    @abstractmethod
    def _scan(self) -> Known:
        """Read every row once; the order of what is found must not depend on anything but the files."""

    @abstractmethod
    def _load(self, ranks: range, piece: Piece) -> Rows:
        """All calls of `ranks`, rank by rank in order."""

    def batches(self, ranks: range, piece: Piece) -> Iterator[pa.RecordBatch]:
        known = self.known
        private = known.users == 1
        for group in _groups(ranks, known.calls):
            try:
                rows = self._load(group, piece)
            except DamagedPartError as error:
                lost = int(known.calls[group.start : group.stop].sum())
                piece.problems.append(
                    f"ranks {group.start} to {group.stop - 1}: {lost} calls left out, "
                    f"{error.path.name}: {error.what}"
                )
                continue
            yield from deliver(rows, private, known.names, piece, by_time=not known.nested)


def _groups(ranks: range, calls: Ints) -> Iterator[range]:
    """Cut a range of ranks where about `_GROUP_ROWS` calls are reached."""
    if ranks.step != 1:
        yield from (range(r, r + 1) for r in ranks)
        return
    first, rows = ranks.start, 0
    for rank in ranks:
        if rows and rows + int(calls[rank]) > _GROUP_ROWS:
            yield range(first, rank)
            first, rows = rank, 0
        rows += int(calls[rank])
    if rows:
        yield range(first, ranks.stop)
