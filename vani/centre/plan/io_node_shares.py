"""I/O nodes shared among jobs as by Bez et al. (IPDPS 2021): in proportion to the jobs' size, and as a knapsack.

STATIC, SIZE and PROCESS (section 3.2) round N s / sum(s) and give a job the nearest number of I/O nodes that it can
have. Rounding halves up, and taking the smaller of two equally near numbers, reproduces table 4. The `ceil` printed for
STATIC does not (BT-C would get 2). Nothing keeps the sum of the rounded numbers within the pool.

The multiple-choice knapsack (equation 1) takes one item of each class so that the sum of values is largest among those
that fit, for every capacity at once. Classes are jobs, weights are numbers of I/O nodes, values are their worth.

    best(i, w) = max over items k of class i of  best(i - 1, w - weight(k)) + value(k),   best(0, 0) = 0

is the optimum that uses exactly w. The optimum for a capacity of W is the best with w <= W, and the smallest of equals.
Values are integers, so a sum does not depend on the order of its terms.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from vani.centre.columns import Floats, Ints

Rounding = Literal["half-up", "ceil"]


def rounded(share: Fraction, rounding: Rounding) -> int:
    """Round a share to a number of I/O nodes. A `Fraction` is exact, so rounding error cannot move a half."""
    return ceil(share) if rounding == "ceil" else floor(share + Fraction(1, 2))


def nearest_legal(wanted: int, legal: Iterable[int]) -> int:
    """The number in `legal` (not empty) that is nearest to `wanted`, the smaller of two equally near ones."""
    return min(legal, key=lambda number: (abs(number - wanted), number))



IMPOSSIBLE: Final = -(1 << 62)
"""Value of a capacity at which no item of some class fits."""


@dataclass(frozen=True)
class Items:
    """The items of one class, shape (items,) each. Of equal items the first is taken."""

    weights: Ints
    values: Ints


@dataclass(frozen=True)
class Optima:
    """The optimum of each capacity 0..len(values) - 1.

    Attributes
    ----------
    values
        Largest sum by capacity, shape (capacities,); `IMPOSSIBLE` if nothing fits.
    used
        Capacity that the optimum uses, shape (capacities,).
    taken
        Index of the item taken, by class and exact size, shape (classes, capacities).
    """

    values: Ints
    used: Ints
    taken: NDArray[np.uint16]
    classes: Sequence[Items]

    def at(self, capacity: int) -> list[int] | None:
        """Index of the item taken of each class; None if nothing fits. The capacity is at most the largest solved."""
        capacity = min(capacity, len(self.values) - 1)
        if self.values[capacity] <= IMPOSSIBLE:
            return None
        left = int(self.used[capacity])
        items = []
        for number in range(len(self.classes) - 1, -1, -1):
            item = int(self.taken[number, left])
            items.append(item)
            left -= int(self.classes[number].weights[item])
        return items[::-1]


def optima(classes: Sequence[Items], capacity: int) -> Optima:
    """Solve for every capacity up to `capacity`. Time and memory are proportional to items and classes times capacity.

    Sums of values must be below 2^61.
    """
    sizes = np.arange(capacity + 1)
    exact = np.full(capacity + 1, IMPOSSIBLE, dtype=np.int64)
    exact[0] = 0
    taken = np.zeros((len(classes), capacity + 1), dtype=np.uint16)
    for number, items in enumerate(classes):
        widest = min(int(items.weights.max()), capacity + 1)
        before = np.concatenate([np.full(widest, IMPOSSIBLE, dtype=np.int64), exact])
        sums = before[np.maximum(sizes + widest - items.weights[:, None], 0)]
        sums = np.where(sums > IMPOSSIBLE, sums + items.values[:, None], IMPOSSIBLE)
        taken[number] = sums.argmax(axis=0)
        exact = sums.max(axis=0)
    values = np.maximum.accumulate(exact)
    is_new = np.concatenate([[True], values[1:] > values[:-1]])
    return Optima(values, np.maximum.accumulate(np.where(is_new, sizes, 0)), taken, classes)


def largest_floor(weights: Sequence[Ints], shares: Sequence[Floats], capacity: int) -> float:
    """The largest share that all classes can have at once within `capacity`; 0 if nothing fits."""
    floors: list[float] = np.unique(np.concatenate(shares)).tolist()
    fit = bisect_right(floors, float(capacity), key=lambda floor: _needed(weights, shares, floor))
    return floors[fit - 1] if fit else 0.0


def _needed(weights: Sequence[Ints], shares: Sequence[Floats], floor: float) -> float:
    """Least sum of weights that gives every class a share of at least `floor`; infinite if a class cannot have it."""
    need = 0
    for weight, share in zip(weights, shares, strict=True):
        enough = weight[share >= floor]
        if not enough.size:
            return np.inf
        need += int(enough.min())
    return need
