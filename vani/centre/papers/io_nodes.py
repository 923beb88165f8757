"""I/O nodes for running applications: the multiple-choice knapsack of Bez et al. (IPDPS 2021)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vani.centre.papers.figures import rows, whole
from vani.centre.plan.io_node_shares import Items, optima
from vani.errors import InputError

_MOST_CELLS: Final = 100_000_000
"""Most applications, or items of one application, times I/O nodes: 2 GB."""
_MOST_ITEMS: Final = 65_535
_BITS: Final = 60
"""Bits of a sum of bandwidths, so that sums of whole numbers stay below 2^61."""


class Mckp(NamedTuple):
    """The optimum: I/O nodes `w` and bandwidth `p` of each application, in the unit of the curves."""

    w: list[int]
    p: list[float]


def mckp(curves: Sequence[ArrayLike], pool: int) -> Mckp:
    """Choose the I/O nodes of each application so that the sum of bandwidths is largest.

    Equation 1: maximise sum p_ij x_ij, where sum w_ij x_ij <= W and one item j of each application i is taken. Among
    equal sums, the one with the fewest I/O nodes is taken.

    Parameters
    ----------
    curves
        For each application its items, rows of (w_ij, p_ij): I/O nodes (0 for direct access) and the bandwidth with
        them, in any unit. List only numbers that the application can have: those that divide its compute nodes.
    pool
        W, the number of I/O nodes.

    Raises
    ------
    InputError
        A figure is invalid, or the applications need more I/O nodes than there are.

    Examples
    --------
    Table 4: twelve I/O nodes for BT-C, BT-D, IOR-MPI, POSIX-L, MAD and S3D, with the points printed in the paper, in
    MB/s:

    >>> curves = [[(0, 195.7), (1, 77.6)], [(1, 597.2), (2, 594.2)], [(1, 268.4), (8, 5089.9)],
    ...           [(2, 411.9)], [(0, 255.9), (1, 77.8)], [(0, 241.3), (2, 48.1)]]
    >>> best = mckp(curves, 12)
    >>> best.w
    [0, 1, 8, 2, 0, 0]
    >>> round(sum(best.p), 1)
    6791.9
    """
    capacity = whole(pool, "pool")
    tables = [rows(curve, ("w", "p"), f"curves[{i}]") for i, curve in enumerate(curves)]
    if not tables:
        raise InputError("is empty", where="curves", todo="give the items of one application at least")
    for i, table in enumerate(tables):
        if len(table) > _MOST_ITEMS:
            raise InputError(f"has {len(table):,} items", where=f"curves[{i}]", todo=f"give {_MOST_ITEMS:,} at most")
        for j, w in enumerate(table[:, 0].tolist()):
            whole(w, f"curves[{i}][{j}]: w")
    capacity = min(capacity, int(sum(table[:, 0].max() for table in tables)))
    if max(len(tables), *map(len, tables)) * (capacity + 1) > _MOST_CELLS:
        raise InputError(
            f"{len(tables):,} applications that can use {capacity:,} I/O nodes are more than can be solved",
            where="pool",
            todo="give a smaller pool, or fewer applications or items",
        )
    # Whole numbers add up exactly. Scaling by a power of two preserves the digits of a bandwidth.
    most = sum(float(table[:, 1].max()) for table in tables)
    scale = 2.0 ** min(_BITS - math.frexp(most)[1], 1023) if most > 0 else 1.0
    # Items that need more than the pool get a weight that never fits.
    classes = [
        Items(np.minimum(table[:, 0], capacity + 1).astype(np.int64), np.rint(table[:, 1] * scale).astype(np.int64))
        for table in tables
    ]
    taken = optima(classes, capacity).at(capacity)
    if taken is None:
        least = int(sum(table[:, 0].min() for table in tables))
        raise InputError(f"is {capacity:,}", where="pool", todo=f"the applications need {least:,} I/O nodes at least")
    chosen = [table[j] for table, j in zip(tables, taken, strict=True)]
    return Mckp([int(w) for w, _ in chosen], [float(p) for _, p in chosen])
