"""Arrays as C sees them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["address"]

_NOTHING = ctypes.c_char * 0


def address(array: NDArray[Any], dtype: DTypeLike, length: int | None = None) -> int:
    """Where the elements of an array lie, which whoever calls keeps alive.

    Raises
    ------
    TypeError
        They are not of that type, not one behind the other where such may lie, or not `length` many: a mistake of a
        wrapper, which C would not notice.
    """
    flags = array.flags
    if array.dtype != dtype or not (flags.c_contiguous and flags.aligned):
        raise TypeError(f"a kernel wants contiguous and aligned {np.dtype(dtype)}, not {array.dtype}")
    if length is not None and array.size != length:
        raise TypeError(f"a kernel wants {length} elements, not {array.size}")
    if not flags.writeable:
        return int(array.ctypes.data)
    # The same, several times as quick.
    memory: Any = array
    return ctypes.addressof(_NOTHING.from_buffer(memory))
