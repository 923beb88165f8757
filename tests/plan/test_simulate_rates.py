"""Shares of resources are max-min fair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plan.linear_programs import by_linear_programs, largest_difference, random_usage
from vani.centre.plan.simulate.events import CAPPED, Usage, max_min


def usage(*flows: dict[int, float], cap: list[float] | None = None) -> Usage:
    """Flows as their use of each resource per unit and second."""
    return Usage(
        np.cumsum([0, *map(len, flows)]),
        np.array([resource for flow in flows for resource in flow]),
        np.array([load for flow in flows for load in flow.values()]),
        np.array(cap or [np.inf] * len(flows)),
    )


def test_one_resource_is_shared_equally():
    rates, bound = max_min(usage({0: 1.0}, {0: 1.0}, {0: 1.0}), np.array([3.0]))
    assert rates.tolist() == pytest.approx([1, 1, 1])
    assert bound.tolist() == [0, 0, 0]


def test_capped_flow_leaves_its_rest_to_the_others():
    rates, bound = max_min(usage({0: 1.0}, {0: 1.0}, cap=[0.5, np.inf]), np.array([3.0]))
    assert rates.tolist() == pytest.approx([0.5, 2.5])
    assert bound.tolist() == [CAPPED, 0]


def test_long_flow_is_limited_at_its_narrowest_resource():
    # The classic line: one flow through both, one through each.
    rates, bound = max_min(usage({0: 1.0, 1: 1.0}, {0: 1.0}, {1: 1.0}), np.array([1.0, 2.0]))
    assert rates.tolist() == pytest.approx([0.5, 0.5, 1.5])
    assert bound.tolist() == [0, 0, 1]


def test_a_flow_striped_over_k_targets_loads_each_with_its_share():
    # Alone on four targets: four times one target's rate; with a flow on one of them, that target limits
    # both.
    striped = dict.fromkeys(range(4), 0.25)
    assert max_min(usage(striped), np.ones(4))[0].tolist() == pytest.approx([4.0])
    rates, _ = max_min(usage(striped, {0: 1.0}), np.ones(4))
    assert rates.tolist() == pytest.approx([0.8, 0.8])


def test_a_resource_without_capacity_stops_its_flows_and_no_others():
    rates, _ = max_min(usage({0: 1.0, 1: 1.0}, {1: 1.0}), np.array([0.0, 2.0]))
    assert rates.tolist() == pytest.approx([0.0, 2.0])


@pytest.mark.slow
@given(seed=st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_rates_equal_those_of_a_sequence_of_linear_programs(seed):
    assert largest_difference(*random_usage(seed, flows=25, resources=9)) < 1e-6


@given(seed=st.integers(0, 10**6), flows=st.integers(1, 60), resources=st.integers(1, 15))
@settings(deadline=None)
def test_nothing_is_used_beyond_its_capacity_and_each_flow_is_bound(seed, flows, resources):
    use, capacity = random_usage(seed, flows, resources)
    rates, bound = max_min(use, capacity)
    owner = np.repeat(np.arange(flows), np.diff(use.first))
    used = np.bincount(use.resource, use.load * rates[owner], minlength=resources)
    assert (used <= capacity * (1 + 1e-9)).all()
    for flow, by in enumerate(bound):
        if by == CAPPED:
            assert rates[flow] == use.cap[flow]
            continue
        # Its bottleneck is full, and no other flow there has more: the definition of max-min fairness.
        assert used[by] == pytest.approx(capacity[by], abs=1e-9)
        assert rates[flow] >= rates[owner[use.resource == by]].max() - 1e-9


@given(seed=st.integers(0, 10**6), factor=st.floats(1.0, 10.0))
@settings(deadline=None)
def test_least_rate_never_falls_with_a_growing_resource(seed, factor):
    use, capacity = random_usage(seed)
    before, _ = max_min(use, capacity)
    capacity[seed % len(capacity)] *= factor
    assert max_min(use, capacity)[0].min() >= before.min() * (1 - 1e-9)


def test_more_capacity_in_one_place_can_slow_a_flow_in_another():
    # Why only the smallest rate is guaranteed: the long flow gets more at 0 and takes it from the other at 1.
    flows = usage({0: 1.0, 1: 1.0}, {1: 1.0})
    assert max_min(flows, np.array([0.25, 1.0]))[0].tolist() == pytest.approx([0.25, 0.75])
    assert max_min(flows, np.array([0.5, 1.0]))[0].tolist() == pytest.approx([0.5, 0.5])


def test_the_oracle_knows_the_line_by_itself():
    line = usage({0: 1.0, 1: 1.0}, {0: 1.0}, {1: 1.0})
    assert by_linear_programs(line, np.array([1.0, 2.0])).tolist() == pytest.approx([0.5, 0.5, 1.5])
