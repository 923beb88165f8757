"""Converts callers' lists and arrays to arrays of a known shape, or raises an error of one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vani.errors import InputError

_MOST: Final = 1e18


def rows(
    values: ArrayLike, columns: Sequence[str], where: str, *, unknown: Sequence[str] = ()
) -> NDArray[np.float64]:
    """Convert to an array of shape (rows, columns) with figures from 0 to 1e18. Columns in `unknown` may have NaN.

    Raises
    ------
    InputError
        The shape is wrong, there are no rows, or a figure is invalid.
    """
    todo = f"give rows of {', '.join(columns)}"
    try:
        table = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("is not a table of numbers", where=where, todo=todo) from None
    if table.ndim != 2 or table.shape[1] != len(columns) or not len(table):
        raise InputError(f"has the shape {table.shape}", where=where, todo=todo)
    allowed = np.isnan(table) & np.isin(columns, list(unknown))
    wrong = np.argwhere(~(allowed | ((table >= 0) & (table <= _MOST))))
    if len(wrong):
        row, column = wrong[0].tolist()
        raise InputError(
            f"{columns[column]} is {table[row, column]:g}", where=f"{where}[{row}]", todo="give 0 to 1e18"
        )
    return table


def whole(value: object, where: str, *, least: int = 0, most: int = 1 << 62) -> int:
    """Convert to a whole number within bounds. A float with an integral value is accepted.

    Raises
    ------
    InputError
        The value is not a whole number, or is out of bounds.
    """
    todo = f"give a whole number from {least:,} to {most:,}"
    try:
        number: int = int(value)  # type: ignore[call-overload]
        is_whole = bool(number == value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"is {value!r}"[:100], where=where, todo=todo) from None
    if not is_whole or not least <= number <= most:
        raise InputError(f"is {value}"[:100], where=where, todo=todo)
    return number
