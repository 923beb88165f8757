"""I/O nodes in proportion to the size of jobs."""

from __future__ import annotations

from fractions import Fraction

import pytest

from vani.models.proportional import nearest_legal, rounded


@pytest.mark.parametrize(
    ("share", "half_up", "up"),
    [(Fraction(1, 2), 1, 1), (Fraction(3, 2), 2, 2), (Fraction(5, 2), 3, 3), (Fraction(7, 5), 1, 2), (Fraction(2), 2, 2)],
)
def test_halves_are_rounded_up_and_a_ceiling_is_offered(share, half_up, up):
    assert (rounded(share, "half-up"), rounded(share, "ceil")) == (half_up, up)


@pytest.mark.parametrize(("wanted", "number"), [(0, 0), (3, 2), (6, 4), (7, 8), (100, 8)])
def test_of_two_legal_numbers_that_are_as_near_the_smaller_is_taken(wanted, number):
    assert nearest_legal(wanted, [8, 4, 2, 0]) == number
