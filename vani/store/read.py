"""Reading a store, in a folder, in memory or in its trace: small tables at once, calls in bounded batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from vani.errors import StoreError
from vani.store.manifest import Manifest, PartEntry, read_manifest

if TYPE_CHECKING:
    import pyarrow.parquet as pq

FILE_TABLE, FUNCTION_TABLE, RENAME_TABLE = "_files.parquet", "_functions.parquet", "_renames.parquet"
"""File names of the small tables."""
TABLES = ((FILE_TABLE, "files"), (FUNCTION_TABLE, "functions"), (RENAME_TABLE, "renames"))
"""The same, each with its attribute of a store."""
ROW_GROUP = 1 << 16
"""Rows per row group: small enough that a time window covers few groups, large enough to compress."""
_GROUPS_AT_ONCE = 4


InMemoryParts = Mapping[str, Sequence[pa.RecordBatch]]
"""A store's calls in memory, by part."""


class CallsNeeded(Exception):  # noqa: N818 - no error: a process with the trace decodes it
    """The calls of a store are not available."""


@dataclass(frozen=True, eq=False)
class RowGroup:
    """Some thousand calls of a part, and their times (ns on the ranks' clocks)."""

    file: Path
    index: int
    rows: int
    first_start: int
    last_start: int
    longest: int


@dataclass(frozen=True, eq=False)
class Store:
    """The calls of one trace.

    Without available calls, it raises `CallsNeeded` when they are requested.
    """

    path: Path
    """Folder of the store; a name that no folder has if the store is in memory."""
    manifest: Manifest
    in_memory: InMemoryParts = field(default_factory=dict, repr=False)
    tables: Mapping[str, pa.Table] = field(default_factory=dict, repr=False)
    """The small tables by name, if the store is not in a folder."""
    decode: Callable[[PartEntry], Iterator[pa.RecordBatch]] | None = field(default=None, repr=False)
    """Decodes a part's calls on each request, if they are neither in memory nor in files."""
    scratch: Path | None = field(default=None, repr=False)
    """Folder for the times of calls during a pass, if they do not fit in memory."""

    @property
    def is_at_hand(self) -> bool:
        """Whether the calls are in this process, or in a trace that it decodes."""
        return bool(self.in_memory) or self.decode is not None

    @property
    def has_files(self) -> bool:
        """Whether the store is in a folder; otherwise its tables are in memory, its calls there or in the trace."""
        return not self.tables

    @cached_property
    def files(self) -> pa.Table:
        """`vani.calls.FILES`."""
        return self._table(FILE_TABLE)

    @cached_property
    def functions(self) -> pa.Table:
        """`vani.calls.FUNCTIONS`."""
        return self._table(FUNCTION_TABLE)

    @cached_property
    def function_names(self) -> dict[int, str]:
        """Names of the trace's functions by code."""
        table = self.functions
        return dict(zip(table["func"].to_pylist(), table["name"].to_pylist(), strict=True))

    @cached_property
    def renames(self) -> pa.Table:
        """`vani.calls.RENAMES`."""
        return self._table(RENAME_TABLE)

    def _table(self, name: str) -> pa.Table:
        if name in self.tables:
            return self.tables[name]
        # Not pq.read_table, which imports the modules for data sets.
        with _reading(self.path / name) as file:
            return file.read(use_threads=False)

    def batches(self, part: PartEntry, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the calls of a part in recorded order, about 262,000 to 524,000 at a time; from memory, all columns."""
        if part.file in self.in_memory:
            yield from self.in_memory[part.file]
            return
        if self.decode is not None:
            yield from self.decode(part)
            return
        if not self.has_files:
            raise CallsNeeded
        with _reading(self.path / part.file) as file:
            for first in range(0, file.num_row_groups, _GROUPS_AT_ONCE):
                wanted = range(first, min(first + _GROUPS_AT_ONCE, file.num_row_groups))
                table = file.read_row_groups(wanted, columns=list(columns), use_threads=False)
                yield from table.combine_chunks().to_batches()

    def row_groups(self, part: PartEntry) -> list[RowGroup]:
        """Time ranges of the row groups of a part's file, from its statistics."""
        groups = []
        with _reading(self.path / part.file) as file:
            schema = file.schema_arrow
            start, duration = schema.get_field_index("start_ns"), schema.get_field_index("duration_ns")
            for index in range(file.num_row_groups):
                group = file.metadata.row_group(index)
                times: Any = group.column(start).statistics
                longest: Any = group.column(duration).statistics
                groups.append(
                    RowGroup(self.path / part.file, index, group.num_rows, times.min, times.max, longest.max)
                )
        return groups


@contextmanager
def _reading(file: Path) -> Iterator[pq.ParquetFile]:
    """Open a file of a store, whose pages are checked against their checksums.

    Raises
    ------
    StoreError
        The file is damaged.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - calls that are kept in memory need none

    try:
        # As bytes: pyarrow would treat a path as a URI or UTF-8, and it may be neither.
        with (
            pa.OSFile(os.fsencode(file)) as raw,
            pq.ParquetFile(raw, page_checksum_verification=True) as opened,
        ):
            yield opened
    except (OSError, pa.ArrowException) as error:
        raise StoreError(
            f"cannot be read ({error})", where=file, todo="remove this store, and it is made again"
        ) from error


def calls_of(groups: Sequence[RowGroup], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the calls of consecutive row groups in one file."""
    with _reading(groups[0].file) as file:
        table = file.read_row_groups([g.index for g in groups], columns=list(columns), use_threads=False)
    yield from table.combine_chunks().to_batches()


def open_store(path: Path, in_memory: InMemoryParts | None = None, *, made_here: bool = False) -> Store:
    """Open the store at `path`; raises StoreError if there is no complete one.

    Parameters
    ----------
    in_memory
        Its calls that are still in memory, which need not be read.
    made_here
        This process wrote it, so its owner need not be checked.
    """
    return Store(path, read_manifest(path, made_here=made_here), in_memory or {})
