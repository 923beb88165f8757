"""The call table (CST), which contains every distinct call once (format document, section 5.1)."""

import io
import struct
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vani.columns import Ints, Numbers, to_arrow, to_numpy
from vani.errors import TraceError
from vani.readers.functions import FACTS
from vani.readers.interpret import interpret
from vani.readers.paths import PathTable, complete_relative_paths
from vani.readers.recorder.grammar import ragged
from vani.readers.recorder.metadata import Metadata
from vani.readers.recorder.source import FramedTable, Source, inflate_frame
from vani.readers.signatures import CallTable, HandleTable, Signatures
from vani.units import counted as written


class SignaturePacker:
    """Builds a table from parts in any order."""

    def __init__(self, n: int) -> None:
        """`n` is the total number of signatures."""
        self._n = n
        self._columns: dict[str, Numbers] = {}
        self._unnamed: set[int] = set()
        self._unbelieved: dict[str, str] = {}

    def add(self, ids: Ints, part: Signatures) -> None:
        """Add the signatures with these ascending ids."""
        self._unnamed.update(part.unnamed)
        self._unbelieved = part.unbelieved | self._unbelieved
        for name in Signatures.columns():
            column = getattr(part, name)
            if name not in self._columns:
                self._columns[name] = np.empty(self._n, column.dtype)
            self._columns[name][ids] = column

    def packed(self, paths: Sequence[str]) -> Signatures:
        """The whole table, after all parts were added; `paths` are by code."""
        complete_relative_paths(self._columns["file"], self._columns["layer"], paths)
        return Signatures(**self._columns, unnamed=sorted(self._unnamed), unbelieved=self._unbelieved)


MAX_SIGNATURES = 1 << 24
"""Maximum number of entries in one table; they take about 60 bytes each."""
PART_BYTES = 1 << 23
"""Bytes per part of a table that is decoded in parts: about 150,000 entries."""
_MAX_ENTRY = 1 << 27

_MAX_ARGUMENTS = 1 << 24
"""Bytes that are split at a time: a table of only separators would take a hundred times its size."""


class Entries(NamedTuple):
    """Some entries of a call table: the entries in `table` have these ascending `ids`."""

    ids: Ints
    table: CallTable
    entries: int
    """Number of entries in the whole table."""


def call_table_parts(
    source: "TableBytes",
    *,
    function_bytes: int,
    counted: bool,
    where: str,
    site_bytes: int = 0,
    part_bytes: int = PART_BYTES,
) -> Iterator[Entries]:
    """Decode and check a call table in parts of about `part_bytes`, in memory independent of the table's size.

    The ids of all parts together are 0, 1, 2, ... A table without entries is one part.

    Parameters
    ----------
    function_bytes
        Width of the function id in a key, 1 or 4.
    counted
        Entries contain a rank and a count (in all layouts except 2.3).
    site_bytes
        Width of the call site in a key: 4, or 0 if keys have none.

    Raises
    ------
    TraceError
        Lengths do not add up, ids are not a permutation, or an argument count is wrong. It is raised at the damaged
        part, or earlier if the sizes reveal the damage.
    """
    if source.size < 4:
        raise TraceError(f"call table of {written(source.size, 'byte')}", where=where)
    (entries,) = struct.unpack("<i", source.read(4))
    shape = _Shape(16 if counted else 8, function_bytes, site_bytes)
    if not 0 <= entries <= (source.size - 4) // (shape.head + shape.key_head):
        raise TraceError(
            f"call table of {written(source.size, 'byte')} claims {written(entries, 'entry')}",
            where=where,
        )
    if entries > MAX_SIGNATURES:
        raise TraceError(
            f"call table has {written(entries, 'entry')}, Vani takes up to {MAX_SIGNATURES:,}",
            where=where,
        )
    seen = np.zeros(entries, dtype=np.bool_)
    buffer, left, done = b"", source.size - 4, 0
    while True:
        # An entry that is longer than a part needs several reads.
        size = min(max(part_bytes - len(buffer), part_bytes // 2, 1), left)
        buffer += source.read(size)
        left -= size
        at, used = _walk(buffer, left, done, entries, shape, where)
        done += len(at)
        if done == entries and used < len(buffer) + left:
            raise TraceError(f"call table has {written(len(buffer) - used + left, 'byte')} too many", where=where)
        if len(at) or not entries:
            raw = np.frombuffer(buffer, dtype=np.uint8)
            ids = _field(raw, at, "<i4")
            order = np.argsort(ids)
            ids, at = ids[order], at[order]
            valid = not len(ids) or (ids[0] >= 0 and ids[-1] < entries and bool((ids[1:] > ids[:-1]).all()))
            if not valid or seen[ids].any():
                raise TraceError("call table does not number its entries 0, 1, 2, ...", where=where)
            seen[ids] = True
            yield Entries(ids, _columns(raw, ids, at, shape, where), entries)
            del raw
        if done == entries:
            return
        buffer = buffer[used:]


def keys_have_sites(head: bytes) -> bool:
    """Return from a table's first entry whether keys of layout 3.x have a call site; `head` is the table's beginning.

    The length of the arguments is the last field before them, and must agree with the key's length.
    """
    plain, wide = _Shape(16, 4, 0), _Shape(16, 4, 4)
    if len(head) < 4 + 16 + wide.key_head:
        return False
    (size,) = struct.unpack_from("<i", head, 4 + 8)

    def agrees(shape: _Shape) -> bool:
        (text,) = struct.unpack_from("<i", head, 4 + 16 + shape.key_head - 4)
        return bool(size == shape.key_head + text)

    return agrees(wide) and not agrees(plain)


class Buffer(io.BytesIO):
    """A table that is entirely in memory."""

    @property
    def size(self) -> int:
        """Total size in bytes."""
        return self.getbuffer().nbytes


TableBytes = Buffer | FramedTable
"""The inflated content of a .cst file, read from its start."""


@dataclass(frozen=True, eq=False)
class _Shape:
    """Sizes of the fields before a key, and of a key's fields before its arguments."""

    head: int
    function_bytes: int
    site_bytes: int

    @property
    def key_head(self) -> int:
        return 14 + self.function_bytes + self.site_bytes


def _columns(raw: NDArray[np.uint8], ids: Ints, at: Ints, shape: _Shape, where: str) -> CallTable:
    """The columns of the entries at these positions."""
    function_bytes = shape.function_bytes
    key = at + shape.head
    func = _field(raw, key + 8, "<i4") if function_bytes == 4 else raw[key + 8].astype(np.int64)
    depth = raw[key + 8 + function_bytes].astype(np.int64)
    if shape.site_bytes:
        # The tracer writes 0xFFFFFFFF for unknown sites; no run has 2^31 sites.
        site = np.maximum(_field(raw, key + 9 + function_bytes, "<i4"), -1).astype(np.int32)
    else:
        site = np.full(len(at), -1, np.int32)
    given = raw[key + shape.key_head - 5].astype(np.int64)
    length = _field(raw, key + shape.key_head - 4, "<i4")
    if given.sum() > _MAX_ARGUMENTS:
        raise TraceError(
            f"call table claims {given.sum()} arguments, Vani takes up to {_MAX_ARGUMENTS}", where=where
        )
    args = _split_arguments(raw, ids, key + shape.key_head, length, given, where)
    return CallTable(
        thread=_field(raw, key, "<i8"),
        func=func,
        depth=depth,
        site=site,
        count=_field(raw, at + 12, "<u4") if shape.head == 16 else None,
        args=args,
    )


def _walk(buffer: bytes, more: int, done: int, entries: int, shape: _Shape, where: str) -> tuple[Ints, int]:
    """Positions of the complete entries in `buffer`, and the end of the last one; `more` bytes follow the buffer.

    Each entry begins where the previous one ends, so this is the only loop over entries.
    """
    head, key_head = shape.head, shape.key_head
    # A key's length field, and the arguments' length field at the end of its head.
    gap = (8 if head == 16 else 4) + key_head - 4
    sizes = struct.Struct(f"<i{gap - 4}xi").unpack_from
    length_at = head - 8 if head == 16 else head - 4
    positions: list[int] = []
    position, end = 0, len(buffer)
    smallest, limit = head + key_head, end + more
    for index in range(done, entries):
        if position + smallest > end:
            if position + smallest > limit:
                raise TraceError(f"call table ends within entry {index} of {entries}", where=where)
            break
        size, text = sizes(buffer, position + length_at)
        after = position + head + size
        if text < 0 or size != key_head + text or after > limit or size > _MAX_ENTRY:
            raise TraceError(
                f"call table entry {index} of {entries:,} claims {written(size, 'byte')}, "
                f"{text:,} of them arguments",
                where=where,
            )
        if after > end:
            break
        positions.append(position)
        position = after
    return np.array(positions, dtype=np.int64), position


def _field(raw: NDArray[np.uint8], at: Ints, dtype: str) -> Ints:
    width = np.dtype(dtype).itemsize
    return np.ascontiguousarray(raw[at[:, None] + np.arange(width)]).view(dtype).reshape(-1).astype(np.int64)


def _split_arguments(
    raw: NDArray[np.uint8], ids: Ints, at: Ints, length: Ints, given: Numbers, where: str
) -> pa.ListArray:
    # Every argument is followed by one space, so the last space is no separator and is cut off before splitting.
    sizes = np.maximum(length - 1, 0)
    if len(at) and (raw[(at + sizes)[length > 0]] != 0x20).any():
        raise TraceError("arguments of a call do not end with a space", where=where)
    text = raw[ragged(at, sizes)].tobytes()
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    # The last bytes of one text and the first of the next may together look like one character.
    torn = bool(((raw[at[sizes > 0]] & 0xC0) == 0x80).any())
    try:
        if not torn:
            text.decode()
        full_text = text
    except UnicodeDecodeError:
        torn = True
    if torn:
        pieces = [text[a:b].decode("utf-8", "replace").encode() for a, b in pairwise(offsets.tolist())]
        full_text = b"".join(pieces)
        offsets = np.concatenate(([0], np.cumsum([len(p) for p in pieces]))).astype(np.int64)
    strings = pa.LargeStringArray.from_buffers(len(at), pa.py_buffer(offsets), pa.py_buffer(full_text))
    lists = pc.split_pattern(strings, " ")
    number = to_numpy(pc.list_value_length(lists)).astype(np.int64)
    # Splitting an empty text gives one empty piece, but a call without arguments has none.
    number[length == 0] = 0
    if (number != given).any():
        entry = int(np.flatnonzero(number != given)[0])
        raise TraceError(
            f"call signature {ids[entry]} declares {given[entry]} arguments and contains {number[entry]}", where=where
        )
    return lists


_USER_FUNCTION_ID = 255
_SMALL_TABLE = 1 << 16
"""Largest file, in bytes, whose table is inflated at once."""
_MAX_FACTS = 10_000


class CallTableFiles:
    """Reads the call tables of one trace."""

    def __init__(self, source: Source, meta: Metadata) -> None:
        self._source, self._meta = source, meta

    def _open(self, name: str) -> TableBytes:
        """Open a call table; a large one is inflated while it is read."""
        extent = self._source.extent(name)
        where = self._source.where(name)
        if not self._meta.layout.framed or extent is None or extent.length <= _SMALL_TABLE:
            return Buffer(self.content(name))
        table = FramedTable(extent.path, extent.offset, extent.length, where=where)
        if table.size > PART_BYTES:
            return table
        table.close()
        return Buffer(self.content(name))

    def content(self, name: str) -> bytes:
        """A part of the trace, inflated if it is a frame."""
        content = self._source.read(name)
        if not self._meta.layout.framed:
            return content
        return inflate_frame(content, where=self._source.where(name))

    def read(self, name: str, paths: PathTable, handles: HandleTable) -> "tuple[Signatures, TableCounts]":
        """Read and interpret a call table, in parts if it is large, and keep the counts and texts needed later."""
        meta, layout = self._meta, self._meta.layout
        counts, packer = TableCounts(meta.functions), None
        with closing(self._open(name)) as source:
            for part in call_table_parts(
                source,
                function_bytes=layout.function_bytes,
                counted=layout.counted,
                where=self._source.where(name),
                site_bytes=layout.site_bytes,
                part_bytes=PART_BYTES,
            ):
                counts.add(part)
                packer = packer or SignaturePacker(part.entries)
                signatures = interpret(
                    part.table,
                    meta.functions,
                    paths,
                    handles,
                    interprocess_patterns=meta.interprocess_patterns,
                    intraprocess_patterns=meta.intraprocess_patterns,
                    user_function_id=_USER_FUNCTION_ID if layout.function_bytes == 4 else None,
                    ranks=meta.ranks,
                )
                packer.add(part.ids, signatures)
        assert packer is not None
        return packer.packed(paths.paths), counts


class TableCounts:
    """A call table's counts and some functions' texts: all that is kept in addition to its signatures."""

    def __init__(self, functions: tuple[str, ...]) -> None:
        self._functions = functions
        self._wanted = [i for i, n in enumerate(functions) if n in FACTS]
        self.counts: NDArray[np.uint32] | None = None
        """Calls of each signature; None if the table has no counts."""
        self._facts: list[tuple[Ints, Ints, pa.ListArray]] = []
        self._rows_collected = 0

    def add(self, part: Entries) -> None:
        """Add a part of the table."""
        table = part.table
        if table.count is not None:
            if self.counts is None:
                self.counts = np.zeros(part.entries, np.uint32)
            self.counts[part.ids] = table.count
        rows = np.flatnonzero(np.isin(table.func, self._wanted))
        if len(rows) and self._rows_collected < 8 * _MAX_FACTS:
            self._facts.append((part.ids[rows], table.func[rows], pc.take(table.args, to_arrow(rows))))
            self._rows_collected += len(rows)

    def facts(self, counts: Ints) -> list[tuple[str, list[str], int]]:
        """(function, arguments, number of calls) of signatures that were called according to `counts`, by id."""
        if not self._facts:
            return []
        ids, func = (np.concatenate([f[i] for f in self._facts]) for i in range(2))
        args = pa.concat_arrays([f[2] for f in self._facts])
        rows = np.flatnonzero(counts[ids] > 0)
        rows = rows[np.argsort(ids[rows])][:_MAX_FACTS]
        texts = pc.take(args, to_arrow(rows)).to_pylist()
        return [(self._functions[func[r]], t, int(counts[ids[r]])) for r, t in zip(rows, texts, strict=True)]
