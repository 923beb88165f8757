"""Classes of data operations by start offset; `measures/access_pattern.py` defines them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.int_table import NO_VALUE

CONSECUTIVE, SEQUENTIAL, STRIDED, RANDOM = range(4)
NAMES = ("consecutive", "sequential", "strided", "random")

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def distances(starts: Bools, begin: Ints) -> Ints:
    """Distance in bytes from the start of the stream's previous operation; `NO_VALUE` if unknown.

    `starts`: start of a stream or of a new part of it; `begin`: offset (`NO_VALUE` if unknown); shape (n,) each.
    """
    delta = np.full(len(begin), NO_VALUE)
    np.subtract(begin[1:], begin[:-1], out=delta[1:])
    unknown = begin == NO_VALUE
    delta[1:][starts[1:] | unknown[1:] | unknown[:-1]] = NO_VALUE
    return delta


def classify(
    starts: Bools,
    delta: Ints,
    size: Ints,
    append: Bools,
    jumped: Bools,
    first: Bools,
    behind_cut: Bools,
) -> NDArray[np.int8]:
    """Class of each operation; stream by stream, each in recorded order, shape (n,) each.

    Parameters
    ----------
    starts, delta
        See `distances`.
    size
        Size in bytes.
    append
        Whether the data was appended.
    jumped
        Whether a seek to an unknown position came before.
    first
        Whether it is the first operation of a stream.
    behind_cut
        Whether it begins where the end of the file cut the previous operation short.
    """
    n = len(delta)
    paired, before = delta != NO_VALUE, np.append(0, size[:-1])
    continues = paired & ((delta == before) | behind_cut)
    back = paired & (delta < before) & ~behind_cut
    next_to_back = np.zeros(n, np.bool_)
    next_to_back[1:] = back[:-1] & ~starts[1:]
    next_to_back[:-1] |= back[1:]
    kind = np.where(paired & (delta > before) & ~next_to_back, np.int8(SEQUENTIAL), np.int8(RANDOM))
    # Without both offsets, nothing can be compared: the access continues unless a seek led to an unrecorded position.
    kind[continues | append | ~paired] = CONSECUTIVE
    kind[jumped & ~paired & ~append] = SEQUENTIAL
    again = np.zeros(n, np.bool_)
    again[1:] = paired[1:] & (delta[1:] == delta[:-1]) & ~continues[1:] & ~append[1:] & (delta[1:] != 0)
    strided = again.copy()
    strided[:-1] |= again[1:]
    strided[:-2] |= again[2:]
    kind[strided] = STRIDED
    alone = np.append(starts[1:], True)
    heirs = np.flatnonzero(first & ~strided & ~append & ~alone)
    kind[heirs] = kind[heirs + 1]
    return kind
