"""Calls that determine a file's length: those that remove its name, empty or truncate it, and writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch
from vani.analyzers.int_table import NO_VALUE, pack, stable_order
from vani.calls import Flag, Kind, Layer

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

NAMING = Flag.OPEN | Flag.REMOVE | Flag.TRUNCATE


@dataclass(frozen=True, eq=False)
class LengthCalls:
    """Calls that determine a file's length, by process and file, in recorded order; shape (n,) each."""

    place: NDArray[Any]
    """Index among all calls of the batch."""
    key: Ints
    start: Ints
    end: Ints
    """End of a write, or length of a truncation."""
    writes: Bools
    empties: Bools
    cuts: Bools
    creates: Bools
    opens: Bools
    removes: Bools


_NONE = LengthCalls(*(np.empty(0, t) for t in (*[np.int64] * 4, *[np.bool_] * 6)))


def firsts(key: Ints) -> Ints:
    """Start of each run of equal keys."""
    return np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])


def length_calls(batch: Batch, *, writes: bool) -> LengthCalls:
    """These calls of a batch, including library calls that set the length; writes are included only on request."""
    groups = batch.groups
    flags, kind = groups.flags, groups.kind
    of = (kind == Kind.METADATA) & ((flags & (NAMING | Flag.RESIZE)) != 0)
    of = (of | ((kind == Kind.WRITE) & writes)) & groups.included
    rows = np.flatnonzero(of[batch.groups.codes]) if of.any() else np.empty(0, np.int64)
    library = _lengths_set_by_libraries(batch)
    if not len(rows) and not len(library):
        return _NONE
    place: NDArray[Any] = rows if batch.complete else batch.rows[rows]
    columns: list[Any] = [
        place,
        groups.process_file[batch.groups.codes[rows]],
        batch.start[rows],
        *(column[batch.groups.codes[rows]] for column in (flags, kind)),
        *(column[rows] for column in (batch.offset, batch.bytes)),
    ]
    if len(library):
        file = batch.files_of(library)
        workload = batch.context.workload
        process = batch.all_calls("rank")[library] + workload.process_base[batch.context.trace]
        others: list[Any] = [
            library,
            pack((process, file + 1), (workload.processes, workload.files + 1)),
            batch.starts_of(library),
            *(batch.all_calls(n)[library] for n in ("flags", "kind", "offset", "bytes")),
        ]
        columns = [np.concatenate(both) for both in zip(columns, others, strict=True)]
        columns = [column[np.argsort(columns[0])] for column in columns]
    _, _, _, flags, kind, offset, size = columns
    placed = offset != NO_VALUE
    determining = np.flatnonzero(
        np.where(kind == Kind.WRITE, placed & (size != NO_VALUE), placed | ((flags & NAMING) != 0))
    )
    order = determining[stable_order(columns[1][determining])]
    place, key, start, flags, kind, offset, size = (column[order] for column in columns)
    is_write = kind == Kind.WRITE
    opens = (flags & Flag.OPEN) != 0
    return LengthCalls(
        place,
        key,
        start,
        # A write of zero bytes does not extend a file.
        np.where(is_write, np.where(size > 0, offset + size, 0), np.maximum(offset, 0)),
        is_write,
        (flags & Flag.TRUNCATE) != 0,
        (flags & Flag.RESIZE) != 0,
        opens & ((flags & Flag.CREATE) != 0),
        opens,
        (flags & Flag.REMOVE) != 0,
    )


def _lengths_set_by_libraries(batch: Batch) -> Ints:
    if batch.complete:
        return np.empty(0, np.int64)
    rows = batch.flagged(Flag.RESIZE)
    if len(rows):
        rows = rows[batch.all_calls("layer")[rows] > Layer.STDIO]
        rows = rows[(batch.files_of(rows) >= 0) & (batch.all_calls("offset")[rows] != NO_VALUE)]
    return rows
