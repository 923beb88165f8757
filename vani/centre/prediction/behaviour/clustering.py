"""Behaviours of runs by their totals: density-based clusters of logarithms, numbered in order of appearance.

Two runs behave alike if their bytes read, bytes written and metadata operations each agree within a factor of 1.2,
or if other runs link them (DBSCAN in which a single point is dense enough). Runs are taken in order: a run near
earlier runs gets the id of the nearest one, any other run a new id. So later runs never change the id of an earlier
one. Unlike in DBSCAN over all runs at once, a run between two behaviours does not merge them.
"""

from itertools import product
from typing import Final

import numpy as np

from vani.centre.columns import Floats, Ints

FACTOR: Final = 1.2
"""Factor by which totals of one behaviour may differ."""


_NOTHING: Final = -1e6
"""Logarithm used for 0; it is far from every other value."""
_STEP: Final = float(np.log(FACTOR))
_ROUNDING: Final = 1e-9


def behaviour_ids(categories: Ints, totals: Floats) -> Ints:
    """Number the behaviours of each category from 0 as they appear.

    Parameters
    ----------
    categories
        Category of each run, in order of submission, shape (runs,).
    totals
        Totals of each run, finite and non-negative, shape (runs, figures).

    Returns
    -------
    Ids, shape (runs,).
    """
    if not len(categories):
        return np.zeros(0, np.int64)
    logs = np.where(totals > 0, np.log(np.where(totals > 0, totals, 1.0)), _NOTHING)
    # Runs in one cell are within the factor of each other, so only the first run of a cell has to look for
    # neighbours.
    cells = np.column_stack([categories, np.floor(logs / _STEP).astype(np.int64)])
    order = np.lexsort(cells.T[::-1])
    changes = np.any(np.diff(cells[order], axis=0) != 0, axis=1)
    cell = np.empty(len(cells), np.int64)
    cell[order] = np.concatenate([[0], np.cumsum(changes)])
    # lexsort is stable, so runs of a cell stay in order of time.
    by_cell = np.split(order, np.flatnonzero(changes) + 1)
    return _numbered(cells, logs, by_cell)[cell]


def _numbered(cells: Ints, logs: Floats, by_cell: list[Ints]) -> Ints:
    """The id of each cell, based on runs before the first one in the cell."""
    firsts = np.array([runs[0] for runs in by_cell])
    known: dict[tuple[int, ...], int] = {}
    ids = np.empty(len(by_cell), np.int64)
    behaviours: dict[int, int] = {}
    around = list(product((-1, 0, 1), repeat=logs.shape[1]))
    for cell in np.argsort(firsts).tolist():
        first = firsts[cell]
        category, *place = cells[first].tolist()
        nearest, least = -1, _STEP + _ROUNDING
        for step in around:
            near = known.get((category, *(a + b for a, b in zip(place, step, strict=True))))
            if near is None:
                continue
            before = by_cell[near][: np.searchsorted(by_cell[near], first)]
            apart = float(np.abs(logs[before] - logs[first]).max(axis=1).min())
            if apart < least or (apart == least and ids[near] < ids[nearest]):
                nearest, least = near, apart
        if nearest < 0:
            ids[cell] = behaviours.get(category, 0)
            behaviours[category] = behaviours.get(category, 0) + 1
        else:
            ids[cell] = ids[nearest]
        known[category, *place] = cell
    return ids
