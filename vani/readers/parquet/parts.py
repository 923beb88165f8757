"""The Parquet files of one trace: which they are, what their footers say, their rows in bounded batches."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from vani.errors import TraceError, UnknownFormatError
from vani.readers.base import BATCH_ROWS

__all__ = ["DamagedPartError", "Part", "Parts", "column_names", "damage", "find_parts", "natural"]

Ints = NDArray[np.int64]

_MOST_RANKS = 1 << 24
"""No machine runs more processes; a rank beyond is damage, and tables by rank are not allocated for it."""


class DamagedPartError(TraceError):
    """A file's rows cannot be read although its footer can."""

    def __init__(self, what: str, *, where: str | Path = "", todo: str = "") -> None:
        super().__init__(what, where=where, todo=todo)
        self.path = Path(where)


def damage(error: BaseException) -> str:
    """What a library says about a damaged file, in one short sentence."""
    first = str(error).strip().splitlines()
    return re.sub(r"\s+", " ", first[0])[:160].rstrip(". ") if first else type(error).__name__


def natural(name: str) -> list[tuple[int, str]]:
    """Key that sorts `part.10` behind `part.9`."""
    return [(int(p), "") if p.isdecimal() else (-1, p) for p in re.split(r"(\d{1,18})", name)]


def find_parts(path: Path) -> list[Path]:
    """Parquet files of the directory, else of `_parquet` in it, in natural order."""
    for folder in (path, path / "_parquet"):
        try:
            found = [p for p in folder.iterdir() if p.suffix == ".parquet" and p.is_file()]
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise TraceError(f"cannot be listed ({error.strerror})", where=folder) from error
        if found:
            return sorted(found, key=lambda p: natural(p.name))
    return []


def column_names(paths: list[Path]) -> tuple[str, ...]:
    """Columns of the first file whose footer is whole.

    Raises
    ------
    TraceError
        None is.
    """
    first: TraceError | None = None
    for path in paths:
        try:
            with _opened(path) as opened:
                return tuple(opened.schema_arrow.names)
        except (pa.ArrowException, OSError, ValueError) as error:
            first = first or TraceError(
                f"is no whole Parquet file ({damage(error)})", where=path, todo="copy or convert it again"
            )
    raise first or TraceError("no Parquet files")


@dataclass(frozen=True)
class Part:
    """What the footer of one file says, by row group."""

    path: Path
    rows: Ints
    low: Ints
    """Lowest rank of the row group; where no statistics tell, the lowest there is."""
    high: Ints


class Parts:
    """All files of a trace, and their rows as batches of the few columns that are asked for."""

    def __init__(
        self, path: Path, required: Mapping[str, pa.DataType], optional: Mapping[str, pa.DataType]
    ) -> None:
        """Read the footers.

        Parameters
        ----------
        required, optional
            Types to which columns are cast, texts dictionary-encoded; a file without an optional column
            reads as without it everywhere.

        Raises
        ------
        UnknownFormatError
            A required column is missing or of another kind.
        TraceError
            No file can be read.
        """
        self.path = path
        self.problems: list[str] = []
        self._types = {**required, **optional}
        self._texts = [c for c, t in self._types.items() if pa.types.is_large_string(t)]
        self._parts: list[Part] = []
        present = set(self._types)
        for file in find_parts(path):
            try:
                with _opened(file) as opened:
                    schema = opened.schema_arrow
                    self._check(file, schema, required)
                    part = _part(file, opened.metadata)
            except (pa.ArrowException, OSError, ValueError) as error:
                self.problems.append(f"{file.name}: left out, it is no whole Parquet file ({damage(error)})")
                continue
            present &= set(schema.names)
            self._parts.append(part)
        self.columns = [c for c in self._types if c in present]
        if not self._parts:
            raise TraceError(
                f"no file can be read: {self.problems[0] if self.problems else 'there is none'}",
                where=path,
                todo="copy or convert it again",
            )

    @staticmethod
    def _check(file: Path, schema: pa.Schema, required: Mapping[str, pa.DataType]) -> None:
        for name, wanted in required.items():
            if name not in schema.names:
                raise UnknownFormatError(
                    f"has no column {name!r}",
                    where=file,
                    todo="convert the trace again; all columns are needed",
                )
            found = schema.field(name).type
            if not _fits(found, wanted):
                raise UnknownFormatError(
                    f"column {name!r} holds {found}, not {wanted}", where=file, todo="convert the trace again"
                )

    @property
    def names(self) -> list[str]:
        return [p.path.name for p in self._parts]

    def drop(self, error: DamagedPartError) -> None:
        """Leave out a file whose rows turned out to be damaged.

        Raises
        ------
        TraceError
            It was the last.
        """
        self._parts = [p for p in self._parts if p.path != error.path]
        self.problems.append(f"{error.path.name}: left out, {error.what}")
        if not self._parts:
            raise TraceError(
                f"no file can be read: {self.problems[0]}", where=self.path, todo="copy or convert it again"
            )

    def digest(self) -> str:
        """Identify the files by names, sizes, times of change, and first and last bytes (the footers)."""
        digest = hashlib.sha256()
        for file in find_parts(self.path):
            stat = file.stat()
            digest.update(f"{file.name}\0{stat.st_size}\0{stat.st_mtime_ns}\0".encode())
            with file.open("rb") as opened:
                digest.update(opened.read(4096))
                opened.seek(max(0, stat.st_size - 4096))
                digest.update(opened.read(4096))
        return digest.hexdigest()

    def batches(
        self, columns: list[str], ranks: range | None = None
    ) -> Iterator[tuple[int, dict[str, pa.Array]]]:
        """Yield (number of the file, its columns) in the order on disk, at most `BATCH_ROWS` rows at a time.

        Columns that the files do not have are left out. Only row groups that can hold `ranks` are read, and
        only rows of them are delivered.

        Raises
        ------
        DamagedPartError
            Rows cannot be read, or their ranks make no sense.
        """
        columns = [c for c in columns if c in self.columns]
        for number, part in enumerate(self._parts):
            groups = np.arange(len(part.rows))
            if ranks is not None:
                groups = groups[(part.low < ranks.stop) & (part.high >= ranks.start)]
            if not len(groups):
                continue
            try:
                # Not read as dictionaries: batches would end with each row group, perhaps of 1,024 rows.
                with _opened(part.path) as opened:
                    for batch in opened.iter_batches(BATCH_ROWS, row_groups=groups.tolist(), columns=columns):
                        yield from self._selected(number, batch, columns, ranks)
            except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
                raise DamagedPartError(
                    f"its rows cannot be read ({damage(error)})", where=part.path
                ) from error

    def _selected(
        self, number: int, batch: pa.RecordBatch, columns: list[str], ranks: range | None
    ) -> Iterator[tuple[int, dict[str, pa.Array]]]:
        part = self._parts[number]
        rank = pc.cast(batch.column("rank"), pa.int64())
        if rank.null_count:
            raise DamagedPartError("it has rows without rank", where=part.path)
        bounds = pc.min_max(rank)
        low, high = bounds["min"].as_py(), bounds["max"].as_py()
        if low is None:
            return
        if low < 0 or high >= _MOST_RANKS:
            raise DamagedPartError(f"it has rows of rank {low if low < 0 else high}", where=part.path)
        if ranks is not None and not (ranks.start <= low and high < ranks.stop):
            inside = pc.and_(pc.greater_equal(rank, ranks.start), pc.less(rank, ranks.stop))
            batch = batch.filter(inside)
        if not batch.num_rows:
            return
        yield number, {name: self._column(batch, name) for name in columns}

    def _column(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        column = batch.column(name)
        if name not in self._texts:
            return pc.cast(column, self._types[name])
        return column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)


def _fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_dictionary(found):
        found = found.value_type
    if pa.types.is_large_string(wanted):
        return bool(
            pa.types.is_string(found) or pa.types.is_large_string(found) or pa.types.is_string_view(found)
        )
    if pa.types.is_integer(wanted):
        return bool(pa.types.is_integer(found))
    return bool(pa.types.is_floating(found) or pa.types.is_integer(found))


@contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    # As bytes: pyarrow takes a path for a URI or UTF-8, neither of which it need be.
    with pa.OSFile(os.fsencode(path)) as raw, pq.ParquetFile(raw) as opened:
        yield opened


def _part(path: Path, metadata: pq.FileMetaData) -> Part:
    groups = metadata.num_row_groups
    rows = np.empty(groups, dtype=np.int64)
    low = np.zeros(groups, dtype=np.int64)
    high = np.full(groups, _MOST_RANKS, dtype=np.int64)
    column = metadata.schema.names.index("rank")
    for index in range(groups):
        group = metadata.row_group(index)
        rows[index] = group.num_rows
        statistics = group.column(column).statistics
        if statistics is not None and statistics.has_min_max:
            low[index], high[index] = statistics.min, statistics.max
    return Part(path, rows, low, high)
