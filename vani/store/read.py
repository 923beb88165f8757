"""A store, in a folder, in memory or in its trace: its manifest and small tables at once, calls in bounded batches.

`manifest.json` has the contents of a store and their origin. A store is valid if its manifest exists (it is written
last, before the folder gets its name), has this version, names the digest of the trace's current state, and gives
every part its actual size.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from vani.calls import CALL_SITE, CALLS
from vani.errors import StoreError

if TYPE_CHECKING:
    import pyarrow.parquet as pq

STORE_SCHEMA = "vani.store/3"
"""Stores with another schema are not read."""
_AGAIN = "make the store again with `vani convert`"
_NAME, _CALLS = "manifest.json", "calls"
_TABLES = ("_files.parquet", "_functions.parquet", "_renames.parquet")
_PART = re.compile(r"calls/[\w-]+\.parquet", re.ASCII)
"""Pattern of part names, which excludes files elsewhere or outside the store."""

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
"""Mode bits that no file of a store may have."""


@dataclass(frozen=True)
class PartEntry:
    """One Parquet file: the calls of `ranks[0] .. ranks[1] - 1`."""

    file: str
    ranks: tuple[int, int]
    rows: int
    size: int


@dataclass(frozen=True)
class Manifest:
    """Facts about a whole trace that are known without reading calls. Times are nanoseconds on the ranks' clocks."""

    source: str
    digest: str
    tool: str
    format: str
    layout: str
    app: str
    ranks: int
    records: int
    start_unix_s: float | None
    first_ns: int | None
    span_ns: int
    functions: dict[str, int]
    complete: bool
    problems: list[str]
    limits: list[tuple[str, str]]
    repaired_times: int
    facts: list[tuple[str, list[str], int]]
    parts: list[PartEntry]
    vani: str
    columns: list[str]
    """Names and types of the columns of a call when the store was written."""
    bytes: float = 0.0
    """Total bytes of all calls, including library calls."""
    time_ns: float = 0.0
    """Total time of all calls."""
    schema: str = STORE_SCHEMA
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def begin_ns(self) -> int:
        """Start of the trace on its own clocks: negative if one was set back to before the start of the tracer."""
        return min(0, self.first_ns or 0)

    def write(self, folder: Path) -> None:
        """Write manifest.json into the folder."""
        (folder / _NAME).write_text(json.dumps(asdict(self), indent=1, ensure_ascii=True), encoding="ascii")


def columns_now(*, call_sites: bool = False) -> list[str]:
    """Names and types of the columns of a call that this version of Vani writes, with the call site if requested."""
    return [f"{field.name}: {field.type}" for field in (*CALLS, *([CALL_SITE] if call_sites else []))]


def read_manifest(store: Path, *, made_here: bool = False) -> Manifest:
    """Read and check the manifest of the store at `store`.

    Parameters
    ----------
    made_here
        This process wrote it, so its owner and mode are not examined, which some file systems invent.

    Raises
    ------
    StoreError
        It is missing, incomplete, of another version, or another user could have written it.
    """
    path = store / _NAME
    try:
        raw = json.loads(path.read_text(encoding="ascii"))
    except FileNotFoundError as error:
        todo = "make one with `vani convert`"
        raise StoreError("is not a store: it has no manifest.json", where=store, todo=todo) from error
    except (OSError, ValueError) as error:
        raise StoreError("cannot be read", where=path, todo=_AGAIN) from error
    if not isinstance(raw, dict) or raw.get("schema") != STORE_SCHEMA:
        schema = raw.get("schema") if isinstance(raw, dict) else None
        raise StoreError(f"is a store of schema {schema!r}, not {STORE_SCHEMA}", where=path, todo=_AGAIN)
    try:
        parts = [
            PartEntry(str(p["file"]), (p["ranks"][0], p["ranks"][1]), p["rows"], p["size"])
            for p in raw.pop("parts")
        ]
        raw["limits"] = [(a, b) for a, b in raw["limits"]]
        raw["facts"] = [(a, list(b), c) for a, b, c in raw["facts"]]
        manifest = Manifest(parts=parts, **raw)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise StoreError("is not whole", where=path, todo=_AGAIN) from error
    if manifest.columns not in (columns_now(), columns_now(call_sites=True)):
        raise StoreError("has the columns of another version of Vani", where=store, todo=_AGAIN)
    sizes = {part.file: part.size for part in manifest.parts}
    for name, size in sizes.items():
        if _PART.fullmatch(name) is None or _state(store, name, stat.S_IFREG).st_size != size:
            raise _changed(store, name)
    for name in (*sizes, *_TABLES, _NAME, _CALLS, ""):
        kind = stat.S_IFDIR if name in (_CALLS, "") else stat.S_IFREG
        status = _state(store, name, kind)
        if not made_here:
            _check_owner(store / name, status)
    return manifest


def _state(store: Path, name: str, kind: int) -> os.stat_result:
    """Status of a file or folder of a store, or of the store itself; links, which may lead out of it, are refused.

    Raises
    ------
    StoreError
        It is something else, or does not exist.
    """
    try:
        # The user may have replaced a whole store with a link.
        status = (store / name).lstat() if name else store.stat()
    except OSError as error:
        raise _changed(store, name) from error
    if stat.S_IFMT(status.st_mode) != kind:
        raise _changed(store, name)
    return status


def _changed(store: Path, name: str) -> StoreError:
    return StoreError(f"{name} is missing or was changed", where=store, todo=_AGAIN)


def _check_owner(file: Path, status: os.stat_result) -> None:
    # Anyone who can write it can invent numbers, and root can anyway.
    if status.st_uid not in (os.geteuid(), 0):
        what = "belongs to another user"
    elif status.st_mode & OTHERS_WRITE:
        what = "may be written by other users"
    else:
        return
    raise StoreError(f"{what}: it is not believed", where=file, todo="make a store of your own with `vani convert`")


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
        if "launch worker thread" in str(error):
            # Python's own words, because the file is not damaged.
            raise RuntimeError("can't start new thread") from error
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
