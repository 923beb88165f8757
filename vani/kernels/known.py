"""Columns of which some values are unknown, as Arrow keeps them."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.kernels.arrays import address

__all__ = ["Column", "Known"]


class Known(ctypes.Structure):
    """As `struct known`."""

    _fields_ = (("bits", ctypes.c_void_p), ("first", ctypes.c_int64))


@dataclass(frozen=True, eq=False)
class Column:
    """Values, shape (n,), and which of them are known."""

    values: NDArray[Any]
    bits: NDArray[np.uint8] | None = None
    """A bit for each, the first one at `first`, lowest bit of a byte first; 0: unknown. None: all are known."""
    first: int = 0

    def known(self) -> Known:
        """For a kernel, which needs this column kept alive.

        Raises
        ------
        TypeError
            There are not bits for all values.
        """
        if self.bits is None:
            return Known(None, 0)
        if self.first < 0 or 8 * len(self.bits) < self.first + len(self.values):
            raise TypeError(f"a kernel wants {len(self.values)} bits from {self.first} on")
        return Known(address(self.bits, np.uint8), self.first)
