"""Arrays as C sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["address"]


def address(array: NDArray[Any], dtype: DTypeLike, length: int | None = None) -> int:
    """Where the elements of an array lie, which whoever calls keeps alive.

    Raises
    ------
    TypeError
        They are not of that type, not one behind the other where such may lie, or not `length` many: a mistake of a
        wrapper, which C would not notice.
    """
    if array.dtype != np.dtype(dtype) or not (array.flags.c_contiguous and array.flags.aligned):
        raise TypeError(f"a kernel wants contiguous and aligned {np.dtype(dtype)}, not {array.dtype}")
    if length is not None and array.size != length:
        raise TypeError(f"a kernel wants {length} elements, not {array.size}")
    return int(array.ctypes.data)
