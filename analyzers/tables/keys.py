"""Several small integers packed into a 63-bit key, by which tables are sorted and added up.

Only measures know the parts of their keys; their results have a separate column for each part.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS = 4
"""Kinds of file-system calls: read, write, metadata, sync."""
ALL_KINDS = KINDS
"""All kinds together, in keys that end with a kind, whose width is therefore `KINDS + 1`."""

LAYERS = 16
"""Number of layers in keys; `vani.calls.Layer` has fewer."""


Ints = NDArray[np.int64]
_MOST = 1 << 63


def beside(width: int) -> tuple[int, int]:
    """Widths of keys whose second column has this width, and whose first column may be as large as fits."""
    return _MOST // width, width


SIDES = beside(2)
"""Widths of keys of a group and a kind, read or write."""


def pack(columns: Sequence[NDArray[Any] | np.integer[Any] | int], widths: Sequence[int]) -> Ints:
    """One key per row; keys sort like their columns, the first one being most significant.

    Parameters
    ----------
    columns
        Integers, shape (n,) each or one number for all rows; those in a column are in 0 .. width - 1.
    widths
        Width of each column.

    Raises
    ------
    OverflowError
        Keys of these widths do not fit 63 bits.
    ValueError
        A number is outside the width of its column.
    """
    _check(widths)
    keys: Ints | None = None
    for column, width in zip(columns, widths, strict=True):
        numbers = np.asarray(column, np.int64)
        # As unsigned numbers, negative ones are the largest.
        if numbers.size and int(np.maximum.reduce(numbers.view(np.uint64), axis=None)) >= width:
            raise ValueError(f"a key has {numbers.min()} to {numbers.max()} in a column of width {width}")
        keys = numbers if keys is None else keys * width + numbers
    assert keys is not None
    return keys


def unpack(keys: Ints, widths: Sequence[int]) -> tuple[Ints, ...]:
    """The columns from which `pack` made the keys, shape (n,) each.

    Raises
    ------
    OverflowError
        Keys of these widths do not fit 63 bits.
    """
    _check(widths)
    columns = []
    for width in reversed(widths[1:]):
        keys, column = np.divmod(keys, width)
        columns.append(column)
    return (keys, *reversed(columns))


def _check(widths: Sequence[int]) -> None:
    # If a width is 0, there are no keys.
    if prod(widths) > _MOST:
        raise OverflowError(f"keys of widths {', '.join(map(str, widths))} do not fit 63 bits")
