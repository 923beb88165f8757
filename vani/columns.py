"""Numeric columns in numpy and Arrow: zero-copy conversion through their buffers, narrow types, distinct values.

pyarrow's own conversions import pandas if it is installed, which takes longer than reading a small trace.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.kernels.signatures import Column

Int8s = NDArray[np.int8]
Int16s = NDArray[np.int16]
Int32s = NDArray[np.int32]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
UInt64s = NDArray[np.uint64]
Numbers = NDArray[Any]
Columns = dict[str, Numbers]
"""Columns of rows by name."""

_DTYPES = {
    pa.from_numpy_dtype(name): np.dtype(name)
    for name in (
        *("bool", "float16", "float32", "float64"),
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    )
}


def _dtype(kind: pa.DataType) -> np.dtype[Any]:
    """Like `to_pandas_dtype`, which fails in pyarrow up to 21 if pandas is not installed.

    Raises
    ------
    TypeError
        The type is neither numeric nor boolean.
    """
    try:
        return _DTYPES[kind]
    except KeyError:
        raise TypeError(f"{kind} is not a number type") from None


def to_arrow(values: NDArray[Any], null: Bools | None = None) -> pa.Array:
    """Numbers as an Arrow array that shares their memory; `null`, shape (n,), marks unknown ones."""
    count, validity = 0 if null is None else int(np.count_nonzero(null)), None
    if null is not None and count:
        validity = pa.py_buffer(np.packbits(~null, bitorder="little"))
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [validity, data], count)


def with_validity(values: NDArray[Any], known: NDArray[np.uint8], unknown: int) -> pa.Array:
    """Numbers as an Arrow array that shares their memory; `known` has a bit per number, of which `unknown` are 0."""
    validity = pa.py_buffer(known) if unknown else None
    data = pa.py_buffer(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [validity, data], unknown)


def raw(column: pa.Array) -> Column:
    """Numbers of an Arrow array as a read-only view of its memory; unknown ones have arbitrary values."""
    validity, data = column.buffers()
    n, skipped, dtype = len(column), column.offset, _dtype(column.type)
    if data is None or not n:
        return Column(np.zeros(0, dtype))
    values: NDArray[Any] = np.frombuffer(data, dtype, n, skipped * dtype.itemsize)
    if not column.null_count or validity is None:
        return Column(values)
    return Column(values, np.frombuffer(validity, np.uint8, (skipped + n + 7) // 8), skipped)


def to_numpy(column: pa.Array, null: int = 0) -> NDArray[Any]:
    """Numbers or booleans of an Arrow array, with `null` for unknown ones; read-only if memory is shared."""
    validity, data = column.buffers()
    n, skipped = len(column), column.offset
    if data is None or not n:
        return np.zeros(0, _dtype(column.type))
    values: NDArray[Any]
    if pa.types.is_boolean(column.type):
        values = _bits(data, skipped, n)
    else:
        values = np.frombuffer(data, _dtype(column.type), n, skipped * column.type.bit_width // 8)
    if column.null_count and validity is not None:
        values = np.where(_bits(validity, skipped, n), values, values.dtype.type(null))
    return values


def _bits(data: pa.Buffer, skipped: int, n: int) -> Bools:
    packed = np.frombuffer(data, np.uint8, (skipped + n + 7) // 8)
    return np.unpackbits(packed, count=skipped + n, bitorder="little")[skipped:].view(np.bool_)


def texts(values: Sequence[str]) -> pa.Array:
    """Strings as an Arrow array.

    Raises
    ------
    UnicodeEncodeError
        A string contains half of a surrogate pair.
    """
    encoded = [value.encode() for value in values]
    ends = np.zeros(len(encoded) + 1, np.int32)
    np.cumsum([len(text) for text in encoded], out=ends[1:])
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)))


class Texts(Sequence[str]):
    """Many strings stored as plain characters; Python strings are created on request."""

    def __init__(self, column: pa.Array | pa.ChunkedArray) -> None:
        """`column`: strings or large strings without nulls."""
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        self.column = column

    def __len__(self) -> int:
        return len(self.column)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            texts_of_slice: list[str] = self.column[index].to_pylist()
            return texts_of_slice
        return str(self.column[index].as_py())

    def __iter__(self) -> Iterator[str]:
        for at in range(0, len(self), _AT_ONCE):
            yield from self[at : at + _AT_ONCE]


_AT_ONCE = 1 << 16


_NARROW = (np.int8, np.int16, np.int32)


def narrow(values: NDArray[Any]) -> NDArray[Any]:
    """The same 64-bit integers in the narrowest signed type that fits all of them."""
    if not values.size:
        return values
    low, high = int(values.min()), int(values.max())
    for dtype in _NARROW:
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return values.astype(dtype, copy=False)
    return values


def small_table(columns: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    """A small table of numbers and strings without nulls."""
    arrays = [
        texts(values) if pa.types.is_string(field.type) else to_arrow(np.array(values, _dtype(field.type)))
        for values, field in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def scalar(value: int | str) -> pa.Scalar:
    """A number or string as a scalar for Arrow's functions."""
    return texts([value])[0] if isinstance(value, str) else to_arrow(np.array([value], np.int64))[0]


def merged(batches: Iterable[pa.RecordBatch], *, rows: int | None = None, most: int = 1024) -> Iterator[pa.RecordBatch]:
    """Join small batches: at most `most` of them, until they have `rows` rows."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if len(waiting) >= most or (rows is not None and sum(b.num_rows for b in waiting) >= rows):
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
            waiting = []
    if waiting:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()


def distinct(*parts: NDArray[Any]) -> NDArray[Any]:
    """The distinct values of all parts together, ascending, like `numpy.unique` of one array.

    `numpy.unique` counts values in a hash table, which takes four to eighty times as long as sorting, and it imports
    masked arrays, a fortieth of the start-up of `vani profile`, only to check for them.

    Parameters
    ----------
    parts
        Integers, each of shape (n,).
    """
    # A stable sort merges ordered parts.
    kind: Any = "stable" if len(parts) > 1 and all((part[1:] >= part[:-1]).all() for part in parts) else None
    ordered = np.sort(parts[0] if len(parts) == 1 else np.concatenate(parts), kind=kind)
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]
