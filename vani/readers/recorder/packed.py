"""Tables of millions of signatures in little memory: columns that hold one value, or small ones, take little.

A call table of 10^5 ranks has millions of entries. What they mean are sixteen columns of 51 bytes in all, most of which
are the same everywhere or need fewer bits than their type has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.readers.recorder.signatures import NO_VALUE, PathTable, Signatures, complete_relative_paths

__all__ = ["PackedColumn", "SignaturePacker"]

_NARROW = (np.int8, np.int16, np.int32)


class PackedColumn:
    """A column that is read like an array and cannot be written.

    Parameters
    ----------
    values
        Shape (n,), or (1,) if all values are the same. `NO_VALUE` is stored as the least integer of its type.
    n
        Length of the column.
    dtype
        Type of what is taken out.
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
        """Some value is not zero."""
        return bool(self._values.any())

    def max(self, initial: int) -> int:
        """The largest value, at least `initial`."""
        return max(initial, int(self._wide(self._values[self._values.argmax() :][:1])[0])) if self._n else initial


class SignaturePacker:
    """Collects the parts of a table, in any order, and packs them."""

    def __init__(self) -> None:
        self._ids: list[NDArray[np.int32]] = []
        self._parts: dict[str, list[NDArray[Any]]] = {name: [] for name in Signatures.columns()}
        self._types: dict[str, np.dtype[Any]] = {}
        self._unnamed: set[int] = set()

    def add(self, ids: NDArray[np.int64], part: Signatures) -> None:
        """Take the signatures with these ids."""
        self._ids.append(ids.astype(np.int32))
        self._unnamed.update(part.unnamed)
        for name, parts in self._parts.items():
            column = getattr(part, name)
            self._types[name] = column.dtype
            parts.append(_narrow(column))

    def packed(self, paths: PathTable) -> Signatures:
        """The whole table; ids must be 0, 1, 2, ... once all parts are put together. Parts are used up.

        Parameters
        ----------
        paths
            Brought into the order in which a table that is read as a whole would have seen them.
        """
        ids = np.concatenate(self._ids)
        self._ids = []
        n, order = len(ids), None if bool((ids[1:] > ids[:-1]).all()) else ids
        stored = {name: self._joined(name, n, order) for name in self._parts}
        new = paths.renumber()
        for name in ("file", "rename_to"):
            codes = stored[name].astype(np.int32)
            named = codes >= 0
            codes[named] = new[codes[named]]
            stored[name] = codes
        layer = np.broadcast_to(stored["layer"], n)
        stored["file"] = np.broadcast_to(stored["file"], n).copy()
        complete_relative_paths(stored["file"], layer, paths.paths)
        # Whoever reads signatures takes rows of a column, or asks for its largest value.
        columns: dict[str, Any] = {
            name: PackedColumn(values, n, self._types[name]) for name, values in stored.items()
        }
        return Signatures(**columns, unnamed=sorted(self._unnamed))

    def _joined(self, name: str, n: int, order: NDArray[np.int32] | None) -> NDArray[Any]:
        """All values of a column as they are stored, or one if they are the same."""
        parts = self._parts[name]
        self._parts[name] = []
        dtype = max((p.dtype for p in parts), key=lambda d: d.itemsize)
        firsts = {_widened(p[:1], dtype).item() for p in parts}
        if all(p.strides == (0,) for p in parts) and len(firsts) == 1:
            return _widened(parts[0][:1], dtype)
        values = np.empty(n, dtype=dtype)
        at = 0
        parts.reverse()
        while parts:
            part = parts.pop()
            values[at : at + len(part)] = _widened(part, dtype)
            at += len(part)
        if order is None:
            return values
        sorted_by_id = np.empty(n, dtype=dtype)
        sorted_by_id[order] = values
        return sorted_by_id


def _narrow(column: NDArray[Any]) -> NDArray[Any]:
    """The same values in the smallest type that holds them; one value stands for many that are the same."""
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
    if len(narrow) and (narrow == narrow[0]).all():
        return np.broadcast_to(narrow[:1].copy(), narrow.shape)
    return narrow


def _widened(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Stored values in a wider type; what is absent stays so."""
    wide = values.astype(dtype)
    if dtype != values.dtype:
        wide[values == np.iinfo(values.dtype).min] = np.iinfo(dtype).min
    return wide
