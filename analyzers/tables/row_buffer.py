"""Columns of many batches put together: to add up ten rows takes numpy as long as to add up a thousand."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["RowBuffer"]

_ENOUGH_ROWS = 1 << 14
_ENOUGH_PARTS = 64


class RowBuffer:
    """Rows that wait to be added up, in the order in which they came."""

    def __init__(self) -> None:
        self._parts: list[tuple[NDArray[Any], ...]] = []
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def add(self, *columns: NDArray[Any]) -> bool:
        """Keep columns of the same length, which nobody may change from here on; tell whether there are enough rows."""
        if len(columns[0]):
            self._parts.append(columns)
            self._rows += len(columns[0])
        return self._rows >= _ENOUGH_ROWS or len(self._parts) >= _ENOUGH_PARTS

    def take(self) -> tuple[NDArray[Any], ...]:
        """All columns, of one row at least; then there are none."""
        parts, self._parts, self._rows = self._parts, [], 0
        return parts[0] if len(parts) == 1 else tuple(map(np.concatenate, zip(*parts, strict=True)))
