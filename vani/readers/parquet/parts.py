"""The Parquet files of one trace: their names, footers, and rows in bounded batches."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vani.columns import Ints
from vani.errors import TraceError, UnknownFormatError
from vani.readers.files import files_of
from vani.readers.trace_reader import BATCH_ROWS
from vani.units import counted

_MAX_RANKS = 1 << 24
"""No machine runs more processes, so a row with a higher rank is damage."""
_NEEDED = ("level", "arg_count", "tmid")
"""Integer columns besides `rank` that must not be null; in others null means 0, except in `_UNKNOWN`."""
_UNKNOWN = ("size",)


class DamagedPartError(TraceError):
    """A file whose footer is readable but whose rows are not."""

    def __init__(self, fault: str, *, where: str | Path = "", todo: str = "") -> None:
        super().__init__(fault, where=where, todo=todo)
        self.path = Path(where)


def damage(error: BaseException) -> str:
    """A library's error about a damaged file, as one short sentence."""
    first = str(error).strip().splitlines()
    return re.sub(r"\s+", " ", first[0])[:160].rstrip(". ") if first else type(error).__name__


def rows_left_out(rows: int, why: str) -> str:
    """A problem about rows that are not read."""
    return f"{rows:,} row{'s' * (rows != 1)} left out: {why}"


def find_parts(path: Path) -> list[Path]:
    """Parquet files in the directory, or else in its `_parquet`, in natural order."""
    for folder in (path, path / "_parquet"):
        if folder.is_dir() and (parts := files_of(folder, lambda name: Path(name).suffix == ".parquet")):
            return parts
    return []


def column_names(paths: list[Path]) -> tuple[str, ...]:
    """Columns of the first file with an intact footer.

    Raises
    ------
    TraceError
        No file has one.
    """
    first: TraceError | None = None
    for path in paths:
        try:
            with _opened(path) as opened:
                return tuple(opened.schema_arrow.names)
        except (pa.ArrowException, OSError, ValueError) as error:
            first = first or TraceError(
                f"is not a whole Parquet file ({damage(error)})", where=path, todo="copy or convert it again"
            )
    raise first or TraceError("no Parquet files")


@dataclass(frozen=True)
class Footer:
    """A file's footer, by row group."""

    path: Path
    rows: Ints
    low: Ints
    """Lowest rank of each row group; before all rows were read once, the lowest possible one."""
    high: Ints


class Parts:
    """All files of a trace, and their rows as batches of selected columns."""

    def __init__(
        self, path: Path, required: Mapping[str, pa.DataType], optional: Mapping[str, pa.DataType]
    ) -> None:
        """Read the footers.

        Parameters
        ----------
        required, optional
            Types to which columns are cast, with strings dictionary-encoded; if one file lacks an optional column,
            all files are read without it.

        Raises
        ------
        UnknownFormatError
            A required column is missing or has another type.
        TraceError
            No file is readable.
        """
        self.path = path
        self.problems: list[str] = []
        self.ranks = _MAX_RANKS
        """Rows of this and higher ranks are skipped."""
        self._types = {**required, **optional}
        self._texts = [c for c, t in self._types.items() if pa.types.is_large_string(t)]
        self._parts: list[Footer] = []
        present = set(self._types)
        for file in find_parts(path):
            try:
                with _opened(file) as opened:
                    schema = opened.schema_arrow
                    self._check(file, schema, required, optional)
                    part = _footer(file, opened.metadata)
            except (pa.ArrowException, OSError, ValueError) as error:
                self.problems.append(f"{file.name}: left out, it is not a whole Parquet file ({damage(error)})")
                continue
            present &= set(schema.names)
            self._parts.append(part)
        self.columns = [c for c in self._types if c in present]
        self._refuse_none()

    def _refuse_none(self) -> None:
        if not self._parts:
            why = self.problems[0] if self.problems else "there is none"
            raise TraceError(f"no file can be read: {why}", where=self.path, todo="copy or convert it again")

    @staticmethod
    def _check(
        file: Path,
        schema: pa.Schema,
        required: Mapping[str, pa.DataType],
        optional: Mapping[str, pa.DataType],
    ) -> None:
        for name, target in {**required, **optional}.items():
            often = schema.names.count(name)
            kind = schema.field(name).type if often == 1 else None
            if (not often and name in optional) or (kind is not None and _fits(kind, target)):
                continue
            fault = f"has {counted(often, 'column')} {name!r}" if often else f"has no column {name!r}"
            if kind is not None:
                fault = f"column {name!r} contains {kind}, not {target}"
            raise UnknownFormatError(fault, where=file, todo="convert the trace again; all columns are needed")

    @property
    def names(self) -> list[str]:
        return [p.path.name for p in self._parts]

    def drop(self, error: DamagedPartError) -> None:
        """Skip a file whose rows turned out to be damaged.

        Raises
        ------
        TraceError
            It was the last file.
        """
        self._parts = [p for p in self._parts if p.path != error.path]
        self.ranks = _MAX_RANKS
        self.problems.append(f"{error.path.name}: left out, {error.what}")
        self._refuse_none()

    def batches(
        self, columns: list[str], ranks: range | None = None, left_out: Counter[str] | None = None
    ) -> Iterator[tuple[int, dict[str, pa.Array]]]:
        """Yield (number of the file, its columns) in file order, at most `BATCH_ROWS` rows at a time.

        Columns that the files lack are missing. Only row groups that may contain `ranks` are read, and only rows of
        these ranks are yielded. Rows with an impossible rank, or with null in a required number, are skipped;
        `left_out` counts them by fault.

        Raises
        ------
        DamagedPartError
            Rows cannot be read, or have meaningless ranks.
        """
        columns = [c for c in columns if c in self.columns]
        for number, part in enumerate(self._parts):
            groups = np.arange(len(part.rows))
            if ranks is not None:
                groups = groups[(part.low < ranks.stop) & (part.high >= ranks.start)]
            if not len(groups):
                continue
            try:
                # Not read as dictionaries: batches would end with each row group, which may have only 1,024 rows.
                with _opened(part.path) as opened:
                    spans = _Spans(part) if ranks is None else None
                    for batch in opened.iter_batches(BATCH_ROWS, row_groups=groups.tolist(), columns=columns):
                        if spans is not None:
                            spans.add(pc.cast(batch.column("rank"), pa.int64()))
                        yield from self._selected(number, batch, columns, ranks, left_out)
                    if spans is not None:
                        spans.finish()
            except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
                raise DamagedPartError(f"its rows cannot be read ({damage(error)})", where=part.path) from error

    def _selected(
        self,
        number: int,
        batch: pa.RecordBatch,
        columns: list[str],
        ranks: range | None,
        left_out: Counter[str] | None,
    ) -> Iterator[tuple[int, dict[str, pa.Array]]]:
        rank = pc.cast(batch.column("rank"), pa.int64())
        bounds = pc.min_max(rank)
        low, high = bounds["min"].as_py(), bounds["max"].as_py()
        selected = range(self.ranks) if ranks is None else ranks
        if rank.null_count or low is None or not (selected.start <= low and high < selected.stop):
            inside = pc.fill_null(
                pc.and_(pc.greater_equal(rank, selected.start), pc.less(rank, selected.stop)), fill_value=False
            )
            if left_out is not None and ranks is None:
                left_out["no rank"] += rank.null_count
                left_out["a rank below 0"] += pc.sum(pc.less(rank, 0)).as_py() or 0
                left_out[f"a rank of {self.ranks:,} or more"] += pc.sum(pc.greater_equal(rank, self.ranks)).as_py() or 0
            batch = batch.filter(inside)
        for name in _NEEDED:
            if name in columns and (lost := batch.column(name).null_count):
                if left_out is not None:
                    left_out[f"no number in column {name}"] += lost
                batch = batch.filter(pc.is_valid(batch.column(name)))
        if not batch.num_rows:
            return
        yield number, {name: self._column(batch, name) for name in columns}

    def _column(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        column, target = batch.column(name), self._types[name]
        if name in self._texts:
            return column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
        converted = pc.cast(column, target)
        if converted.null_count and pa.types.is_integer(target) and name not in _UNKNOWN:
            return pc.fill_null(converted, 0)
        return converted


def _fits(kind: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_large_string(target):
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
    if pa.types.is_integer(target):
        return bool(pa.types.is_integer(kind))
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


class _Spans:
    """Lowest and highest rank of each row group, computed from a whole file's rows.

    The footer's statistics have them, too, but pyarrow crashes on damaged statistics.
    """

    def __init__(self, part: Footer) -> None:
        self._part = part
        self._ends = np.cumsum(part.rows)
        self._low, self._high = np.full(len(part.rows), _MAX_RANKS), np.full(len(part.rows), -1)
        self._at = 0

    def add(self, rank: pa.Array) -> None:
        """Add the ranks of the next rows."""
        begin, self._at = self._at, self._at + len(rank)
        if not len(rank) or self._at > self._ends[-1]:
            return
        first, last = np.searchsorted(self._ends, (begin, self._at - 1), side="right")
        starts = np.append(0, self._ends[first:last] - begin)
        ranks = pc.fill_null(rank, -1).to_numpy(zero_copy_only=False)
        span = slice(first, last + 1)
        np.minimum(self._low[span], np.minimum.reduceat(ranks, starts), out=self._low[span])
        np.maximum(self._high[span], np.maximum.reduceat(ranks, starts), out=self._high[span])

    def finish(self) -> None:
        """Store the ranges, unless the footer's row count differs."""
        if len(self._ends) and self._at == self._ends[-1]:
            self._part.low[:], self._part.high[:] = self._low, self._high


@contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    # As bytes: pyarrow would treat a path as a URI or UTF-8, and it may be neither.
    with pa.OSFile(os.fsencode(path)) as raw, pq.ParquetFile(raw) as opened:
        yield opened


def _footer(path: Path, metadata: pq.FileMetaData) -> Footer:
    groups = metadata.num_row_groups
    rows = np.array([metadata.row_group(i).num_rows for i in range(groups)], dtype=np.int64)
    if (rows < 0).any() or rows.sum(dtype=np.float64) != metadata.num_rows:
        raise ValueError(f"its row groups do not have {counted(metadata.num_rows, 'row')} in all")
    return Footer(path, rows, np.zeros(groups, np.int64), np.full(groups, _MAX_RANKS))
