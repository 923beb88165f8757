"""Base of both Parquet readers: one scan for the tables, then groups of ranks that fit in memory."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vani.columns import Bools, Columns, Int32s, Ints, Numbers
from vani.errors import TraceError
from vani.readers.delivery import Delivery, Rows
from vani.readers.parquet.parts import DamagedPartError, Parts, find_parts, rows_left_out
from vani.readers.programs import app_name
from vani.readers.scanned import GROUP_ROWS, Known, ScannedReader, joined, rank_groups
from vani.readers.signatures import Codes
from vani.readers.trace_reader import BATCH_ROWS, Piece, some_ranks
from vani.units import counted

_LONGEST_S = 1.0e9
"""31 years; rows with longer times are damage."""

SET_BACK_S = 10.0
"""Times may be this long before the start of the run, if a clock was set back."""

_DENSE, _BELIEVED, _SPARSE = 1 << 20, 1 << 16, 16
"""Ranks counted without sorting, rank numbers accepted in any trace, and the limit of others per present rank."""

_MAX_FUNCTIONS = 1 << 15

_HELD = BATCH_ROWS
"""Rows of a rank read in pieces that wait for rows after them."""


@dataclass(frozen=True, kw_only=True)
class KnownTables(Known):
    """Results of one scan of all rows."""

    nested: bool
    """Some call has a depth above 0."""
    facts: list[tuple[str, list[str], int]] = field(default_factory=list)


class FunctionNames(Codes):
    """Codes of function names."""

    def number(self, text: str) -> int:
        """Return the name's code; a new name gets a new code.

        Raises
        ------
        TraceError
            There are more names than in any tracer's function list.
        """
        code = super().number(text)
        if code >= _MAX_FUNCTIONS:
            raise TraceError(f"more than {_MAX_FUNCTIONS} function names; {text[:40]!r} is hardly one")
        return code


class RankCounter:
    """Counts calls by rank, in memory that does not depend on how large rank numbers are."""

    def __init__(self) -> None:
        self._ranks = np.empty(0, dtype=np.int64)
        self._calls = np.empty(0, dtype=np.int64)
        """Calls of each rank in `_ranks`."""

    def add(self, rank: Ints) -> None:
        """Count one call for each of these ranks."""
        if int(rank.max(initial=0)) < _DENSE:
            calls = np.bincount(rank)
            ranks = np.flatnonzero(calls)
            calls = calls[ranks]
        else:
            ranks, calls = np.unique(rank, return_counts=True)
        self._ranks, place = np.unique(np.concatenate((self._ranks, ranks)), return_inverse=True)
        weights = np.concatenate((self._calls, calls))
        self._calls = np.bincount(place, weights, len(self._ranks)).astype(np.int64)

    def result(self) -> tuple[Ints, list[str]]:
        """Calls by rank, and problems with ranks.

        A rank number far above the number of ranks is damage, and its rows are skipped. Ranks without rows
        between other ranks are lost.
        """
        # A single flipped bit can create a rank of millions, so the limit grows with the ranks that are present.
        stray = self._ranks >= max(_BELIEVED, _SPARSE * len(self._ranks))
        believed = self._ranks[~stray]
        calls = np.zeros(int(believed[-1]) + 1 if len(believed) else 0, dtype=np.int64)
        calls[believed] = self._calls[~stray]
        problems = []
        if stray.any():
            above = f"of ranks {some_ranks(self._ranks[stray])}, far above all others ({len(believed)} in all)"
            problems.append(rows_left_out(int(self._calls[stray].sum()), above))
        gaps = np.flatnonzero(calls == 0)
        if len(gaps):
            problems.append(f"ranks {some_ranks(gaps)}: left out, no row is of them")
        return calls, problems


def too_long(seconds: Numbers) -> Bools:
    """Whether times are longer than any run, shape (n,), bool; False for NaN."""
    is_longer: Bools = np.abs(seconds) > _LONGEST_S
    return is_longer


def nanoseconds(seconds: Numbers, *, least: float = 0.0) -> Ints:
    """Whole nanoseconds of times that are not `too_long`; 0 for times below `least` and NaN."""
    clean = np.nan_to_num(seconds.astype(np.float64), nan=0.0, posinf=_LONGEST_S, neginf=0.0)
    clean[clean < least] = 0.0
    return np.rint(np.minimum(clean, _LONGEST_S) * 1e9).astype(np.int64)


def integers(column: pa.Array, null: int = 0) -> Ints:
    """The column as 64-bit integers, with `null` in place of nulls."""
    values: Ints = pc.fill_null(column, null).to_numpy(zero_copy_only=False)
    return values


def coded(column: pa.DictionaryArray, code: Callable[[str], int]) -> Int32s:
    """Code of each row's text, looked up once per distinct text; null counts as an empty text."""
    texts = plain_texts(column.dictionary)
    lookup = np.array([code(t) for t in texts] + [code("")] * min(column.null_count, 1), dtype=np.int32)
    return lookup[indices(column)]


def indices(column: pa.DictionaryArray) -> Ints:
    """Dictionary index of each row; nulls get the index after the last."""
    filled = pc.fill_null(column.indices, len(column.dictionary)) if column.null_count else column.indices
    positions: Ints = filled.to_numpy(zero_copy_only=False).astype(np.int64)
    return positions


def plain_texts(texts: pa.Array) -> list[str]:
    """Python strings from an array of texts; invalid UTF-8 becomes replacement characters."""
    raw = pc.cast(texts, pa.large_binary()).to_pylist()
    return ["" if t is None else t.decode("utf-8", "replace") for t in raw]


class ParquetReader(ScannedReader[KnownTables]):
    """A trace in Parquet files, in which a rank's rows may be anywhere and in any order.

    One scan of the columns with ranks, functions and files provides the tables. Calls are then read in
    groups of ranks, from the row groups that contain some of them; if files are not sorted
    by rank, every group reads every row group. A group's rows may be in any order. A rank with more rows than
    a group is read in pieces that are not kept, so its rows may be out of order by at most `_HELD` rows.
    """

    format: ClassVar = "parquet"
    """The same for all, because neither converter writes its version."""
    _parts_of = staticmethod(find_parts)
    _handles = 0
    """Number of ids with which calls name open files."""
    _required: ClassVar[Mapping[str, pa.DataType]]
    _optional: ClassVar[Mapping[str, pa.DataType]]

    def __init__(self, path: Path) -> None:
        """Read the files' footers.

        Raises
        ------
        TraceError
            No file is readable, or a column is missing.
        """
        super().__init__(path)
        self._parts = Parts(path, self._required, self._optional)

    @property
    def layout(self) -> str:
        return self.tool

    @property
    def app(self) -> str:
        path = self.path.resolve()
        return app_name(path.parent.name if path.name in ("_parquet", "parquet") else path.name)

    @property
    def problems(self) -> list[str]:
        known = self.known  # The scan may find that files are damaged.
        return [*self._parts.problems, *known.problems]

    def facts(self) -> list[tuple[str, list[str], int]]:
        """(function, arguments, number of calls) of calls in `functions.FACTS`, if the trace has arguments."""
        return self.known.facts

    def _scan(self) -> KnownTables:
        """The tables, from one scan; files with unreadable rows are skipped and reported."""
        while True:
            try:
                known = self._tables()
            except DamagedPartError as error:
                self._parts.drop(error)
                continue
            if not known.calls.any():
                # Report the damage rather than an empty trace.
                why = f": {known.problems[0]}" if known.problems else ""
                raise TraceError(f"contains no call{why}", where=self.path, todo="trace or convert the run again")
            return known

    @abstractmethod
    def _tables(self) -> KnownTables:
        """Read every row once; the order of results must depend only on the files."""

    def _calls_of(self, counter: RankCounter, left_out: Counter[str]) -> tuple[Ints, list[str]]:
        """Calls per rank after the scan, and problems with ranks; `left_out` counts skipped rows by fault."""
        calls, problems = counter.result()
        self._parts.ranks = len(calls)
        return calls, problems + [rows_left_out(rows, why) for why, rows in (+left_out).items() if "rank" in why]

    @staticmethod
    def _without(wrong: Bools, column: Columns, left_out: Counter[str]) -> Columns:
        """Columns without rows whose times are `wrong`."""
        if not wrong.any():
            return column
        left_out["a time that no run reaches"] += int(wrong.sum())
        return {name: values[~wrong] for name, values in column.items()}

    @abstractmethod
    def _columns(self, ranks: range, left_out: Counter[str]) -> Iterator[Columns]:
        """All rows of `ranks` in file order, as columns of equal length; `left_out` counts skipped rows."""

    @abstractmethod
    def _order(self, column: Columns) -> tuple[Ints, Ints]:
        """Row order by rank and recorded order, and a key per row that ascends within a rank in that order."""

    @abstractmethod
    def _rows(self, column: Columns, piece: Piece) -> Rows:
        """Calls from ordered rows."""

    def batches(self, ranks: range, piece: Piece) -> Iterator[pa.RecordBatch]:
        left_out: Counter[str] = Counter()
        for group in rank_groups(ranks, self.known.calls, GROUP_ROWS):
            yield from self._group(group, piece, left_out)
        piece.problems += [rows_left_out(rows, why) for why, rows in (+left_out).items()]

    def _group(self, group: range, piece: Piece, left_out: Counter[str]) -> Iterator[pa.RecordBatch]:
        """Yield the calls of some ranks; those of one large rank in pieces, each continuing the state of the last."""
        known, given = self.known, 0
        expected = int(known.calls[group.start : group.stop].sum())
        is_large = expected > GROUP_ROWS and len(group) == 1
        delivery = Delivery(piece, known.names, known.users == 1, by_time=not known.nested, handles=self._handles)
        reached: int | None = None
        waiting: list[Columns] = []
        try:
            for columns in chain(self._columns(group, left_out), (None,)):
                waiting += () if columns is None else (columns,)
                if not waiting or not (is_large or columns is None):
                    continue
                more = joined(waiting)
                order, key = self._order(more)
                if reached is not None and len(order) and int(key[order[0]]) < reached:
                    piece.problems.append(
                        f"rank {group.start}: {expected - given:,} of {counted(expected, 'call')} left out, its rows "
                        f"are out of order (rows of ranks with more than {GROUP_ROWS:,} are not sorted here): "
                        "sort the files by rank and time"
                    )
                    return
                ready = order if columns is None else order[:-_HELD]
                waiting = [{name: values[order[len(ready) :]] for name, values in more.items()}]
                if not len(ready):
                    continue
                reached = int(key[ready[-1]])
                given += len(ready)
                rows = self._rows({name: values[ready] for name, values in more.items()}, piece)
                del more
                yield from delivery.batches(rows)
        except DamagedPartError as error:
            calls = counted(expected, "call")
            lost = f"ranks {group.start} to {group.stop - 1}: {calls}"
            if is_large:
                lost = f"rank {group.start}: {expected - given:,} of {calls}"
            piece.problems.append(f"{lost} left out, {error.path.name}: {error.what}")
