"""Reading a store: its small tables at once, its calls in bounded batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vani.errors import StoreError
from vani.store.manifest import Manifest, PartEntry, read_manifest

__all__ = ["RowGroup", "Store", "open_store"]


_GROUPS_AT_ONCE = 4


@dataclass(frozen=True)
class RowGroup:
    """Some thousand calls of a part, and when they took place (ns of the ranks' clocks)."""

    file: Path
    index: int
    rows: int
    first_start: int
    last_start: int
    longest: int


@dataclass(frozen=True)
class Store:
    """The calls of one trace."""

    path: Path
    manifest: Manifest

    @cached_property
    def files(self) -> pa.Table:
        """`vani.calls.FILES`."""
        return self._table("_files.parquet")

    @cached_property
    def renames(self) -> pa.Table:
        """`vani.calls.RENAMES`."""
        return self._table("_renames.parquet")

    def _table(self, name: str) -> pa.Table:
        try:
            # Not pq.read_table, which loads what datasets need.
            with pq.ParquetFile(self.path / name) as file:
                return file.read(use_threads=False)
        except (OSError, pa.ArrowException) as error:
            raise StoreError(
                f"{name} cannot be read", where=self.path, todo="make the store again with `vani convert`"
            ) from error

    def batches(self, part: PartEntry, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the calls of a part, about 262,000 at a time, in recorded order."""
        try:
            with pq.ParquetFile(self.path / part.file) as file:
                for first in range(0, file.num_row_groups, _GROUPS_AT_ONCE):
                    wanted = range(first, min(first + _GROUPS_AT_ONCE, file.num_row_groups))
                    table = file.read_row_groups(wanted, columns=list(columns), use_threads=False)
                    yield from table.combine_chunks().to_batches()
        except (OSError, pa.ArrowException) as error:
            raise StoreError(
                f"{part.file} cannot be read ({error})",
                where=self.path,
                todo="make the store again with `vani convert`",
            ) from error

    def row_groups(self, part: PartEntry) -> list[RowGroup]:
        """When the calls of each row group of a part took place, from the file's statistics."""
        groups = []
        with pq.ParquetFile(self.path / part.file) as file:
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


def open_store(path: Path) -> Store:
    """Open the store at `path`; raises StoreError if there is no whole one."""
    return Store(path, read_manifest(path))
