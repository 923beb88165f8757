"""The kernel that joins two lists of intervals finds what merging all intervals finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vani.analyzers.tables.intervals import Intervals, merge
from vani.kernels.join import join
from vani.kernels.library import library

pytestmark = pytest.mark.skipif(library() is None, reason="no kernels are here")

FAR = 1 << 62
ROWS = st.lists(
    st.tuples(st.sampled_from([-FAR, 0, 1, 2, FAR]), st.integers(-30, 30), st.integers(1, 8)), max_size=30
)


def columns(rows: list[tuple[int, int, int]]) -> list[np.ndarray]:
    group, start, length = (np.array([row[i] for row in rows], np.int64) for i in range(3))
    return [group, start, start + length]


def of(found: Intervals) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return found.group, found.start, found.end


@settings(deadline=None)
@example(one=[(0, 0, 5)], other=[(0, 5, 1)])
@example(one=[(0, 0, 8), (0, 20, 2)], other=[(0, 1, 1), (0, 3, 2), (0, 7, 8)])
@given(one=ROWS, other=ROWS)
def test_two_lists_are_joined_as_all_would_be_merged(one, other):
    found = join(of(merge(*columns(one))), of(merge(*columns(other))))
    assert found is not None
    assert [c.tolist() for c in found] == [c.tolist() for c in of(merge(*columns([*one, *other])))]


def test_the_lowest_group_of_all_is_one_like_others():
    lowest = columns([(-(1 << 63), -5, 9)])
    found = join(lowest, columns([]))
    assert found is not None
    assert [c.tolist() for c in found] == [c.tolist() for c in lowest]


@pytest.mark.parametrize(
    "rows",
    [
        [(0, 5, 1), (0, 0, 1)],
        [(1, 0, 1), (0, 5, 1)],
        [(0, 0, 0)],
        [(0, 0, -1)],
    ],
    ids=["starts fall", "groups fall", "empty", "ends before it starts"],
)
@pytest.mark.parametrize("with_others", [False, True])
def test_lists_that_are_not_in_order_are_left_to_numpy(rows, with_others):
    good = columns([(0, -9, 1), (0, 9, 1), (2, 0, 1)] if with_others else [])
    assert join(good, columns(rows)) is None
    assert join(columns(rows), good) is None


@settings(deadline=None)
@given(parts=st.lists(ROWS, min_size=2, max_size=5))
def test_parts_are_joined_as_all_would_be_merged(parts):
    merged = [merge(*columns(rows)) for rows in parts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vani.analyzers.tables.intervals.join", lambda one, other: None)
        by_numpy = Intervals.joined(list(merged))
    found = Intervals.joined(list(merged))
    assert [c.tolist() for c in of(found)] == [c.tolist() for c in of(by_numpy)]
