"""Meaning of each distinct call, computed once: its file, bytes, offset and effect on the file position."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vani.calls import DIRECT, LOCK, SYNCHRONOUS, Flag, Kind, Layer
from vani.columns import Bools, Int16s, Int32s, Ints, scalar, texts, to_arrow, to_numpy
from vani.readers import signatures as limits
from vani.readers.functions import Meaning, PositionRule, datatype_bytes, meaning_of
from vani.readers.paths import PathTable
from vani.readers.signatures import MAX_BYTES, MAX_OFFSET, NO_VALUE, CallTable, HandleTable, Signatures

_OPEN_FLAGS = (
    (0o100, Flag.CREATE),
    (0o1000, Flag.TRUNCATE),
    (0o2000, Flag.APPEND),
    (0o3, Flag.WRITABLE),
    (0o200000, Flag.DIRECTORY),
    (0o40000, DIRECT),
    (0o10000, SYNCHRONOUS),
)
"""O_CREAT, O_TRUNC, O_APPEND, O_WRONLY or O_RDWR, O_DIRECTORY and O_DIRECT of Linux on x86-64."""
_F_DUPFD = (0, 1030)
"""F_DUPFD and F_DUPFD_CLOEXEC: the tracer does not follow the descriptor that they return."""
LOCKS = (5, 6, 7, 36, 37, 38)
"""F_GETLK, F_SETLK and F_SETLKW of Linux on x86-64, and those of open file descriptions (F_OFD_GETLK)."""
_AT = ("MPI_File_read_at", "MPI_File_read_at_all", "MPI_File_write_at", "MPI_File_write_at_all")
_INTERPROCESS = ("lseek", "lseek64", "pread", "pread64", "pwrite", "pwrite64", *_AT)
_INTRAPROCESS = ("lseek", "lseek64", "pwrite", "pwrite64", "MPI_File_set_view", *_AT)
"""Functions whose offsets the tracer replaces with patterns."""


def interpret(
    table: CallTable,
    names: tuple[str, ...],
    paths: PathTable,
    handles: HandleTable,
    *,
    interprocess_patterns: bool = False,
    intraprocess_patterns: bool = False,
    user_function_id: int | None = None,
    ranks: int = 1,
) -> Signatures:
    """Determine the meaning of every signature, without `complete_relative_paths`.

    Parameters
    ----------
    table
        The decoded call table.
    names
        The trace's own function list.
    paths, handles
        Extended with new ones.
    user_function_id
        Id that the tracer reserves for compiler-instrumented functions (2 arguments), although the list has another
        call's name at this id.
    ranks
        Largest factor in an interprocess pattern.
    """
    n = len(table)
    signatures = Signatures.of_calls(
        names,
        func=table.func.astype(np.int16),
        layer=np.full(n, Layer.USER, np.int8),
        kind=np.full(n, Kind.OTHER, np.int8),
        depth=np.minimum(table.depth, 127).astype(np.int8),
        site=table.site,
        thread=(table.thread & 0x7FFFFFFF).astype(np.int32),
    )
    argument_count = to_numpy(pc.list_value_length(table.args))
    by_func = np.argsort(table.func, kind="stable")
    funcs, first = np.unique(table.func[by_func], return_index=True)
    for func, of_func in zip(funcs.tolist(), np.split(by_func, first)[1:], strict=True):
        rows = of_func
        if not 0 <= func < len(names):
            signatures.unnamed.append(func)
            signatures.func[rows] = -1
            continue
        name = names[func]
        if func == user_function_id:
            is_user = argument_count[rows] == 2
            rows = rows[~is_user]
            name = "H5LTmake_dataset_double"
            if not len(rows):
                continue
        args = _Arguments(table.args, rows, ranks)
        _fill(signatures, rows, meaning_of(name), args, paths, handles)
        if args.unbelieved is not None:
            signatures.unbelieved[name] = f"calls of {name} {args.unbelieved}"
        if interprocess_patterns and name in _INTERPROCESS:
            signatures.slope_group[rows] = _INTERPROCESS.index(name)
        if intraprocess_patterns and name in _INTRAPROCESS:
            signatures.running[rows] = _INTRAPROCESS.index(name)
    return signatures


class _Arguments:
    """Argument texts of one function's rows."""

    def __init__(self, lists: pa.ListArray, rows: Ints, ranks: int) -> None:
        self._lists, self._ranks = pc.take(lists, to_arrow(rows)), ranks
        self.unbelieved: str | None = None
        """Fault of a size or an offset that was dropped."""
        self._fewest = int(pc.min(pc.list_value_length(self._lists)).as_py())

    def text(self, index: int) -> pa.Array | None:
        """The argument at `index`; None if some row lacks it."""
        if not 0 <= index < self._fewest:
            return None
        return pc.list_element(self._lists, scalar(index))

    def texts(self, index: int) -> list[str] | None:
        column = self.text(index)
        return None if column is None else column.to_pylist()

    def numbers(self, index: int) -> Ints:
        """The argument at `index` as integers; NO_VALUE if it is not an integer."""
        column = self.text(index)
        return np.full(len(self), NO_VALUE, np.int64) if column is None else _integers(column)

    def pattern(self, index: int) -> tuple[Ints, Ints]:
        """The argument at `index` as (a, b) of `a*r+b`; a = 0 for a plain number."""
        column = self.text(index)
        b = self.numbers(index)
        a = np.zeros(len(b), np.int64)
        if column is not None and (b == NO_VALUE).any():
            parts = pc.extract_regex(column, r"^(?P<a>-?\d{1,18})\*r\+(?P<b>-?\d{1,18})$")
            is_pattern = to_numpy(pc.is_valid(parts))
            if is_pattern.any():
                a[is_pattern] = _integers(pc.struct_field(parts, "a"))[is_pattern]
                b[is_pattern] = _integers(pc.struct_field(parts, "b"))[is_pattern]
            far = np.abs(a.astype(np.float64)) * self._ranks >= MAX_OFFSET
            a[far], b[far] = 0, NO_VALUE
            wrong = far | ((b == NO_VALUE) & to_numpy(pc.match_substring_regex(column, _LONG_OFFSET)))
            self._leave_out(limits.WRONG_OFFSET, wrong, [column])
        return a, b

    def size(self, indices: tuple[int, ...], widths: Ints | None) -> Ints:
        """Product of the arguments at `indices` and of `widths`; NO_VALUE if it is implausible."""
        columns = [self.text(index) for index in indices]
        factors = [self.numbers(index) for index in indices]
        wrong = np.zeros(len(self), np.bool_)
        for column, factor in zip(columns, factors, strict=True):
            wrong |= (factor < 0) & (factor != NO_VALUE)
            if column is not None and (factor == NO_VALUE).any():
                wrong |= (factor == NO_VALUE) & to_numpy(pc.match_substring_regex(column, _LONG_SIZE))
        size = factors[0]
        for factor in (*factors[1:], *(() if widths is None else (widths,))):
            unknown = (size == NO_VALUE) | (factor == NO_VALUE)
            # Texts with up to 18 digits each can overflow.
            much = ~unknown & (np.abs(size.astype(np.float64) * factor.astype(np.float64)) >= 2 * MAX_BYTES)
            wrong |= much
            size = np.where(unknown | much, NO_VALUE, np.where(much, 0, size) * np.where(unknown, 0, factor))
        wrong |= ~limits.believed(size)
        if wrong.any():
            size = np.where(wrong, NO_VALUE, size)
            shown = [column for column in columns if column is not None]
            self._leave_out(limits.WRONG_SIZE, wrong, shown)
        return size

    def _leave_out(self, quantity: str, wrong: Bools, columns: list[pa.Array]) -> None:
        rows = np.flatnonzero(wrong)
        if len(rows):
            first = int(rows[0])
            value = " x ".join(str(column[first].as_py())[:40] for column in columns)
            self.unbelieved = self.unbelieved or quantity.format(value)

    def __len__(self) -> int:
        return len(self._lists)


_LONG_SIZE = r"^-?\d{19,}$"
_LONG_OFFSET = r"^-?\d{19,}$|^-?\d+\*r\+-?\d+$"
"""Texts of numbers that `_integers` does not parse."""


def _integers(column: pa.Array) -> Ints:
    good = pc.match_substring_regex(column, r"^-?\d{1,18}$")
    numbers = pc.cast(pc.if_else(good, column, pa.nulls(1, column.type)[0]), pa.int64())
    return to_numpy(numbers, NO_VALUE).copy()


def _fill(
    s: Signatures, rows: Ints, meaning: Meaning, args: _Arguments, paths: PathTable, handles: HandleTable
) -> None:
    s.layer[rows], s.kind[rows] = meaning.layer, meaning.kind
    flags = np.full(len(rows), meaning.flags, np.int16)
    rule = np.full(len(rows), meaning.rule, np.int8)
    if meaning.path >= 0 and (column := args.text(meaning.path)) is not None:
        s.file[rows] = _named(column, paths.codes(column))
    if meaning.rename_to >= 0 and (column := args.text(meaning.rename_to)) is not None:
        s.rename_to[rows] = _named(column, paths.codes(column))
    if meaning.handle >= 0 and (column := args.text(meaning.handle)) is not None:
        s.handle[rows] = handles.codes(int(meaning.layer), column)
        s.binds[rows] = meaning.binds
    if meaning.size:
        widths = None
        if meaning.datatype >= 0:
            names = args.texts(meaning.datatype) or [""] * len(rows)
            widths = np.array([NO_VALUE if (w := datatype_bytes(name)) is None else w for name in names], np.int64)
            # Zero elements are zero bytes for any type; some processes of a collective call have none.
            widths[args.numbers(meaning.size[0]) == 0] = 0
        size = args.size(meaning.size, widths)
        s.bytes[rows] = np.where(size == NO_VALUE, size, np.maximum(size - meaning.less, 0))
    if meaning.offset >= 0:
        s.slope[rows], s.value[rows] = args.pattern(meaning.offset)
    if meaning.whence >= 0:
        whence = args.numbers(meaning.whence)
        for number, seek in enumerate((PositionRule.SEEK_SET, PositionRule.SEEK_CUR, PositionRule.SEEK_END)):
            rule[whence == number] = seek
    elif meaning.rule == PositionRule.SEEK_SET:
        s.value[rows] = 0
    if meaning.open_flags >= 0:
        flags |= open_flags(args.numbers(meaning.open_flags))
    if meaning.command >= 0:
        duplicates, locks = (np.isin(args.numbers(meaning.command), of) for of in (_F_DUPFD, LOCKS))
        flags[locks] |= LOCK
        rule[duplicates] = PositionRule.FORGET
        flags[duplicates] |= Flag.WRITABLE
    if meaning.open_mode >= 0 and (modes := args.texts(meaning.open_mode)) is not None:
        flags |= np.array([mode_flags(m) for m in modes], np.int16)
    if meaning.comm >= 0 and (comms := args.text(meaning.comm)) is not None:
        world = to_numpy(pc.equal(comms, scalar("MPI_COMM_WORLD")))
        flags[world] |= Flag.WORLD
    s.flags[rows], s.rule[rows] = flags, rule


def _named(column: pa.Array, codes: Int32s) -> Int32s:
    # The tracer writes these where it knows no path.
    nameless = pc.is_in(column, value_set=pc.cast(texts(["???", "NULL", "%p", ""]), column.type))
    return np.where(to_numpy(nameless), -1, codes).astype(np.int32)


def open_flags(bits: Ints) -> Int16s:
    """`Flag`s from the second argument of open, shape (n,); none where it is `NO_VALUE`."""
    bits = np.where(bits == NO_VALUE, 0, bits)
    flags = np.zeros(len(bits), np.int16)
    for bit, flag in _OPEN_FLAGS:
        flags |= np.where(bits & bit, flag, 0).astype(np.int16)
    return flags


def mode_flags(mode: str) -> int:
    """`Flag`s from the mode of fopen."""
    flags = Flag(0)
    if mode[:1] == "w":
        flags |= Flag.CREATE | Flag.TRUNCATE | Flag.WRITABLE
    elif mode[:1] == "a":
        flags |= Flag.CREATE | Flag.APPEND | Flag.WRITABLE
    if "+" in mode:
        flags |= Flag.WRITABLE
    return int(flags)
