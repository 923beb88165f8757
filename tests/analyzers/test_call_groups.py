"""Grouping calls and counting seeks gives the same result as examining them one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vani.analyzers.batch import group_codes
from vani.analyzers.int_table import NO_VALUE, Factorized
from vani.analyzers.streams import Seeks, distances

NARROW, WIDE = st.integers(-3, 3), st.sampled_from([-(1 << 15), -1, 0, 256, (1 << 15) - 1])
CALLS = st.lists(st.tuples(NARROW, WIDE, st.integers(0, 1 << 40)), max_size=60)


@given(CALLS)
def test_calls_are_alike_that_agree_in_every_column(rows):
    columns = [
        np.array([row[i] for row in rows], kind) for i, kind in enumerate((np.int8, np.int16, np.int64))
    ]
    codes = group_codes(*columns).tolist()
    assert len(set(zip(codes, rows, strict=True))) == len(set(codes)) == len(set(rows))


def test_wide_product_of_many_values_makes_no_more_groups_than_calls():
    values = np.random.default_rng(1).integers(0, 1 << 20, (3, 5000))
    codes = group_codes(*values)
    row = np.unique(codes, return_index=True)[1]
    assert len(row) == len(np.unique(values, axis=1)[0])
    assert (values[:, row[codes]] == values).all()


@pytest.mark.parametrize("kind", [np.bool_, np.int8, np.uint8, np.int16, np.uint16])
def test_narrow_values_of_any_type_are_numbered(kind):
    values = np.array([1, 0, 1, 100, 0], np.int64).astype(kind)
    dense = Factorized.of(values)
    assert (dense.keys[dense.codes] == values).all()
    assert (np.diff(dense.keys) > 0).all()


@given(st.lists(st.integers(0, 3)), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 40))))
def test_seeks_are_counted_by_file_up_to_a_row(files, asked):
    seeks = Seeks(np.array(files, np.int64), np.arange(len(files)) * 2)
    file, row = (np.array([one[i] for one in asked], np.int64) for i in (0, 1))
    before = [sum(f == of and 2 * i < at for i, f in enumerate(files)) for of, at in asked]
    assert seeks.before(file, row).tolist() == before
    assert seeks.of(file).tolist() == [files.count(of) for of, _ in asked]


def test_distances_are_known_within_streams_between_known_places():
    begin = np.array([5, 9, NO_VALUE, 9, 7, 0])
    starts = np.array([True, False, False, False, False, True])
    assert distances(starts, begin).tolist() == [NO_VALUE, 4, NO_VALUE, NO_VALUE, -2, NO_VALUE]
