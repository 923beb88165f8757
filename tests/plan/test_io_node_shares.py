"""Shares of I/O nodes, in proportion to the size of jobs and by the knapsack."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from vani.centre.plan.io_node_shares import IMPOSSIBLE, Items, largest_floor, nearest_legal, optima, rounded


@pytest.mark.parametrize(
    ("share", "half_up", "up"),
    [
        (Fraction(1, 2), 1, 1),
        (Fraction(3, 2), 2, 2),
        (Fraction(5, 2), 3, 3),
        (Fraction(7, 5), 1, 2),
        (Fraction(2), 2, 2),
    ],
)
def test_halves_are_rounded_up_and_a_ceiling_is_offered(share, half_up, up):
    assert (rounded(share, "half-up"), rounded(share, "ceil")) == (half_up, up)


@pytest.mark.parametrize(("wanted", "number"), [(0, 0), (3, 2), (6, 4), (7, 8), (100, 8)])
def test_equally_near_legal_numbers_give_the_smaller(wanted, number):
    assert nearest_legal(wanted, [8, 4, 2, 0]) == number


CLASSES = st.lists(
    st.dictionaries(st.integers(0, 9), st.integers(0, 30), min_size=1, max_size=4), min_size=1, max_size=5
)


def items(options: dict[int, int]) -> Items:
    return Items(np.array(sorted(options)), np.array([options[n] for n in sorted(options)]))


def brute_force(classes: list[dict[int, int]], capacity: int) -> tuple[int, int] | None:
    """The largest value, and the smallest weight that achieves it."""
    found = [
        (sum(one[w] for one, w in zip(classes, taken, strict=True)), -sum(taken))
        for taken in product(*classes)
        if sum(taken) <= capacity
    ]
    if not found:
        return None
    value, weight = max(found)
    return value, -weight


@given(CLASSES, st.integers(0, 50))
def test_every_capacity_has_the_optimum_of_brute_force_with_the_fewest(classes, capacity):
    found = optima([items(one) for one in classes], capacity)
    for pool in range(capacity + 1):
        wanted = brute_force(classes, pool)
        taken = found.at(pool)
        if wanted is None:
            assert taken is None
            assert found.values[pool] == IMPOSSIBLE
            continue
        weights = [sorted(one)[n] for one, n in zip(classes, taken, strict=True)]
        assert (found.values[pool], found.used[pool]) == wanted
        assert sum(weights) == found.used[pool]
        assert sum(one[w] for one, w in zip(classes, weights, strict=True)) == wanted[0]


@pytest.mark.parametrize("seed", range(5))
def test_optimum_matches_an_integer_programme(seed):
    random = np.random.default_rng(seed)
    weights = np.array([0, 1, 2, 4, 8, 16])
    classes = [Items(weights, random.integers(1, 10**6, len(weights))) for _ in range(30)]
    capacity = 60
    values = np.concatenate([one.values for one in classes])
    one_each = np.kron(np.eye(len(classes)), np.ones(len(weights)))
    done = milp(
        -values,
        integrality=np.ones(len(values)),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(one_each, 1, 1),
            LinearConstraint(np.tile(weights, len(classes))[None, :], 0, capacity),
        ],
        options={"mip_rel_gap": 0},
    )
    assert optima(classes, capacity).values[-1] == round(-done.fun)


def test_capacity_beyond_the_solved_range_counts_as_its_largest():
    found = optima([items({1: 5, 2: 9})], 2)
    assert found.at(100) == found.at(2) == [1]
    assert found.at(0) is None


@given(CLASSES, st.integers(0, 50))
def test_largest_floor_matches_brute_force(classes, capacity):
    weights = [np.array(sorted(one)) for one in classes]
    shares = [np.array([one[w] / 31 + 0.01 for w in sorted(one)]) for one in classes]
    reached = [
        min(one[w] / 31 + 0.01 for one, w in zip(classes, taken, strict=True))
        for taken in product(*classes)
        if sum(taken) <= capacity
    ]
    assert largest_floor(weights, shares, capacity) == max(reached, default=0.0)
