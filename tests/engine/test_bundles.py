"""How tasks are dealt out to bundles."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vani.engine.bundles import bundled, in_order


@given(items=st.lists(st.integers(), max_size=200), least=st.integers(1, 50))
def test_every_task_is_in_one_bundle_and_results_come_in_the_order_of_the_tasks(items, least):
    bundles = bundled(items, least)
    assert all(bundles)
    assert min(least, len(items)) <= len(bundles) <= len(items)
    assert in_order(bundles) == items
    assert in_order([[2 * item for item in bundle] for bundle in bundles]) == [2 * item for item in items]


@given(sizes=st.lists(st.integers(0, 1000), min_size=1, max_size=200), least=st.integers(1, 50))
def test_of_long_tasks_that_come_first_no_bundle_gets_more_than_one_beyond_its_share(sizes, least):
    sizes.sort(reverse=True)
    bundles = bundled(sizes, least)
    assert max(map(sum, bundles)) <= sum(sizes) / len(bundles) + sizes[0]
