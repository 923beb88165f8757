"""Signatures, which are a trace's distinct calls: as stored in the trace, and with their meaning.

Plausibility limits, the same for all readers: larger numbers in a trace count as unknown, and are reported, before they
are added up. Calls pass `Signatures.of_calls`, counters and extents of tracers that count pass `bounded`.

Two plausible sizes or offsets can be added in 64 bits; `claimed` adds up all those of a trace.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vani.calls import MAX_SUM
from vani.columns import Bools, Int8s, Int16s, Int32s, Ints, Numbers, distinct, to_numpy

NO_VALUE = np.iinfo(np.int64).min
"""Marks a missing integer."""

MAX_BYTES = 1 << 56
"""No process can address more bytes (64-bit processors with five-level page tables), so no call can move more. `-1`,
also written as 2^64 - 1, comes from programs that pass on the result of a failed call."""
MAX_OFFSET = 1 << 60
"""1 EiB: no file system stores such a large file, and sums of twice as much still fit 64 bits."""
MAX_COUNT = 1 << 50
"""Upper bound of a counter of calls: a million processes that make a billion calls each."""


def bounded(numbers: Numbers, most: int | Sequence[int]) -> Ints:
    """The numbers, with `NO_VALUE` for those above `most`, which is one bound or one for each column."""
    return np.where(numbers > np.array(most), NO_VALUE, numbers)


def believed(sizes: Ints) -> Bools:
    """Whether a call can have these sizes, shape (n,), bool; `NO_VALUE` is allowed."""
    plausible: Bools = ((sizes >= 0) & (sizes < MAX_BYTES)) | (sizes == NO_VALUE)
    return plausible


def claimed(values: Numbers, most: int) -> float:
    """Sum of values from 0 to `most` or `NO_VALUE`, which counts as 0; exact if it fits 64 bits."""
    if float(most) * len(values) < MAX_SUM:
        # Two times `NO_VALUE` is 2^64, which wraps to 0; masking the sign bit removes an odd one.
        return float(int(values.sum()) & (1 << 63) - 1)
    return float(np.where(values == NO_VALUE, 0, values).sum(dtype=np.float64))


WRONG_SIZE = "request {} bytes, which no call can move: how many they moved is unknown"
WRONG_OFFSET = "name an offset of {}, which no file reaches: it is unknown"


class HandleTable:
    """Codes for the ids with which a layer's calls name open files."""

    def __init__(self) -> None:
        self._code: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._code)

    def codes(self, layer: int, column: pa.Array) -> Int32s:
        """Codes of many ids, shape (n,)."""
        codes = [self._code.setdefault(f"{layer} {text}", len(self._code)) for text in column.to_pylist()]
        return np.array(codes, dtype=np.int32)


class OpenHandles:
    """Finds the file of calls that name it by an id, which an earlier call of the rank bound to a path."""

    def __init__(self, handles: int) -> None:
        self._count = handles
        self._rank = -1
        self._bound: dict[int, int] = {}

    def before(self, rank: int) -> dict[int, int]:
        """The file of each id that earlier calls of `rank` bound, or -1."""
        return self._bound if rank == self._rank else {}

    def keep(self, rank: int, bound: dict[int, int]) -> None:
        """Save the files of ids that calls of `rank` bound last, -1 for none."""
        now = self.before(rank) | bound
        self._rank, self._bound = rank, {handle: file for handle, file in now.items() if file >= 0}

    def resolve(self, rank: Int32s, handle: Int32s, binds: Bools, file: Int32s) -> None:
        """Fill `file` in place for calls that have a handle and do not bind one."""
        rows, last = np.flatnonzero(handle >= 0), dict[int, int]()
        if len(rows):
            key = rank[rows].astype(np.int64) * self._count + handle[rows]
            order = np.argsort(key, kind="stable")
            rows, key = rows[order], key[order]
            index = np.arange(len(rows))
            starts = np.append(True, key[1:] != key[:-1])
            bind = binds[rows]
            source = np.maximum.accumulate(np.where(bind | starts, index, 0))
            bound = np.where(bind[source], file[rows[source]], -1)
            carried = np.flatnonzero(starts & ~bind & (rank[rows] == self._rank))
            if len(carried) and self._bound:
                before = np.full(len(rows), -1, dtype=np.int32)
                before[carried] = [self._bound.get(h, -1) for h in handle[rows[carried]].tolist()]
                # A call before its group's first bind uses the file bound in the previous batch.
                bound = np.where(bind[source], bound, before[source])
            unbound = ~bind
            file[rows[unbound]] = bound[unbound]
            at = np.flatnonzero(np.append(starts[1:], True) & (rank[rows] == rank[-1]))
            last = dict(zip(handle[rows[at]].tolist(), file[rows[at]].tolist(), strict=True))
        if len(rank):
            self.keep(int(rank[-1]), last)


@dataclass(frozen=True, eq=False)
class CallTable:
    """Distinct calls by signature id.

    Attributes
    ----------
    thread, func, depth
        Shape (n,); `func` is a line number of the trace's function list.
    site
        Number of the call site within the calling rank; -1 if unknown or not stored.
    count
        Number of calls with this signature over all ranks that share the table; None if not stored.
    args
        n lists of argument texts, in which invalid UTF-8 was replaced with replacement characters.
    """

    thread: Ints
    func: Ints
    depth: Ints
    site: Int32s
    count: Ints | None
    args: pa.ListArray

    def __len__(self) -> int:
        return len(self.func)


@dataclass
class Signatures:
    """Columns by signature id, shape (n,) each; `NO_VALUE` or -1 marks missing values."""

    func: Int16s
    layer: Int8s
    kind: Int8s
    depth: Int8s
    site: Int32s
    """Number of the call site within the calling rank, or -1."""
    thread: Int32s
    file: Int32s
    bytes: Ints
    rule: Int8s
    flags: Int16s
    value: Ints
    """Offset, seek distance or new length, before patterns are resolved."""
    slope: Ints
    """a of an interprocess pattern `a*r+b` (b is `value`), or 0."""
    slope_group: Int8s
    """Function whose groups r refers to, or -1."""
    running: Int8s
    """Function whose offsets are stored as differences, or -1."""
    handle: Int32s
    """Code of the id that names the file, or -1."""
    binds: Bools
    rename_to: Int32s
    unnamed: list[int] = field(default_factory=list)
    """Numbers of functions that the trace does not name."""
    unbelieved: dict[str, str] = field(default_factory=dict)
    """Fault of an implausible size or offset, which was dropped, by function."""

    def __len__(self) -> int:
        return len(self.func)

    @property
    def problems(self) -> list[str]:
        """Faults of the table."""
        return [
            *(f"calls of function number {func}, which the trace does not name" for func in self.unnamed),
            *self.unbelieved.values(),
        ]

    @classmethod
    def of_calls(cls, names: Sequence[str], **columns: Any) -> "Signatures":
        """Build signatures for a tracer that stores each call with its arguments; omitted columns are empty.

        `names` are the functions by code. Implausible sizes and offsets become `NO_VALUE`.
        """
        n = len(columns["func"])
        empty = {name: np.full(n, value, dtype) for name, (value, dtype) in _EMPTY.items() if name not in columns}
        signatures = cls(**(empty | columns))
        size, value = signatures.bytes, signatures.value
        far = (np.abs(value) >= MAX_OFFSET) & (value != NO_VALUE)
        for column, wrong, fault in (("bytes", ~believed(size), WRONG_SIZE), ("value", far, WRONG_OFFSET)):
            numbers = getattr(signatures, column)
            for code in distinct(signatures.func[wrong]).tolist():
                first = int(numbers[np.flatnonzero(wrong & (signatures.func == code))[0]])
                signatures.unbelieved.setdefault(names[code], f"calls of {names[code]} {fault.format(first)}")
            setattr(signatures, column, np.where(wrong, NO_VALUE, numbers))
        return signatures

    @staticmethod
    def columns() -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(name for name in Signatures.__dataclass_fields__ if name not in ("unnamed", "unbelieved"))

    def take(self, ids: Numbers) -> "Signatures":
        """Select signatures and renumber them."""
        return Signatures(**{name: getattr(self, name)[ids] for name in Signatures.columns()})

    @staticmethod
    def join(parts: "list[Signatures]") -> "Signatures":
        """Concatenate tables."""
        if len(parts) == 1:
            return parts[0]
        names = Signatures.columns()
        columns: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return Signatures(**columns)


_EMPTY: dict[str, tuple[int, type[np.generic]]] = {
    **{"depth": (0, np.int8), "site": (-1, np.int32), "file": (-1, np.int32), "bytes": (NO_VALUE, np.int64)},
    **{"rule": (0, np.int8), "flags": (0, np.int16), "value": (NO_VALUE, np.int64), "slope": (0, np.int64)},
    **{"slope_group": (-1, np.int8), "running": (-1, np.int8), "handle": (-1, np.int32), "binds": (0, np.bool_)},
    **{"rename_to": (-1, np.int32)},
}
"""Value and type of columns for calls that lack the fact."""


class Codes:
    """Numbers for texts, in order of first appearance."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._number: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a text; a new text gets a new number."""
        number = self._number.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number


def by_text(column: pa.Array, number: Callable[[str], int], null: int = -1) -> Int32s:
    """A number for each row, shape (n,), computed once for each distinct text; `null` for null."""
    encoded = pc.dictionary_encode(column)
    lookup = np.array([*(number(text) for text in encoded.dictionary.to_pylist()), null], np.int32)
    numbers: Int32s = lookup[to_numpy(encoded.indices, len(lookup) - 1)]
    return numbers
