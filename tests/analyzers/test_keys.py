"""Keys made of several integers are lossless and ordered; values that do not fit are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vani.analyzers.int_table import key_widths, pack, unpack
from vani.analyzers.workload import Ends

shapes = st.lists(st.integers(1, 1 << 15), min_size=1, max_size=4)


@st.composite
def rows_and_widths(draw):
    widths = draw(shapes)
    rows = draw(st.lists(st.tuples(*(st.integers(0, width - 1) for width in widths)), max_size=20))
    return rows, widths


def columns_of(rows, widths):
    return [np.array([row[i] for row in rows], np.int64) for i in range(len(widths))]


@given(rows_and_widths())
def test_a_key_gives_its_columns_back(case):
    rows, widths = case
    found = unpack(pack(columns_of(rows, widths), widths), widths)
    assert list(zip(*(column.tolist() for column in found), strict=True)) == rows


@given(rows_and_widths())
def test_keys_are_in_the_order_of_their_columns(case):
    rows, widths = case
    keys = pack(columns_of(rows, widths), widths).tolist()
    assert sorted(range(len(rows)), key=keys.__getitem__) == sorted(range(len(rows)), key=rows.__getitem__)


def test_single_number_applies_to_all_rows():
    assert pack([3, np.array([0, 1])], [4, 2]).tolist() == [6, 7]


def test_the_largest_key_that_fits_is_kept():
    widths = [1 << 31, 1 << 32]
    last = [np.array([width - 1]) for width in widths]
    assert pack(last, widths).tolist() == [(1 << 63) - 1]
    assert [column.tolist() for column in unpack(pack(last, widths), widths)] == [
        [width - 1] for width in widths
    ]


def test_narrow_columns_do_not_wrap():
    assert pack([np.array([100], np.int8), np.array([99], np.int8)], [1000, 1000]).tolist() == [100_099]


@pytest.mark.parametrize(
    "work", [lambda widths: pack([0, 0], widths), lambda widths: unpack(np.zeros(1), widths)]
)
def test_widths_that_do_not_fit_are_refused(work):
    with pytest.raises(OverflowError, match="do not fit 63 bits"):
        work([1 << 32, 1 << 32])


@pytest.mark.parametrize("number", [-1, 4])
def test_a_number_outside_its_width_is_refused(number):
    with pytest.raises(ValueError, match="column of width 4"):
        pack([np.array([0]), np.array([number])], [2, 4])


def test_first_key_column_may_use_all_bits_left_by_the_second():
    widths = key_widths(1000)
    largest = np.array([widths[0] - 1])
    assert [int(column[0]) for column in unpack(pack((largest, 999), widths), widths)] == [widths[0] - 1, 999]
    with pytest.raises(ValueError, match="in a column of width"):
        pack((largest + 1, 0), widths)


def test_moments_of_more_files_than_fit_are_refused():
    """A key built by hand used to overflow silently."""
    with pytest.raises(ValueError, match="in a column of width"):
        Ends(np.ones(1, np.bool_), keys=np.zeros(1, np.int64)).at(np.array([1 << 52]), np.array([0]))
