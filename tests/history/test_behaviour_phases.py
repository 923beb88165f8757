"""Phases of runs in time series, and which runs have the same phases."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pywt")

from benchmarks.behaviour import edges_found
from vani.centre.prediction.behaviour.phases import Phase, _spread, phase_ids, phases


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_all_phases_are_found_edges_within_2_samples_and_ids_right(noise):
    runs, whole, _, furthest, wrong = edges_found(noise, range(3))
    assert (whole, wrong) == (runs, 0)
    assert furthest <= 2


@pytest.mark.parametrize("samples", [0, 1])
def test_a_series_of_no_or_one_sample_has_no_or_one_phase(samples):
    assert phases(np.ones((samples, 2))) == [Phase(0, 1, (1.0, 1.0))] * samples


def test_run_without_io_has_no_phases_but_is_a_behaviour():
    assert phases(np.zeros((100, 2))) == []
    assert phase_ids([[], [Phase(0, 3, (5.0,))], []], [1.0, 1.0, 1.0]) == ([[], [0], []], [0, 1, 0])


def test_idle_times_are_phases_only_between_others():
    series = np.zeros((100, 1))
    series[20:40], series[60:70] = 5.0, 5.0
    assert [(one.begin, one.end) for one in phases(series)] == [(20, 40), (40, 60), (60, 70)]


def test_a_single_sample_may_be_a_phase():
    series = np.full((64, 1), 1.0)
    series[31] = 50.0
    assert [(one.begin, one.end) for one in phases(series)] == [(0, 31), (31, 32), (32, 64)]


def test_order_but_not_length_of_phases_distinguishes_behaviours():
    low, high = (Phase(0, 5, (1e8,)), Phase(5, 9, (9e8,)))
    long = Phase(0, 50, (1.05e8,))
    _, found = phase_ids([[low, high], [long, high], [high, low]], [1.0] * 3)
    assert found == [0, 0, 1]


def test_phase_cut_in_two_is_one_phase():
    one, other = Phase(0, 5, (1e8,)), Phase(5, 9, (1.1e8,))
    assert phase_ids([[one, other], [one]], [1.0, 1.0])[1] == [0, 0]


def test_bytes_of_a_call_are_spread_over_its_time():
    found = _spread(np.array([0.5, 3.0]), np.array([2.5, 3.0]), np.array([8.0, 5.0]), 4.0)
    assert found.tolist() == pytest.approx([2.0, 4.0, 2.0, 5.0], abs=1e-4)


@pytest.mark.parametrize("size", [1.0, 2.0**62])
def test_any_size_has_phases(size):
    series = np.concatenate([np.full((20, 2), size), np.full((20, 2), size / 2)])
    assert [one.end for one in phases(series)] == [20, 40]
