"""I/O nodes in proportion to the size of jobs: STATIC, SIZE and PROCESS of Bez et al., IPDPS 2021, section 3.2.

A job is given N s / sum(s) I/O nodes, rounded, and of the numbers that it can have the nearest one. Halves are rounded
up, and of two that are as near the smaller is taken, which gives table 4; the `ceil` that is printed for STATIC does
not (BT-C would get 2). Nothing keeps the sum of rounded numbers within the pool.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import ceil, floor
from typing import Literal

__all__ = ["Rounding", "nearest_legal", "rounded"]

Rounding = Literal["half-up", "ceil"]


def rounded(share: Fraction, rounding: Rounding) -> int:
    """A number of I/O nodes, exactly: fractions have no error that a half could fall to."""
    return ceil(share) if rounding == "ceil" else floor(share + Fraction(1, 2))


def nearest_legal(wanted: int, legal: Iterable[int]) -> int:
    """The number of `legal` (not empty) that is nearest to `wanted`; of two the smaller."""
    return min(legal, key=lambda number: (abs(number - wanted), number))
