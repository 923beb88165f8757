"""Base of both kinds of Parquet trace: one scan for the tables, then ranks in groups that fit memory."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vani.distinct import distinct
from vani.errors import TraceError
from vani.readers.app_names import app_name
from vani.readers.delivery import Delivery, Rows
from vani.readers.identity import identity_of
from vani.readers.parquet.parts import DamagedPartError, Parts, find_parts, rows_left_out
from vani.readers.paths import PathTable
from vani.readers.process_batches import rank_groups
from vani.readers.tables import file_table, function_table
from vani.readers.trace_reader import BATCH_ROWS, Limit, Piece, some_ranks
from vani.units import counted

__all__ = [
    "SET_BACK_S",
    "Columns",
    "FunctionNames",
    "Known",
    "PairCounter",
    "ParquetReader",
    "RankCounter",
    "coded",
    "indices",
    "integers",
    "nanoseconds",
    "plain_texts",
    "too_long",
]

_GROUP_ROWS = 4 * BATCH_ROWS
"""Ranks are read in groups of about so many calls; a rank with more is read alone, and piece by piece."""

_LONGEST_S = 1.0e9
"""31 years: rows of times beyond are damage."""

SET_BACK_S = 10.0
"""Times may be so far before the start of the run, where a clock was set back."""

_DENSE, _BELIEVED, _SPARSE = 1 << 20, 1 << 16, 16
"""Ranks that are counted in a table; that are believed of any trace; and times the number of ranks, of larger ones."""

_MOST_FUNCTIONS = 1 << 15

_HELD = BATCH_ROWS
"""Rows of a rank, read piece by piece, that wait for those behind them."""

Ints = NDArray[np.int64]
Columns = dict[str, NDArray[Any]]


@dataclass
class Known:
    """Results of one scan of all rows."""

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


class FunctionNames:
    """Codes of function names, in order of first appearance."""

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
        """Note that `rank[i]` names `file[i]`; -1 is not a file."""
        named = file >= 0
        pairs = distinct(rank[named] << 32 | file[named])
        self._pairs = distinct(self._pairs, pairs)

    def users(self, files: int) -> NDArray[np.int32]:
        """Number of ranks by file, shape (files,)."""
        return np.bincount(self._pairs & 0xFFFFFFFF, minlength=files).astype(np.int32)


class RankCounter:
    """Counts calls by rank, in memory that does not grow with the ranks' numbers."""

    def __init__(self) -> None:
        self._few = np.zeros(0, dtype=np.int64)
        """By rank below `_DENSE`."""
        self._ranks = np.empty(0, dtype=np.int64)
        self._calls = np.empty(0, dtype=np.int64)
        """Calls of each of `_ranks`, all above."""

    def add(self, rank: Ints) -> None:
        """Note one call of each of these."""
        low = rank if int(rank.max(initial=0)) < _DENSE else rank[rank < _DENSE]
        more = np.bincount(low)
        total = np.zeros(max(len(self._few), len(more)), dtype=np.int64)
        total[: len(self._few)] += self._few
        total[: len(more)] += more
        self._few = total
        if len(low) < len(rank):
            ranks, calls = np.unique(rank[rank >= _DENSE], return_counts=True)
            every, place = np.unique(np.concatenate((self._ranks, ranks)), return_inverse=True)
            self._calls = np.bincount(place, np.concatenate((self._calls, calls)), len(every)).astype(
                np.int64
            )
            self._ranks = every

    def result(self) -> tuple[Ints, list[str]]:
        """Calls by rank, and problems of the ranks.

        A rank whose number is far above the number of ranks is damage: its rows are left out. Ranks
        without a row between others are lost.
        """
        present = np.concatenate((np.flatnonzero(self._few), self._ranks))
        # Each rank must have some company: one wrong bit makes a rank of millions.
        most = max(_BELIEVED, _SPARSE * len(present))
        stray = present >= most
        believed = present[~stray]
        calls = np.zeros(int(believed[-1]) + 1 if len(believed) else 0, dtype=np.int64)
        calls[: len(self._few)] = self._few[: len(calls)]
        far = believed >= _DENSE
        calls[believed[far]] = self._calls[: int(far.sum())]
        problems = []
        if stray.any():
            rows = int(self._few[most:].sum()) + int(self._calls[self._ranks >= most].sum())
            problems.append(
                rows_left_out(
                    rows,
                    f"of ranks {some_ranks(present[stray])}, far above all others ({len(believed)} in all)",
                )
            )
        gaps = np.flatnonzero(calls == 0)
        if len(gaps):
            problems.append(f"ranks {some_ranks(gaps)}: left out, no row is of them")
        return calls, problems


def too_long(seconds: NDArray[Any]) -> NDArray[np.bool_]:
    """Times that are longer than any run, shape (n,), bool; a NaN is not."""
    is_longer: NDArray[np.bool_] = np.abs(seconds) > _LONGEST_S
    return is_longer


def nanoseconds(seconds: NDArray[Any], *, least: float = 0.0) -> Ints:
    """Whole nanoseconds of times that are not `too_long`; 0 where they are below `least` or not a number."""
    clean = np.nan_to_num(seconds.astype(np.float64), nan=0.0, posinf=_LONGEST_S, neginf=0.0)
    clean[clean < least] = 0.0
    return np.rint(np.minimum(clean, _LONGEST_S) * 1e9).astype(np.int64)


def integers(column: pa.Array, null: int = 0) -> Ints:
    """The column as 64-bit integers, `null` where it is null."""
    values: Ints = pc.fill_null(column, null).to_numpy(zero_copy_only=False)
    return values


def coded(column: pa.DictionaryArray, code: Callable[[str], int]) -> NDArray[np.int32]:
    """Give every row the code of its text, looked up once per distinct text; null reads as no text."""
    texts = plain_texts(column.dictionary)
    lookup = np.array([code(t) for t in texts] + [code("")] * min(column.null_count, 1), dtype=np.int32)
    codes: NDArray[np.int32] = lookup[indices(column)]
    return codes


def indices(column: pa.DictionaryArray) -> Ints:
    """Positions in the dictionary, the one after its end where the column is null."""
    filled = pc.fill_null(column.indices, len(column.dictionary)) if column.null_count else column.indices
    positions: Ints = filled.to_numpy(zero_copy_only=False).astype(np.int64)
    return positions


def plain_texts(texts: pa.Array) -> list[str]:
    """Python strings of an array of texts; bytes that are no UTF-8 become replacement characters."""
    raw = pc.cast(texts, pa.large_binary()).to_pylist()
    return ["" if t is None else t.decode("utf-8", "replace") for t in raw]


class ParquetReader(ABC):
    """A trace in Parquet files: rows of a rank may be anywhere, in any order.

    One scan of the columns that name ranks, functions and files gives the tables. Calls are then read in
    groups of ranks, from the row groups that contain some of them; where files are not sorted
    by rank, every group reads every row group. Rows of a group may be in any order. Those of a rank with more than
    a group contains must be in order but for `_HELD` rows at a time: they are read piece by piece, and not kept.
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
        # Taken before anything is read, so that later changes are noticed.
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
        return function_table(self.known.names)

    def files(self) -> pa.Table:
        return file_table(self.known.paths.paths, self.known.probes)

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
                    # Report the damage rather than an empty trace.
                    why = f": {known.problems[0]}" if known.problems else ""
                    raise TraceError(
                        f"contains no call{why}", where=self.path, todo="trace or convert the run again"
                    )
                self._known = known
            return self._known

    @abstractmethod
    def _scan(self) -> Known:
        """Read every row once; the order of results must depend on the files alone."""

    @abstractmethod
    def _columns(self, ranks: range, left_out: Counter[str]) -> Iterator[Columns]:
        """All rows of `ranks` in the order on disk, as columns of equal length; `left_out` counts those not read."""

    @abstractmethod
    def _order(self, column: Columns) -> tuple[Ints, Ints]:
        """Order of rows by rank and recorded order, and the key, by row, that ascends within a rank in that order."""

    @abstractmethod
    def _rows(self, column: Columns, piece: Piece) -> Rows:
        """Calls of rows that are in order."""

    def batches(self, ranks: range, piece: Piece) -> Iterator[pa.RecordBatch]:
        known = self.known
        private = known.users == 1
        left_out: Counter[str] = Counter()
        for group in rank_groups(ranks, known.calls, _GROUP_ROWS):
            lost = int(known.calls[group.start : group.stop].sum())
            try:
                if lost > _GROUP_ROWS and len(group) == 1:
                    yield from self._in_pieces(group, private, piece, left_out)
                    continue
                column = _joined(list(self._columns(group, left_out)))
                if column is None:
                    continue
                order, _ = self._order(column)
                rows = self._rows({name: values[order] for name, values in column.items()}, piece)
            except DamagedPartError as error:
                piece.problems.append(
                    f"ranks {group.start} to {group.stop - 1}: {counted(lost, 'call')} left out, "
                    f"{error.path.name}: {error.what}"
                )
                continue
            delivery = Delivery(private, known.names, piece, by_time=not known.nested)
            yield from delivery.batches(rows)
        piece.problems += [rows_left_out(rows, why) for why, rows in left_out.items()]

    def _in_pieces(
        self, group: range, private: NDArray[np.bool_], piece: Piece, left_out: Counter[str]
    ) -> Iterator[pa.RecordBatch]:
        """The calls of one rank with many, piece by piece; each piece continues with the state of the one before."""
        known, rank = self.known, group.start
        expected, given = int(known.calls[rank]), 0
        delivery = Delivery(private, known.names, piece, by_time=not known.nested)
        reached: int | None = None
        waiting: Columns | None = None
        try:
            for columns in chain(self._columns(group, left_out), (None,)):
                more = _joined([part for part in (waiting, columns) if part is not None])
                if more is None:
                    return
                order, key = self._order(more)
                if reached is not None and len(order) and int(key[order[0]]) < reached:
                    piece.problems.append(
                        f"rank {rank}: {expected - given:,} of {counted(expected, 'call')} left out, its rows are "
                        f"out of order (rows of ranks with more than {_GROUP_ROWS:,} are not sorted here): "
                        "sort the files by rank and time"
                    )
                    return
                ready = order if columns is None else order[:-_HELD]
                waiting = {name: values[order[len(ready) :]] for name, values in more.items()}
                if not len(ready):
                    continue
                reached = int(key[ready[-1]])
                given += len(ready)
                rows = self._rows({name: values[ready] for name, values in more.items()}, piece)
                del more
                yield from delivery.batches(rows)
        except DamagedPartError as error:
            piece.problems.append(
                f"rank {rank}: {expected - given:,} of {counted(expected, 'call')} left out, "
                f"{error.path.name}: {error.what}"
            )


def _joined(parts: list[Columns]) -> Columns | None:
    """Concatenate arrays; None for none."""
    if not parts:
        return None
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
