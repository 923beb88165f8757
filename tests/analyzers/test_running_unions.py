"""Unions of calls that come batch by batch have the length of the union of all calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vani.analyzers.intervals import RunningUnion, merge, total_length

WIDTH = 4
"""Unions of a process."""


def ints(values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def lengths_of(union: RunningUnion) -> dict[int, int]:
    table = union.result()
    return dict(zip(table.keys.tolist(), table["time"].tolist(), strict=True))


CALLS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, WIDTH - 1), st.integers(0, 60), st.integers(0, 9)), max_size=60
).map(lambda rows: sorted(rows, key=lambda row: row[0]))


@given(rows=CALLS, size=st.integers(1, 30))
def test_length_of_a_union_does_not_depend_on_batches(rows, size):
    union = RunningUnion(WIDTH, ints([]))
    key, start, took = ints([row[0] * WIDTH + row[1] for row in rows]), *(ints([row[i] for row in rows]) for i in (2, 3))
    for at in range(0, len(rows), size):
        some = slice(at, at + size)
        process, _, latest, _ = rows[some][-1]
        union.add(key[some], start[some], start[some] + took[some], current=process, latest=latest)
    keys, lengths = total_length(merge(key, start, start + took))
    assert lengths_of(union) == dict(zip(keys.tolist(), lengths.tolist(), strict=True))


@pytest.mark.parametrize("threaded", [False, True])
def test_isolated_intervals_among_very_many_are_only_counted(threaded, monkeypatch):
    monkeypatch.setattr("vani.analyzers.intervals._MAX_HELD", 10)
    monkeypatch.setattr("vani.analyzers.intervals._LOOK_BACK_NS", 1000)
    union = RunningUnion(WIDTH, ints([0] if threaded else []))
    for at in range(0, 600, 20):
        start = ints([10 * i for i in range(at, at + 20)])
        union.add(np.zeros(20, np.int64), start, start + 1, current=0, latest=10 * at + 190)
        assert (len(union._pending) > 20) == (threaded and at > 0)
    assert lengths_of(union) == {0: 600}
