"""The call table (CST): every distinct call once (format document, section 5.1)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vani.columns import to_numpy
from vani.errors import TraceError
from vani.readers.recorder.grammar import ragged

__all__ = ["CallTable", "decode_call_table"]

_MOST_ARGUMENTS = 1 << 24
"""In one table: a table of nothing but separators would take a hundred times its size."""


@dataclass(frozen=True)
class CallTable:
    """Distinct calls, by signature id.

    Attributes
    ----------
    thread, func, depth
        Shape (n,); `func` is a line number of the trace's function list.
    count
        Calls with this signature over all ranks that share the table; None where it is not stored.
    args
        n lists of argument texts. Bytes that are no UTF-8 have become replacement characters.
    """

    thread: NDArray[np.int64]
    func: NDArray[np.int64]
    depth: NDArray[np.int64]
    count: NDArray[np.int64] | None
    args: pa.ListArray

    def __len__(self) -> int:
        return len(self.func)


def decode_call_table(buffer: bytes, *, function_bytes: int, counted: bool, where: str) -> CallTable:
    """Decode and check a call table.

    Parameters
    ----------
    buffer
        The inflated content of a .cst file.
    function_bytes
        Width of the function id in a key, 1 or 4.
    counted
        Entries carry rank and count (all but 2.3).

    Raises
    ------
    TraceError
        Lengths that do not add up, ids that are no permutation, or an argument count that is not what is there.
    """
    if len(buffer) < 4:
        raise TraceError(f"call table of {len(buffer)} bytes", where=where)
    (entries,) = struct.unpack_from("<i", buffer)
    head = 16 if counted else 8
    key_head = 14 + function_bytes
    if not 0 <= entries <= (len(buffer) - 4) // (head + key_head):
        raise TraceError(f"call table of {len(buffer)} bytes claims {entries} entries", where=where)
    at = _walk(buffer, entries, head, key_head, where)
    raw = np.frombuffer(buffer, dtype=np.uint8)
    key = at + head
    ids = _field(raw, at, "<i4")
    if entries and not np.array_equal(np.sort(ids), np.arange(entries)):
        raise TraceError("call table does not number its entries 0, 1, 2, ...", where=where)
    order = np.empty(entries, dtype=np.int64)
    order[ids] = np.arange(entries)
    at, key = at[order], key[order]
    func = _field(raw, key + 8, "<i4") if function_bytes == 4 else raw[key + 8].astype(np.int64)
    depth = raw[key + 8 + function_bytes].astype(np.int64)
    given = raw[key + 9 + function_bytes].astype(np.int64)
    length = _field(raw, key + 10 + function_bytes, "<i4")
    if given.sum() > _MOST_ARGUMENTS:
        raise TraceError(
            f"call table claims {given.sum()} arguments, Vani takes up to {_MOST_ARGUMENTS}", where=where
        )
    args = _split_arguments(raw, key + key_head, length, given, where)
    return CallTable(
        thread=_field(raw, key, "<i8"),
        func=func,
        depth=depth,
        count=_field(raw, at + 12, "<u4") if counted else None,
        args=args,
    )


def _walk(buffer: bytes, entries: int, head: int, key_head: int, where: str) -> NDArray[np.int64]:
    """Position of every entry; each begins where the one before ends."""
    key_length = struct.Struct("<i").unpack_from
    positions = [0] * entries
    position, end = 4, len(buffer)
    length_at = head - 8 if head == 16 else head - 4
    for index in range(entries):
        if position + head + key_head > end:
            raise TraceError(f"call table ends within entry {index} of {entries}", where=where)
        positions[index] = position
        size = key_length(buffer, position + length_at)[0]
        text = key_length(buffer, position + head + key_head - 4)[0]
        if text < 0 or size != key_head + text or position + head + size > end:
            raise TraceError(
                f"call table entry {index} of {entries} claims {size} bytes, {text} of them arguments",
                where=where,
            )
        position += head + size
    if position != end:
        raise TraceError(f"call table has {end - position} bytes too many", where=where)
    return np.array(positions, dtype=np.int64)


def _field(raw: NDArray[np.uint8], at: NDArray[np.int64], dtype: str) -> NDArray[np.int64]:
    width = np.dtype(dtype).itemsize
    return np.ascontiguousarray(raw[at[:, None] + np.arange(width)]).view(dtype).reshape(-1).astype(np.int64)


def _split_arguments(
    raw: NDArray[np.uint8], at: NDArray[np.int64], length: NDArray[np.int64], given: NDArray[Any], where: str
) -> pa.ListArray:
    # Every argument is followed by one space, so the last space is no separator: it is cut off before splitting.
    kept = np.maximum(length - 1, 0)
    if len(at) and (raw[(at + kept)[length > 0]] != 0x20).any():
        raise TraceError("arguments of a call do not end with a space", where=where)
    text = raw[ragged(at, kept)].tobytes()
    offsets = np.concatenate(([0], np.cumsum(kept))).astype(np.int64)
    # Bytes that end one text and those that begin the next may look like one character.
    torn = bool(((raw[at[kept > 0]] & 0xC0) == 0x80).any())
    try:
        if not torn:
            text.decode()
        whole = text
    except UnicodeDecodeError:
        torn = True
    if torn:
        pieces = [text[a:b].decode("utf-8", "replace").encode() for a, b in pairwise(offsets.tolist())]
        whole = b"".join(pieces)
        offsets = np.concatenate(([0], np.cumsum([len(p) for p in pieces]))).astype(np.int64)
    strings = pa.LargeStringArray.from_buffers(len(at), pa.py_buffer(offsets), pa.py_buffer(whole))
    lists = pc.split_pattern(strings, " ")
    found = to_numpy(pc.list_value_length(lists)).astype(np.int64)
    # Splitting an empty text gives one empty piece, but a call without arguments has none.
    found[length == 0] = 0
    if (found != given).any():
        entry = int(np.flatnonzero(found != given)[0])
        raise TraceError(
            f"call signature {entry} says {given[entry]} arguments and holds {found[entry]}", where=where
        )
    return lists
