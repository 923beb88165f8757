"""Rows of numbers for the calls in a block of events, by a table of the functions that DFTracer wraps.

Sources: wrappers of DFTracer 1.0 (`src/dftracer/brahma`), and DFTracer 2.2's events for a program that makes each call.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vani.calls import FAILED, LOCK, Flag, Kind, Layer
from vani.columns import Bools, Columns, Int8s, Int16s, Int32s, Ints, to_arrow, to_numpy
from vani.readers.functions import PositionRule, layer_of, meaning_of
from vani.readers.interpret import LOCKS, mode_flags, open_flags
from vani.readers.scanned import row_schema
from vani.readers.signatures import NO_VALUE, Codes, by_text


class Size(Enum):
    """Arguments that contain the number of bytes that a call moved."""

    NONE = 0
    RETURNED = 1
    ITEMS = 2
    """Number of items moved, or requested, of `size` bytes each."""
    LENGTH = 3
    """`ret_len`, the length of a line."""
    BYTE = 4
    """One byte, unless the call returned -1."""


@dataclass(frozen=True)
class Call:
    """Meaning of a function's events."""

    layer: Layer
    kind: Kind
    rule: PositionRule
    flags: Flag
    size: Size = Size.NONE
    seeks: bool = False
    """Whether the call has an offset and a whence."""


PROCESSES = frozenset(
    ["fork", "vfork", "wait", "waitpid", "execl", "execlp", "execv", "execve", "execvp", "execvpe", "exit", "_exit",
     "umask", "popen", "pclose", "tmpnam", "perror", "sleep"]
)  # fmt: skip
"""Functions without file I/O: they start processes, and wait for them."""
_READ_LINK = frozenset({"readlink", "readlinkat"})
OTHERS = "(other)"
"""Name shared by a program's functions if it has more than fit the table."""

_READ, _WRITE = (
    Call(Layer.STDIO, kind, PositionRule.ADVANCE, Flag(0), Size.RETURNED) for kind in (Kind.READ, Kind.WRITE)
)
_COPY = Call(Layer.POSIX, Kind.WRITE, PositionRule.ADVANCE, Flag(0), Size.RETURNED)
_AGAIN = Call(Layer.POSIX, Kind.METADATA, PositionRule.FORGET, Flag.WRITABLE)
"""Functions after which calls through the new descriptor leave no record."""
_TABLE = {
    **dict.fromkeys(("fgetc", "getc", "getc_unlocked"), replace(_READ, size=Size.BYTE)),
    **dict.fromkeys(("fputc", "putc", "putc_unlocked"), replace(_WRITE, size=Size.BYTE)),
    **dict.fromkeys(("getline", "getdelim"), _READ),
    "fgets": replace(_READ, size=Size.LENGTH),
    "fputs": replace(_WRITE, size=Size.NONE),
    "fprintf": _WRITE,
    "vfprintf": _WRITE,
    **dict.fromkeys(("copy_file_range", "sendfile", "sendfile64"), _COPY),
    **dict.fromkeys(("dup", "dup2"), _AGAIN),
    **dict.fromkeys(
        ("readlink", "readlinkat", "access", "faccessat"),
        Call(Layer.POSIX, Kind.METADATA, PositionRule.NONE, Flag.STAT),
    ),
}


@cache
def call_of(category: str, name: str) -> Call:
    """The meaning of an event, by its category and name."""
    if category not in ("POSIX", "STDIO"):
        layer = layer_of(name)
        if not Layer.MPIIO <= layer <= Layer.GPU:
            layer = Layer.USER
        meaning = meaning_of(name)
        kind = Kind.OTHER if layer is Layer.USER else meaning.kind
        # Library events have neither files nor bytes.
        return Call(layer, kind, PositionRule.NONE, Flag(0) if layer is Layer.USER else meaning.flags & Flag.COLLECTIVE)
    known = _TABLE.get(name)
    if known is not None:
        return known
    meaning = meaning_of(name)
    layer = Layer.STDIO if category == "STDIO" else Layer.POSIX
    size = Size.ITEMS if len(meaning.size) == 2 else Size.RETURNED
    size = size if meaning.kind in (Kind.READ, Kind.WRITE) else Size.NONE
    return Call(layer, meaning.kind, meaning.rule, meaning.flags, size, seeks=meaning.whence >= 0)


ROWS = row_schema("process tid func kind rule flags name rename_to bytes value start took")
"""A call: `name` and `rename_to` are numbers of file names, -1 for none; `value` is an offset, a distance or a
length; times are nanoseconds, `start` since 1970."""

_MAX_FUNCTIONS = 30_000
"""Limit of function numbers, which have 16 bits."""
_SEEKS = (PositionRule.SEEK_SET, PositionRule.SEEK_CUR, PositionRule.SEEK_END)


class NameCodes(Codes):
    """Numbers of a trace's file names."""

    def of(self, column: pa.Array) -> Int32s:
        """Numbers of many texts, shape (n,); -1 for null."""
        return by_text(column, self.number)


class Functions:
    """A trace's functions, numbered."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.calls: list[Call] = []
        self._number: dict[tuple[str, str], int] = {}

    def number(self, category: str, name: str) -> int:
        """The number of an event's function; the last number is shared by all functions that do not fit."""
        known = self._number.get((category, name))
        if known is None:
            if len(self._number) >= _MAX_FUNCTIONS:
                category, name = "", OTHERS
            known = self._number.setdefault((category, name), len(self.names))
            if known == len(self.names):
                call = call_of(category, name)
                self.names.append(f"{category}.{name}" if call.layer is Layer.USER and category else name)
                self.calls.append(call)
        return known

    def flagged(self, names: Collection[str]) -> Bools:
        """Whether each function, by number, is one of these."""
        return np.array([name in names for name in self.names], np.bool_)


def rows_of(table: pa.RecordBatch, process: Ints, scale: Ints, functions: Functions, names: NameCodes) -> Columns:
    """Columns of `ROWS`, and `length`: that of a mapping.

    Parameters
    ----------
    table
        Complete events with times, from `EventParser`.
    process
        Process number of each event.
    scale
        Nanoseconds per unit of time, by event.
    functions, names
        Extended with new ones; a file without a hash is named `=` followed by its path.
    """
    args = table["args"]

    def integers(name: str) -> Ints:
        return numbers(args, name)

    both = pc.binary_join_element_wise(pc.fill_null(table["cat"], ""), pc.fill_null(table["name"], ""), "\n")
    func = by_text(both, lambda text: functions.number(*text.split("\n", 1)))
    call = functions.calls
    kind = np.array([c.kind for c in call], np.int8)[func]
    rule = np.array([c.rule for c in call], np.int8)[func]
    flags = np.array([c.flags for c in call], np.int16)[func]
    moves = (kind == Kind.READ) | (kind == Kind.WRITE)
    returned = integers("ret")
    size = _sizes(np.array([c.size.value for c in call])[func], returned, integers)
    value = np.full(len(table), NO_VALUE)
    at = rule == PositionRule.AT
    value[at] = integers("offset")[at]
    resizes = rule == PositionRule.RESIZE
    value[resizes] = integers("length")[resizes]
    _seek(np.array([c.seeks for c in call], np.bool_)[func], integers, returned, rule, value)
    rewinds = (rule == PositionRule.SEEK_SET) & (value == NO_VALUE)
    value[rewinds & ((flags & Flag.SEEK) != 0)] = 0
    _open(args, flags, integers, returned)
    flags[functions.flagged({"fcntl"})[func] & np.isin(integers("cmd"), LOCKS)] |= int(LOCK)
    # A readlink fails on every name that is no link.
    may_fail = ((flags & (Flag.STAT | LOCK)) != 0) & ((flags & Flag.OPEN) == 0) & ~functions.flagged(_READ_LINK)[func]
    failed = may_fail & (returned < 0) & (returned != NO_VALUE)
    flags[failed] = (flags[failed] & int(LOCK)) | int(FAILED)
    # A call that moves no bytes, such as a failed one or a read at the end of a file, is not a data operation.
    failed = moves & (returned != NO_VALUE) & (returned <= 0) & (size <= 0)
    kind[failed], rule[failed], size[failed] = Kind.METADATA, PositionRule.NONE, NO_VALUE
    size[~moves] = NO_VALUE
    renames = (flags & Flag.RENAME) != 0
    return {
        "process": process,
        "tid": numbers(table, "tid", 0) & 0x7FFFFFFF,
        "func": func,
        "kind": kind,
        "rule": rule,
        "flags": flags,
        "name": _names(args, names),
        "rename_to": np.where(renames, _named(args, "newpath_hash", names), -1),
        "bytes": size,
        "value": value,
        "length": integers("length"),
        "start": numbers(table, "ts") * scale,
        "took": np.maximum(numbers(table, "dur"), 0) * scale,
    }


def _sizes(kind: Ints, returned: Ints, integers: Callable[[str], Ints]) -> Ints:
    size = np.full(len(kind), NO_VALUE)
    count, item = integers("count"), integers("size")
    moved = np.where(returned == NO_VALUE, count, returned)
    plain = kind == Size.RETURNED.value
    size[plain] = moved[plain]
    items = (kind == Size.ITEMS.value) & (moved != NO_VALUE) & (item != NO_VALUE)
    small = items & (np.abs(moved.astype(np.float64)) * np.abs(item.astype(np.float64)) < 1 << 62)
    size[small] = moved[small] * item[small]
    lines = kind == Size.LENGTH.value
    size[lines] = integers("ret_len")[lines]
    single = kind == Size.BYTE.value
    size[single] = np.where(returned[single] == -1, 0, 1)
    size[size < 0] = NO_VALUE
    return size


def _seek(seeks: Bools, integers: Callable[[str], Ints], returned: Ints, rule: Int8s, value: Ints) -> None:
    """Set positions from call results; fseek returns none, and older versions did not record results."""
    if not seeks.any():
        return
    whence, offset = integers("whence"), integers("offset")
    for number, meaning in enumerate(_SEEKS):
        rows = seeks & (whence == number)
        rule[rows], value[rows] = meaning, offset[rows]
    # fseek returns 0 for any position, so a result counts only if the arguments can lead to it.
    sure = seeks & (returned > 0)
    rule[sure], value[sure] = PositionRule.SEEK_SET, returned[sure]
    failed = seeks & (returned < 0) & (returned != NO_VALUE)
    rule[failed], value[failed] = PositionRule.NONE, NO_VALUE


def _open(args: pa.StructArray, flags: Int16s, integers: Callable[[str], Ints], returned: Ints) -> None:
    """Add open flags, and remove those of failed opens."""
    rows = np.flatnonzero(flags & Flag.OPEN)
    if not len(rows):
        return
    flags[rows] |= open_flags(integers("flags")[rows])
    modes = pc.struct_field(args, "fmode") if _has(args, "fmode") else None
    if modes is not None:
        flags[rows] |= by_text(modes.take(to_arrow(rows)), mode_flags, 0).astype(np.int16)
    failed = rows[(returned[rows] < 0) & (returned[rows] != NO_VALUE)]
    flags[failed] &= int(Flag.DIRECTORY)
    flags[failed] |= int(FAILED)


def _names(args: pa.StructArray, names: NameCodes) -> Int32s:
    name = _named(args, "fhash", names)
    if (name < 0).any() and _has(args, "fname"):
        path = pc.struct_field(args, "fname")
        spelled = names.of(pc.binary_join_element_wise("=", path, ""))
        name = np.where(name < 0, spelled, name)
    return name


def _named(args: pa.StructArray, field: str, names: NameCodes) -> Int32s:
    if not _has(args, field):
        return np.full(len(args), -1, np.int32)
    column = pc.struct_field(args, field)
    return names.of(column if pa.types.is_string(column.type) else pc.cast(column, pa.string()))


def _has(args: pa.StructArray, field: str) -> bool:
    return int(args.type.get_field_index(field)) >= 0


def numbers(table: pa.RecordBatch | pa.StructArray, name: str, null: int = NO_VALUE) -> Ints:
    """A column of integers, with `null` in place of missing values."""
    if isinstance(table, pa.RecordBatch):
        return to_numpy(table[name], null).astype(np.int64)
    column = pc.struct_field(table, name) if _has(table, name) else pa.nulls(len(table), pa.int64())
    return to_numpy(column, null).astype(np.int64)
