"""Groups of calls that share every attribute but place, size and time."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.kernels.arrays import address
from vani.kernels.known import Column, Known
from vani.kernels.library import function, note

__all__ = ["COLUMNS", "NULLABLE", "Groups", "Signatures", "signatures"]

COLUMNS = {
    **dict.fromkeys(("rank", "file"), np.int32),
    **dict.fromkeys(("func", "within", "flags"), np.int16),
    **dict.fromkeys(("layer", "kind", "via"), np.int8),
    **dict.fromkeys(("offset", "bytes", "start_ns", "duration_ns"), np.int64),
}
"""What it reads of calls."""
NULLABLE = ("file", "offset", "bytes")
"""Those of which values may be unknown: -1 for no file, and the smallest integer for no offset and no bytes."""

_SUMS = (
    *("row", "phase", "count", "bytes", "time"),
    *("unsized", "placeless", "displaced", "first", "last", "end"),
)
_WIDTH = len(_SUMS) + 4
_FIELDS = {"func": 48, "within": 32, "flags": 16, "via": 8, "layer": 4, "kind": 0}
"""Where in `how` they begin."""
_FEW_GROUPS, _MORE = 1 << 14, 8
_FULL = 2
"""What the kernel returns where there are more groups."""
_ADDRESS, _NUMBER = ctypes.c_void_p, ctypes.c_int64

Ints = NDArray[np.int64]


class _Calls(ctypes.Structure):
    _fields_ = (
        *((name, _ADDRESS) for name in COLUMNS),
        *((f"{name}_known", Known) for name in NULLABLE),
        ("n", _NUMBER),
    )


class _Found(ctypes.Structure):
    _fields_ = (
        ("slots", _ADDRESS),
        ("slot_count", _NUMBER),
        ("groups", _ADDRESS),
        ("most_groups", _NUMBER),
        *((name, _ADDRESS) for name in ("codes", "rows", "offset", "bytes", "start", "duration")),
        *((name, _ADDRESS) for name in ("other_codes", "other_rows")),
        *((name, _NUMBER) for name in ("counted", "other", "group_count", "of_others", "of_counted")),
    )


@dataclass(frozen=True, eq=False)
class Groups:
    """Calls in groups."""

    codes: NDArray[np.int32]
    """Group of each call, shape (n,)."""
    rows: NDArray[np.int32] | None
    """Its place among all calls of the batch, shape (n,); None: these are all."""
    columns: Mapping[str, NDArray[Any]]
    """What the calls of a group share, by the names of columns; shape (groups,)."""
    row: Ints
    """The last call of each group, among these."""
    phase: Ints
    """Place among the starts of phases."""
    count: Ints
    """Calls."""


@dataclass(frozen=True, eq=False)
class Signatures:
    """Groups of the calls that count, and what is added up of each, shape (groups,); and groups of the others."""

    counted: Groups
    others: Groups
    columns: Mapping[str, Ints]
    """Offset, bytes, start_ns (shifted) and duration_ns of each call that counts, shape (n,)."""
    bytes: Ints
    time: Ints
    """Duration, ns."""
    unsized: Ints
    """Reads and writes of unknown size."""
    placeless: Ints
    """Calls of unknown offset."""
    displaced: Ints
    """Of them, those of more than 0 bytes."""
    first: Ints
    """Earliest and latest start, ns, and latest end."""
    last: Ints
    end: Ints


def signatures(
    calls: Mapping[str, Column],
    n: int,
    phase_starts: Ints,
    shift: int,
    *,
    most_layer: int,
    nested: int,
) -> Signatures | None:
    """Group calls; None if numpy decides.

    Parameters
    ----------
    calls
        Of `COLUMNS` those that are there, shape (n,) each. Others are taken for zeros; of other columns than `NULLABLE`
        all values are known.
    phase_starts
        Ascending, ns.
    shift
        Added to the starts, ns.
    most_layer, nested
        Calls of layers up to this one count, but for those that have this flag.
    """
    kernel = function(
        "vani_signatures",
        *(ctypes.POINTER(_Calls), _NUMBER, _NUMBER, _ADDRESS, _NUMBER, _NUMBER, ctypes.POINTER(_Found)),
    )
    if kernel is None:
        return None
    given = {
        name: np.ascontiguousarray(calls[name].values, dtype)
        for name, dtype in COLUMNS.items()
        if name in calls
    }
    phase_starts = np.ascontiguousarray(phase_starts, np.int64)
    nothing = np.zeros(0 if len(given) == len(COLUMNS) else n, np.int64)
    numbers, values = np.empty((4, n), np.int32), np.empty((4, n), np.int64)
    codes, rows, other_codes, other_rows = numbers
    of_call = dict(zip(("offset", "bytes", "start_ns", "duration_ns"), values, strict=True))
    first_number, first_value = address(numbers, np.int32), address(values, np.int64)
    codes_at, rows_at, *others_at = (first_number + i * 4 * n for i in range(4))
    given_calls = _Calls(
        *(address(given[c] if c in given else nothing.view(t)[:n], t, n) for c, t in COLUMNS.items()),
        *(calls[name].known() if name in calls else Known(None, 0) for name in NULLABLE),
        n,
    )
    most, done = _FEW_GROUPS, _FULL
    while done == _FULL:
        # Room for as many groups as calls would be 120 bytes of each, and pushes what follows to memory not yet used.
        most = max(1, min(most, n))
        slots = np.empty(1 << (2 * most - 1).bit_length(), np.int32)
        groups = np.empty((most, _WIDTH), np.int64)
        found = _Found(
            address(slots, np.int32),
            len(slots),
            address(groups, np.int64),
            most,
            *(codes_at, rows_at),
            *(first_value + i * 8 * n for i in range(4)),
            *others_at,
        )
        done = kernel(
            given_calls, most_layer, nested, address(phase_starts, np.int64), len(phase_starts), shift, found
        )
        if most >= n:
            break
        most *= _MORE
    note("signatures", used=done == 0)
    if done:
        return None
    apart = found.other > 0
    written = {"start_ns"} if shift else set()
    written.update(name for name in ("offset", "bytes") if name in calls and calls[name].bits is not None)
    columns = {
        name: column[: found.counted] if apart or name in written else given[name]
        for name, column in of_call.items()
        if name in given
    }
    counts = groups[: found.group_count, -2] != 0
    order = np.concatenate((counts.nonzero()[0], (~counts).nonzero()[0]))
    table = np.ascontiguousarray(groups[order].T)
    shared = _shared(table, given)
    first, behind = slice(np.count_nonzero(counts)), slice(np.count_nonzero(counts), None)
    row, phase, count, *sums = table[: len(_SUMS)]
    counted = Groups(
        codes[: found.counted],
        rows[: found.counted] if apart else None,
        {name: column[first] for name, column in shared.items()},
        *(row[first], phase[first], count[first]),
    )
    others = Groups(
        other_codes[: found.other],
        other_rows[: found.other],
        {name: column[behind] for name, column in shared.items()},
        *(row[behind], phase[behind], count[behind]),
    )
    return Signatures(counted, others, columns, *(column[first] for column in sums))


def _shared(table: Ints, there: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """What the calls of each group share, of columns of the kernel's table."""
    what, how = table[len(_SUMS) : len(_SUMS) + 2]
    shared = {"rank": what.astype(np.int32), "file": (what >> 32).astype(np.int32)}
    for name, begins in _FIELDS.items():
        field = how >> begins
        # What is above 16 bits goes of itself.
        shared[name] = (field & 15 if COLUMNS[name] == np.int8 else field).astype(COLUMNS[name])
    return {name: column for name, column in shared.items() if name in there}
