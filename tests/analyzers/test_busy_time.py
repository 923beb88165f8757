"""Busy time: how long at least one process was in a call. Expected values are counted by hand."""

from __future__ import annotations

import tempfile
from pathlib import Path
from unittest.mock import patch

import pytest
from call_tables import MILLISECOND, InventedTrace, invented_traces, profile_of, read, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


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


def test_a_moment_in_which_one_reads_and_another_writes_is_in_both_and_once_in_the_total(tmp_path):
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


@given(traces=invented_traces(most=2), rows=st.integers(1, 6))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_many_windows_of_time_add_up_to_one(traces, rows):
    with tempfile.TemporaryDirectory() as folder:
        one = profile_of(traces, Path(folder) / "a")
        with patch("vani.analyzers.measures.busy_time._ROWS", rows):
            assert profile_of(traces, Path(folder) / "b") == one


@given(traces=invented_traces(most=2), rows=st.integers(1, 6), most=st.integers(1, 8))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_calls_merged_by_row_group_add_up_to_the_same(traces, rows, most):
    # As in traces of many processes, whose row groups each cover the whole run; the time is cut where intervals
    # are more than fit.
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
