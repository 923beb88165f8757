"""Curves of bandwidth by number of I/O nodes, and what follows from them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vani.models.forwarding import (
    Pattern,
    Rate,
    fewest,
    legal,
    measured,
    nearest,
    prefetch_chunk,
    speedups,
)
from vani.units import KiB, MiB


def test_the_bundled_measurements_are_those_of_the_paper():
    scenarios = measured()
    assert len(scenarios) == 189
    # By mean, direct access is the best in 22 scenarios, 1, 2, 4 and 8 I/O nodes in 10, 91, 16 and 50.
    best = Counter(max(s.curve, key=lambda n, s=s: s.curve[n].mean) for s in scenarios)
    assert best == {0: 22, 1: 10, 2: 91, 4: 16, 8: 50}


@given(st.sampled_from(measured()))
def test_a_measured_pattern_is_its_own_nearest(scenario):
    found, distance = nearest(scenario.pattern, measured())
    assert (found, distance) == (scenario, 0)


def test_the_nearest_has_the_same_layout_and_order():
    for layout, order in (("fpp", "contiguous"), ("shared", "contiguous"), ("shared", "strided")):
        found, distance = nearest(Pattern(24, 24 * 20, layout, order, 200 * KiB), measured())
        assert (found.pattern.layout, found.pattern.order) == (layout, order)
        assert 0 < distance < 2
    # A process with a file of its own has nobody to interleave with.
    assert nearest(Pattern(8, 96, "fpp", "strided", 32 * KiB), measured())[1] == 0


def test_a_doubling_is_one():
    assert nearest(Pattern(64, 64 * 48, "fpp", "contiguous", 8 * MiB), measured())[1] == 1


@given(st.integers(1, 5000), st.booleans())
def test_io_nodes_divide_the_compute_nodes(nodes, direct):
    found = legal(nodes, [0, 1, 2, 3, 4, 8], direct=direct)
    assert 1 in found
    assert (0 in found) is direct
    assert all(nodes % n == 0 for n in found if n)


def test_the_fewest_that_are_nearly_the_best():
    curve = {0: Rate(95, 0), 1: Rate(10, 0), 2: Rate(91, 0), 8: Rate(100, 0)}
    assert fewest(curve, [0, 1, 2, 8], 0.1) == 2
    assert fewest(curve, [0, 1, 2, 8], 0.05) == 8
    assert fewest(curve, [0, 1, 2], 0.1) == 0
    assert fewest(curve, [1], 0.1) == 1
    assert fewest(curve, [3], 0.1) is None


def test_speedups_never_slow_down():
    curve = {0: Rate(50, 60), 1: Rate(10, 1), 2: Rate(100, 20)}
    assert speedups(curve, 1, 2) == pytest.approx((80 / 11, 10, 120 / 9))
    least, expected, most = speedups(curve, 0, 2)
    assert (least, expected, most) == (1, 2, float("inf"))


def test_equation_2():
    assert prefetch_chunk(64 * MiB, 4, 256) == MiB
    assert prefetch_chunk(64 * MiB, 1, 0) == 64 * MiB
