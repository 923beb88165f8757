"""The kernel of unions agrees with merging all intervals, however calls are divided into batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vani.analyzers.int_table import IntTable
from vani.analyzers.intervals import KEYS, CallsOfUnions, RunningUnion, RunningUnions, merge, total_length
from vani.kernels import available

pytestmark = pytest.mark.skipif(not available(), reason="no kernels are here")
EXAMPLES = settings(max_examples=60, deadline=None)

GROUPS = ((0, 0b1), (0, 0b1000_0000_0000_0010), (1, 0b11), (2, 0b1), (2, 0))
"""Process and keys of each."""


def ints(values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def of_batch(rows: list[tuple[int, int, int]], *, by_row: bool) -> CallsOfUnions:
    codes, start, took = (ints([row[i] for row in rows]) for i in range(3))
    count = np.bincount(codes, minlength=len(GROUPS))
    order = np.arange(len(rows))[::-1] if by_row else None
    if order is not None:
        start, took = start[order], took[order]
    return CallsOfUnions(
        codes, order, start, took, 5, ints([k for _, k in GROUPS]), ints([p for p, _ in GROUPS]), count
    )


def expected(rows: list[tuple[int, int, int]]) -> dict[int, int]:
    every = [
        (GROUPS[g][0] * KEYS + key, start + 5, start + 5 + took)
        for g, start, took in rows
        for key in range(KEYS)
        if GROUPS[g][1] >> key & 1
    ]
    keys, lengths = total_length(merge(*(ints([row[i] for row in every]) for i in range(3))))
    return dict(zip(keys.tolist(), lengths.tolist(), strict=True))


def as_dict(table: IntTable) -> dict[int, int]:
    return dict(zip(table.keys.tolist(), table["time"].tolist(), strict=True))


CALLS = st.lists(
    st.tuples(st.integers(0, len(GROUPS) - 1), st.integers(0, 60), st.integers(0, 9)), max_size=60
).map(lambda rows: sorted(rows, key=lambda row: GROUPS[row[0]][0]))


@given(rows=CALLS, size=st.integers(1, 30), by_row=st.booleans(), stops=st.integers(0, 8))
@EXAMPLES
def test_unions_do_not_depend_on_batches_or_the_implementation(rows, size, by_row, stops):
    compiled, numpy = RunningUnions(ints([])), RunningUnion(KEYS, ints([]))
    for number, at in enumerate(range(0, len(rows), size)):
        batch = rows[at : at + size]
        current, latest = GROUPS[batch[-1][0]][0], batch[-1][1] + 5
        if number < stops:
            assert compiled.add([of_batch(batch, by_row=by_row)], current, latest)
            continue
        if not compiled.stopped:
            compiled.stop(numpy)
        key, start, end = (
            ints(column)
            for column in zip(
                *[
                    (GROUPS[g][0] * KEYS + key, start + 5, start + 5 + took)
                    for g, start, took in batch
                    for key in range(KEYS)
                    if GROUPS[g][1] >> key & 1
                ]
                or [(0, 0, 0)],
                strict=True,
            )
        )
        numpy.add(key, start, end, current=current, latest=latest)
    assert as_dict(IntTable.merged([compiled.result(), numpy.result()])) == expected(rows)


def test_calls_that_began_long_ago_are_left_to_numpy_without_loss():
    late = [(0, 10 * i, 1) for i in range(1, 6000)]
    compiled, numpy = RunningUnions(ints([])), RunningUnion(KEYS, ints([]))
    assert compiled.add([of_batch(late, by_row=False)], 0, 60_000)
    assert not compiled.add([of_batch([(0, 0, 2)], by_row=False)], 0, 5)
    compiled.stop(numpy)
    numpy.add(ints([0]), ints([5]), ints([7]), current=0, latest=5)
    assert as_dict(IntTable.merged([compiled.result(), numpy.result()])) == {0: 5999 + 2}


def test_calls_before_an_odd_one_count_once_despite_the_fallback_to_numpy():
    compiled, numpy = RunningUnions(ints([])), RunningUnion(KEYS, ints([]))
    assert compiled.add([of_batch([(0, 0, 4)], by_row=False)], 0, 5)
    assert not compiled.add([of_batch([(0, 2, 4), (2, 0, 3), (0, 9, -1)], by_row=False)], 0, 14)
    compiled.stop(numpy)
    numpy.add(ints([0, KEYS, KEYS + 1]), ints([7, 5, 5]), ints([11, 8, 8]), current=0, latest=14)
    assert as_dict(IntTable.merged([compiled.result(), numpy.result()])) == {0: 6, KEYS: 3, KEYS + 1: 3}


@pytest.mark.parametrize("threaded", [False, True])
def test_isolated_intervals_among_very_many_are_only_counted(threaded, monkeypatch):
    monkeypatch.setattr("vani.analyzers.intervals._MAX_HELD", 10)
    monkeypatch.setattr("vani.analyzers.intervals._LOOK_BACK_NS", 1000)
    compiled = RunningUnions(ints([0] if threaded else []))
    for at in range(0, 600, 20):
        assert compiled.add(
            [of_batch([(0, 10 * i, 1) for i in range(at, at + 20)], by_row=False)], 0, 10 * at + 195
        )
        assert (compiled._count > 20) == (threaded and at > 0)
    assert as_dict(compiled.result()) == {0: 600}


@pytest.mark.parametrize("row", [(0, 0, -1), (0, 2**63 - 3, 1), (9, 0, 1), (-1, 0, 1)])
def test_odd_calls_are_left_to_numpy(row):
    calls = of_batch([(0, 0, 1)], by_row=False)
    odd = CallsOfUnions(
        ints([row[0]]), None, ints([row[1]]), ints([row[2]]), 5, calls.keys, calls.process, calls.count
    )
    assert not RunningUnions(ints([])).add([odd], 0, 5)
