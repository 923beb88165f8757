"""Codes for the texts of a large call table that is read in parts, without a Python object per text.

A million paths as Python strings in a dict take four times the memory of their characters. Here each part's new texts
stay in an Arrow array, and from time to time all arrays are merged without duplicates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.columns import Texts, texts, to_arrow, to_numpy
from vani.readers.paths import normal_path

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
        import pyarrow.compute as pc  # noqa: PLC0415 - few tables are read in parts

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
    import pyarrow.compute as pc  # noqa: PLC0415 - few tables are read in parts

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
