"""Groups of calls that share every attribute except offset, size and time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.kernels import available, call, columns

COLUMNS = {
    **dict.fromkeys(("rank", "file"), np.int32),
    **dict.fromkeys(("func", "within", "flags"), np.int16),
    **dict.fromkeys(("layer", "kind", "via"), np.int8),
    **dict.fromkeys(("offset", "bytes", "start_ns", "duration_ns"), np.int64),
}
"""Columns of calls that the kernel reads."""
NULLABLE = ("file", "offset", "bytes")
"""Columns with values that may be unknown: -1 for no file, the smallest integer for no offset or bytes."""

_FIELDS = {"func": 48, "within": 32, "flags": 16, "via": 8, "layer": 4, "kind": 0}
"""First bit of each field in `how`."""
_FEW_GROUPS, _MORE = 1 << 14, 8

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Column:
    """Values, shape (n,), and which of them are known."""

    values: NDArray[Any]
    bits: NDArray[np.uint8] | None = None
    """One bit per value from bit `first` on, lowest bit of each byte first; 0 means unknown. None: all are known."""
    first: int = 0


@dataclass(frozen=True, eq=False)
class Groups:
    """Calls in groups."""

    codes: NDArray[np.int32]
    """Group of each call, shape (n,)."""
    rows: NDArray[np.int32] | None
    """Indices among all calls of the batch, shape (n,); None if these are all calls."""
    columns: Mapping[str, NDArray[Any]]
    """Values that the calls of a group share, by column name; shape (groups,)."""
    row: Ints
    """Index of each group's last call, among these calls."""
    phase: Ints
    """Index among the starts of phases."""
    count: Ints
    """Number of calls."""


@dataclass(frozen=True, eq=False)
class Signatures:
    """Groups of the counted calls with their sums, shape (groups,); and groups of the other calls."""

    counted: Groups
    others: Groups
    columns: Mapping[str, Ints]
    """Offset, bytes, start_ns (shifted) and duration_ns of each counted call, shape (n,)."""
    bytes: Ints
    time: Ints
    """Total duration in ns."""
    unsized: Ints
    """Number of reads and writes of unknown size."""
    placeless: Ints
    """Number of calls with unknown offset."""
    displaced: Ints
    """Number of calls with unknown offset and more than 0 bytes."""
    first: Ints
    """Earliest and latest start, and latest end, in ns."""
    last: Ints
    end: Ints
    other_bytes: Ints
    """Bytes of the other calls by group, shape (groups,); likewise the next."""
    other_unsized: Ints


def signatures(
    calls: Mapping[str, Column],
    n: int,
    phase_starts: Ints,
    shift: int,
    *,
    most_layer: int,
    nested: int,
) -> Signatures | None:
    """Group calls; None if numpy must do it.

    Parameters
    ----------
    calls
        The available `COLUMNS`, shape (n,) each. Others are assumed to be zero; only `NULLABLE` columns may have
        unknown values.
    phase_starts
        Ascending, in ns.
    shift
        Added to the starts, in ns.
    most_layer, nested
        Calls of layers up to this one are counted, except those with this flag.
    """
    if not available():
        return None
    known = {name: column.values for name, column in calls.items() if name in COLUMNS}
    nothing = np.zeros(0 if len(known) == len(COLUMNS) else n, np.int64)
    arguments: dict[str, Any] = {
        name: known[name] if name in known else nothing.view(dtype)[:n] for name, dtype in COLUMNS.items()
    }
    for name in NULLABLE:
        column = calls.get(name, Column(nothing))
        arguments |= {
            f"{name}_known": column.bits,
            f"{name}_first": column.first,
            f"{name}_bytes": 0 if column.bits is None else len(column.bits),
        }
    # Room for as many groups as there may be, at 120 bytes each.
    room = max(1, min(_FEW_GROUPS, n))
    while True:
        out = call(
            "signatures",
            **arguments,
            phase_starts=phase_starts,
            shift=shift,
            most_layer=most_layer,
            nested=nested,
            most_groups=room,
            slot_count=1 << (2 * room - 1).bit_length(),
        )
        if out is None:
            return None
        if out["summary"][2] >= 0:
            break
        if room >= n:
            return None
        room = min(_MORE * room, n)
    counted, others, group_count = out["summary"].tolist()
    is_written = {
        "offset": arguments["offset_known"] is not None,
        "bytes": arguments["bytes_known"] is not None,
        "start_ns": shift != 0,
        "duration_ns": False,
    }
    columns_of_counted = {
        name: out[f"{name}_counted"][:counted] if others or written else arguments[name]
        for name, written in is_written.items()
        if name in known
    }
    table = out["groups"][:group_count]
    order = np.argsort(table["counts"] == 0, kind="stable")
    sums = dict(zip(table.dtype.names or (), columns(table[order]), strict=True))
    first = slice(np.count_nonzero(sums["counts"]))
    rest = slice(first.stop, None)
    shared = {name: column for name, column in _shared(sums["what"], sums["how"]).items() if name in known}
    return Signatures(
        Groups(
            out["codes"][:counted],
            out["rows"][:counted] if others else None,
            {name: column[first] for name, column in shared.items()},
            *(sums[name][first] for name in ("row", "phase", "count")),
        ),
        Groups(
            out["other_codes"][:others],
            out["other_rows"][:others],
            {name: column[rest] for name, column in shared.items()},
            *(sums[name][rest] for name in ("row", "phase", "count")),
        ),
        columns_of_counted,
        *(
            sums[name][first]
            for name in ("bytes", "time", "unsized", "placeless", "displaced", "first", "last", "end")
        ),
        *(sums[name][rest] for name in ("bytes", "unsized")),
    )


def _shared(what: Ints, how: Ints) -> dict[str, NDArray[Any]]:
    """Columns that the calls of each group share, from two columns of the kernel's table."""
    shared = {"rank": what.astype(np.int32), "file": (what >> 32).astype(np.int32)}
    for name, begin in _FIELDS.items():
        field = how >> begin
        # Casting drops the higher bits.
        shared[name] = (field & 15 if COLUMNS[name] == np.int8 else field).astype(COLUMNS[name])
    return shared
