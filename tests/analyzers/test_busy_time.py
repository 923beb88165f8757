"""Busy time: how long at least one process was in a call. Expected values are counted by hand."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from call_tables import MILLISECOND, InventedTrace, invented_traces, profile_of, read, write
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from vani.analyzers.measures import busy_time
from vani.analyzers.measures.busy_time import Window, rows_of_groups
from vani.store.read import ROW_GROUP, RowGroup, calls_of


def test_processes_that_read_at_the_same_time_are_busy_once(tmp_path):
    rows = [read(offset=r * 100, rank=r, at=r * MILLISECOND, lasts=4 * MILLISECOND) for r in range(4)]
    found = profile_of([InventedTrace(rows)], tmp_path).workflow.io
    assert found.busy_s.read == pytest.approx(0.007)
    assert found.time_s.read == pytest.approx(0.016)
    assert found.bandwidth.read == pytest.approx(400 / 0.007)


def test_threads_of_one_process_are_in_io_once(tmp_path):
    rows = [read(offset=t * 100, thread=t, at=t * MILLISECOND, lasts=4 * MILLISECOND) for t in range(4)]
    found = profile_of([InventedTrace(rows)], tmp_path).workflow.io
    assert found.time_s.read == found.time_s.total == pytest.approx(0.007)


def test_simultaneous_read_and_write_count_in_both_and_once_in_the_total(tmp_path):
    rows = [
        read(rank=0, at=0, lasts=3 * MILLISECOND),
        write(rank=1, at=2 * MILLISECOND, lasts=3 * MILLISECOND),
    ]
    found = profile_of([InventedTrace(rows)], tmp_path).workflow.io
    assert (found.busy_s.read, found.busy_s.write, found.busy_s.total) == pytest.approx((0.003, 0.003, 0.005))


@pytest.mark.parametrize("rows_per_batch", [1, 2, 3])
def test_a_call_that_reaches_over_many_batches_counts_once(tmp_path, rows_per_batch):
    # One thread waits 50 ms in a write while another reads ten times.
    rows = [
        write(at=0, lasts=50 * MILLISECOND),
        *(read(at=i * 4 * MILLISECOND, lasts=MILLISECOND, thread=1) for i in range(1, 11)),
    ]
    found = profile_of([InventedTrace(rows, rows_per_batch=rows_per_batch)], tmp_path).workflow.io
    assert found.time_s.total == pytest.approx(0.050)
    assert found.busy_s.total == pytest.approx(0.050)
    assert found.time_s.read == pytest.approx(0.010)


@pytest.mark.slow
@given(traces=invented_traces(most=2), rows=st.integers(1, 6))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_many_windows_of_time_add_up_to_one(traces, rows):
    with tempfile.TemporaryDirectory() as folder:
        one = profile_of(traces, Path(folder) / "a")
        with patch("vani.analyzers.measures.busy_time._ROWS", rows):
            assert profile_of(traces, Path(folder) / "b") == one


@pytest.mark.slow
@given(traces=invented_traces(most=2), rows=st.integers(1, 6), most=st.integers(1, 8))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_calls_merged_by_row_group_add_up_to_the_same(traces, rows, most):
    # As in traces of many processes, whose row groups each cover the whole run; time is divided if there are
    # more intervals than fit.
    with tempfile.TemporaryDirectory() as folder:
        one = profile_of(traces, Path(folder) / "a")
        where = "vani.analyzers.measures.busy_time."
        with (
            patch(where + "_HELD", 0),
            patch(where + "MOST", most),
            patch(where + "_SHORTEST", 16),
            patch(where + "_ROWS", rows),
        ):
            assert profile_of(traces, Path(folder) / "b") == one


@given(
    groups=st.lists(
        st.tuples(st.integers(0, 1000), st.integers(0, 300), st.integers(1, 50)), min_size=1, max_size=12
    ),
    begin=st.integers(0, 600),
    length=st.integers(1, 1300),
    count=st.integers(1, 9),
)
@example(groups=[(0, 0, 7), (900, 99, 7)], begin=0, length=1000, count=2)
@example(groups=[(0, 300, 50)] * 12, begin=100, length=10, count=9)
def test_borders_divide_calls_into_about_equal_parts(groups, begin, length, count):
    end = begin + length
    window = Window(
        begin,
        end,
        tuple(SimpleNamespace(first=a, last=a + n, reach=a + n, rows=rows) for a, n, rows in groups),
    )

    def before(moment):
        moment = min(max(moment, begin), end)
        return sum(rows * min(max((moment - a) / (n + 1), 0), 1) for a, n, rows in groups)

    borders = busy_time._borders(window, count)
    assert (borders[0], borders[-1]) == (begin, end)
    assert all(a < b for a, b in pairwise(borders))
    wanted = np.linspace(before(begin), before(end), count + 1)[1:-1]
    for border in borders[1:-1]:
        assert any(before(border) - 1e-6 <= one <= before(border + 1) + 1e-6 for one in wanted)
    for one in wanted:
        around = [b for b in range(begin, end + 1) if before(b) - 1e-6 <= one <= before(b + 1) + 1e-6]
        assert set(around) & set(borders)


def test_adjacent_groups_are_small():
    most = busy_time._HELD // ROW_GROUP
    assert rows_of_groups(1) == rows_of_groups(most) == busy_time._FEW_ROWS
    # These are merged individually, like those of a store.
    assert rows_of_groups(most + 1) == ROW_GROUP
    assert (most + 1) * ROW_GROUP > busy_time._HELD


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.slow
def test_no_call_is_read_more_than_twice(tmp_path, workers):
    # Row groups of 16 processes that are always active are adjacent.
    rows = [
        read(offset=100 * i, rank=rank, at=i * MILLISECOND, lasts=MILLISECOND // 2)
        for rank in range(16)
        for i in range(64)
    ]
    seen: list[int] = []

    def counted(groups: Sequence[RowGroup], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in calls_of(groups, columns):
            seen.append(batch.num_rows)
            yield batch

    with (
        patch("vani.store.read.ROW_GROUP", 8),
        patch("vani.analyzers.measures.busy_time._ROWS", 32),
        patch("vani.analyzers.passes.call_times.calls_of", counted),
        patch("vani.engine.executor.Executor.workers", workers),
    ):
        found = profile_of([InventedTrace(rows)], tmp_path).workflow.io
    assert found.busy_s.read == pytest.approx(0.032)
    assert len(rows) <= sum(seen) <= 2 * len(rows)
