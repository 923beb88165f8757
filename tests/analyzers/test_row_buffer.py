"""Rows of many batches wait together, in their order, until there are enough of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vani.analyzers.tables.row_buffer import RowBuffer


@given(st.lists(st.lists(st.integers(-9, 9), max_size=5), max_size=20))
def test_all_rows_come_back_once_in_their_order(batches):
    waiting, found = RowBuffer(), []
    for batch in batches:
        waiting.add(np.array(batch, np.int64), np.array([str(one) for one in batch], "U2"))
    assert len(waiting) == sum(map(len, batches))
    if len(waiting):
        numbers, texts = waiting.take()
        found = list(zip(numbers.tolist(), texts.tolist(), strict=True))
    assert found == [(one, str(one)) for batch in batches for one in batch]
    assert not len(waiting)


def test_many_batches_are_enough_and_so_are_many_rows():
    few = RowBuffer()
    assert [few.add(np.arange(3)) for _ in range(64)] == [False] * 63 + [True]
    assert RowBuffer().add(np.arange(1 << 14))


def test_batches_without_rows_are_never_enough():
    waiting = RowBuffer()
    assert not any(waiting.add(np.arange(0)) for _ in range(100))
