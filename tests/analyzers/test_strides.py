"""The stride of a file is its most common one; in ties, the shortest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vani.analyzers.entities.files import most_common_strides
from vani.analyzers.measures.access_pattern import Strides


def found(rows: list[tuple[int, int, int]]) -> dict[int, int]:
    return most_common_strides(Strides(*(np.array([row[i] for row in rows], np.int64) for i in range(3))))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], {}),
        ([(3, 4096, 7)], {3: 4096}),
        ([(3, 1, 2), (3, 4096, 7), (3, 8, 6)], {3: 4096}),
        ([(3, 4096, 7), (3, -8, 7), (3, 64, 7)], {3: -8}),
        ([(3, -64, 7), (3, 64, 7)], {3: -64}),
        ([(3, 64, 7), (3, -64, 7)], {3: 64}),
        ([(5, 10, 1), (0, 1, 1), (5, 20, 2), (0, 2, 1)], {0: 1, 5: 20}),
    ],
    ids=["none", "one", "most common", "shortest", "the former", "the former, forwards", "files in no order"],
)
def test_the_most_common_stride_of_each_file(rows, expected):
    assert found(rows) == expected


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-3, 3), st.integers(1, 3)), max_size=12))
def test_strides_agree_with_a_plain_search(rows):
    expected = {
        file: min((row for row in rows if row[0] == file), key=lambda row: (-row[2], abs(row[1])))[1]
        for file in {row[0] for row in rows}
    }
    assert found(rows) == expected
