"""Classes of data operations by where they begin; `measures/access_pattern.py` defines them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.keyed import NO_VALUE

__all__ = ["CONSECUTIVE", "NAMES", "RANDOM", "SEQUENTIAL", "STRIDED", "classify"]

CONSECUTIVE, SEQUENTIAL, STRIDED, RANDOM = range(4)
NAMES = ("consecutive", "sequential", "strided", "random")

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def classify(
    key: Ints,
    begin: Ints,
    size: Ints,
    append: Bools,
    jumped: Bools,
    first: Bools,
    behind_cut: Bools,
) -> tuple[Ints, Ints]:
    """Class of each operation and its distance from the one before (`NO_VALUE` where there is none).

    Parameters
    ----------
    key
        Process, file and direction, ascending; in recorded order within.
    begin, size
        Offset (`NO_VALUE` where unknown) and bytes.
    append
        The data was appended.
    jumped
        A seek to an unknown place came before.
    first
        The first operation of a stream.
    behind_cut
        It begins where the end of the file cut the one before.
    """
    n = len(key)
    starts = np.append(True, key[1:] != key[:-1]) | first
    known = begin != NO_VALUE
    paired = np.zeros(n, np.bool_)
    paired[1:] = ~starts[1:] & known[1:] & known[:-1]
    delta = np.full(n, NO_VALUE)
    delta[1:][paired[1:]] = (begin[1:] - begin[:-1])[paired[1:]]
    before = np.zeros(n, np.int64)
    before[1:] = begin[:-1] + size[:-1]
    continues = paired & ((begin == before) | behind_cut)
    back = paired & (begin < before) & ~behind_cut
    beside = np.zeros(n, np.bool_)
    beside[1:] = back[:-1] & ~starts[1:]
    beside[:-1] |= back[1:]
    kind = np.where(continues, CONSECUTIVE, np.where(paired & (begin > before) & ~beside, SEQUENTIAL, RANDOM))
    # Without both offsets nothing can be compared: it goes on, unless a seek led to where the trace cannot tell.
    kind[~paired] = np.where(jumped, SEQUENTIAL, CONSECUTIVE)[~paired]
    again = np.zeros(n, np.bool_)
    again[1:] = (
        paired[1:] & paired[:-1] & (delta[1:] == delta[:-1]) & ~continues[1:] & ~append[1:] & (delta[1:] != 0)
    )
    strided = again.copy()
    strided[:-1] |= again[1:]
    strided[:-2] |= again[2:]
    kind[append] = CONSECUTIVE
    kind[strided] = STRIDED
    alone = np.append(starts[1:], True)
    heirs = np.flatnonzero(first & ~strided & ~append & ~alone)
    kind[heirs] = kind[heirs + 1]
    return kind, delta
