"""Compact tables of millions of signatures, and codes for their texts without a Python object per text.

Codes for the texts of a large call table that is read in parts, without a Python object per text.

A million paths as Python strings in a dict take four times the memory of their characters. Here each part's new texts
stay in an Arrow array, and from time to time all arrays are merged without duplicates.

The call table of 10^5 ranks has millions of entries. Their meaning is seventeen columns with 55 bytes in total, most
of which are constant or need fewer bits than their type has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vani.columns import Texts, texts, to_arrow, to_numpy
from vani.readers.paths import complete_relative_paths, normal_path
from vani.readers.signatures import NO_VALUE, Signatures

_FREE_BYTES = 1 << 24
_NEVER = np.iinfo(np.int64).max

Ints = NDArray[np.int64]


class InternedTexts:
    """Numbers texts. Until `finish`, a text may have several numbers."""

    def __init__(self) -> None:
        self._texts: list[pa.Array] = []
        self._unified_bytes = 0
        self._bytes = 0
        self._unified = 0
        """Number of deduplicated texts in the first array of `_texts`; `_codes` maps numbers to
        them."""
        self._codes: list[NDArray[np.int32]] = []
        self._numbers = 0

    def add(self, distinct: pa.Array) -> NDArray[np.int32]:
        """Assign numbers to texts (large strings), shape (n,)."""
        numbers = np.arange(self._numbers, self._numbers + len(distinct), dtype=np.int32)
        self._numbers += len(distinct)
        self._texts.append(distinct)
        self._bytes += distinct.nbytes
        if self._bytes > 2 * self._unified_bytes + _FREE_BYTES:
            self._unify()
        return numbers

    def finish(self) -> tuple[NDArray[np.int32], pa.Array]:
        """The code of each number, and the texts by code, in order of first appearance."""
        self._unify()
        codes = np.concatenate([np.empty(0, np.int32), *self._codes])
        all_texts = self._texts[0] if self._texts else _large([])
        self._texts, self._codes = [], []
        return codes, all_texts

    def _unify(self) -> None:
        if len(self._texts) <= 1 and self._unified:
            return
        encoded = pa.chunked_array(self._texts, pa.large_string()).dictionary_encode()
        self._texts = []
        if not encoded.num_chunks:
            return
        new = np.concatenate([to_numpy(chunk.indices) for chunk in encoded.chunks]).astype(np.int32)
        # Earlier codes are unchanged, because their texts come first.
        self._codes.append(new[self._unified :])
        unified = encoded.chunk(encoded.num_chunks - 1).dictionary
        self._texts = [unified]
        self._unified = len(unified)
        self._unified_bytes = self._bytes = unified.nbytes
        # Nothing else needs this memory, so free it.
        pa.default_memory_pool().release_unused()


class InternedPaths:
    """Paths of a call table that is read in parts; `finish` gives the codes that `PathTable` would assign."""

    def __init__(self) -> None:
        self._texts = InternedTexts()
        self._sights: list[Ints] = []

    def codes(self, spellings: pa.Array, positions: Ints) -> NDArray[np.int32]:
        """Assign numbers to the paths of a part, shape (n,).

        Parameters
        ----------
        positions
            Shape (n,), ascending: position of each text in the trace.
        """
        encoded = spellings.dictionary_encode()
        indices = to_numpy(encoded.indices)
        distinct = _normal(encoded.dictionary.cast(pa.large_string()))
        # With repeated indices, the last assignment counts, which is the first row's.
        first = np.zeros(len(distinct), dtype=np.int64)
        first[indices[::-1]] = positions[::-1]
        self._sights.append(first)
        numbers: NDArray[np.int32] = self._texts.add(distinct)[indices]
        return numbers

    def finish(self) -> tuple[NDArray[np.int32], Texts]:
        """The code of each number, and the paths by code, in the order in which the whole table contains them."""
        codes, paths = self._texts.finish()
        first = np.full(len(paths), _NEVER)
        np.minimum.at(first, codes, np.concatenate([np.empty(0, np.int64), *self._sights]))
        self._sights = []
        order = np.argsort(first, kind="stable")
        if (order == np.arange(len(order))).all():
            return codes, Texts(paths)
        new = np.empty(len(order), dtype=np.int32)
        new[order] = np.arange(len(order), dtype=np.int32)
        return new[codes], Texts(paths.take(to_arrow(order)))


class InternedHandles:
    """Ids of open files in a call table that is read in parts; see `HandleTable`."""

    def __init__(self) -> None:
        self._texts = InternedTexts()

    def codes(self, layer: int, column: pa.Array) -> NDArray[np.int32]:
        """Assign numbers to the handles of a part, shape (n,)."""
        encoded = pc.dictionary_encode(column)
        distinct = encoded.dictionary.cast(pa.large_string())
        named = pc.binary_join_element_wise(_large([f"{layer} "])[0], distinct, _large([""])[0])
        numbers: NDArray[np.int32] = self._texts.add(named)[to_numpy(encoded.indices)]
        return numbers

    def finish(self) -> tuple[NDArray[np.int32], int]:
        """The code of each number, and the number of codes."""
        codes, handles = self._texts.finish()
        return codes, len(handles)


def _normal(paths: pa.Array) -> pa.Array:
    """Each path in its normal spelling; most are in it already."""
    odd: Any = pc.invert(pc.starts_with(paths, "/"))
    for test in (
        pc.match_substring(paths, "//"),
        pc.match_substring(paths, "/."),
        pc.ends_with(paths, "/"),
    ):
        odd = pc.or_(odd, test)
    rows = np.flatnonzero(to_numpy(odd))
    if not len(rows):
        return paths
    return pc.replace_with_mask(
        paths, odd, _large([normal_path(p) for p in paths.take(to_arrow(rows)).to_pylist()])
    )


def _large(values: list[str]) -> pa.Array:
    return texts(values).cast(pa.large_string())


_NARROW = (np.int8, np.int16, np.int32)


class PackedColumn:
    """A column that is read like an array but is read-only.

    Parameters
    ----------
    values
        Shape (n,), or (1,) if all values are equal. `NO_VALUE` is stored as the lowest integer of its type.
    n
        Length of the column.
    dtype
        Type of the values read.
    """

    def __init__(self, values: NDArray[Any], n: int, dtype: np.dtype[Any]) -> None:
        self._values, self._n, self.dtype = values, n, dtype

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, ids: NDArray[Any]) -> NDArray[Any]:
        if len(self._values) == 1:
            return np.full(len(ids), self._wide(self._values)[0], dtype=self.dtype)
        return self._wide(self._values[ids])

    def _wide(self, values: NDArray[Any]) -> NDArray[Any]:
        wide = values.astype(self.dtype)
        if values.dtype != self.dtype and self.dtype == np.int64:
            wide[values == np.iinfo(values.dtype).min] = NO_VALUE
        return wide

    def any(self) -> bool:
        """Return whether any value is nonzero."""
        return bool(self._values.any())

    def max(self, initial: int) -> int:
        """The largest value, at least `initial`."""
        return (
            max(initial, int(self._wide(self._values[self._values.argmax() :][:1])[0]))
            if self._n
            else initial
        )


class SignaturePacker:
    """Builds a table from parts in any order."""

    def __init__(self, n: int) -> None:
        """`n` is the total number of signatures."""
        self._n = n
        self._columns = {name: _Growing(n) for name in Signatures.columns()}
        self._unnamed: set[int] = set()
        self._unbelieved: dict[str, str] = {}

    def add(self, ids: NDArray[np.int64], part: Signatures) -> None:
        """Add the signatures with these ascending ids."""
        self._unnamed.update(part.unnamed)
        self._unbelieved = part.unbelieved | self._unbelieved
        in_a_row = int(ids[-1]) - int(ids[0]) + 1 == len(ids)
        rows = slice(int(ids[0]), int(ids[-1]) + 1) if in_a_row else ids
        for name, column in self._columns.items():
            column.put(rows, getattr(part, name))

    def packed(
        self,
        paths: Sequence[str],
        *,
        path_codes: NDArray[np.int32] | None = None,
        handle_codes: NDArray[np.int32] | None = None,
    ) -> Signatures:
        """The whole table, after all parts were added.

        Parameters
        ----------
        paths
            Paths by code.
        path_codes, handle_codes
            Codes of the numbers that denote paths and handles in the parts, if the numbers are not codes already.
        """
        stored = {name: column.values for name, column in self._columns.items()}
        for name, codes in (("file", path_codes), ("rename_to", path_codes), ("handle", handle_codes)):
            if codes is not None:
                numbers = stored[name]
                self._columns[name].values = stored[name] = np.append(codes, np.int32(-1))[numbers]
        file, layer = (np.broadcast_to(stored[name], self._n) for name in ("file", "layer"))
        stored["file"] = np.array(file, dtype=np.int32)
        complete_relative_paths(stored["file"], layer, paths)
        # Readers of signatures use rows of a column, or its maximum.
        columns: dict[str, Any] = {
            name: PackedColumn(values, self._n, self._columns[name].dtype) for name, values in stored.items()
        }
        return Signatures(**columns, unnamed=sorted(self._unnamed), unbelieved=self._unbelieved)


class _Growing:
    """A column that is stored as one value while all are equal, and then in the narrowest type that fits."""

    def __init__(self, n: int) -> None:
        self._n = n
        self.values: NDArray[Any] = np.empty(0, np.int8)
        self.dtype: np.dtype[Any] = np.dtype(np.int8)

    def put(self, rows: slice | NDArray[np.int64], column: NDArray[Any]) -> None:
        self.dtype = column.dtype
        narrow = _narrow(column)
        if not len(self.values):
            self.values = narrow[:1]
        if narrow.dtype.itemsize > self.values.dtype.itemsize:
            self.values = _widened(self.values, narrow.dtype)
        if len(self.values) == 1 < self._n:
            if (_widened(narrow, self.values.dtype) == self.values[0]).all():
                return
            # Zeroed pages that are never written use no memory if a table claims too many entries.
            constant, self.values = self.values[0], np.zeros(self._n, self.values.dtype)
            if constant:
                self.values[:] = constant
        self.values[rows] = _widened(narrow, self.values.dtype)


def _narrow(column: NDArray[Any]) -> NDArray[Any]:
    """The same values in the narrowest type that fits."""
    if column.dtype == np.bool_ or not len(column):
        narrow = column
    else:
        absent = column == NO_VALUE if column.dtype == np.int64 else np.zeros(len(column), np.bool_)
        known = column[~absent] if absent.any() else column
        low, high = (int(known.min()), int(known.max())) if len(known) else (0, 0)
        fitting = (t for t in _NARROW if np.iinfo(t).min < low and high <= np.iinfo(t).max)
        dtype = np.dtype(next(fitting, column.dtype))
        if dtype.itemsize >= column.dtype.itemsize:
            dtype = column.dtype
        narrow = np.where(absent, 0, column).astype(dtype) if absent.any() else column.astype(dtype)
        narrow[absent] = np.iinfo(dtype).min
    return narrow


def _widened(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Stored values in a wider type; missing ones stay missing."""
    if dtype == values.dtype:
        return values
    wide = values.astype(dtype)
    if values.dtype != np.bool_:
        wide[values == np.iinfo(values.dtype).min] = np.iinfo(dtype).min
    return wide
