"""When a gain is promised, and the width of its range."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.data import DATA
from benchmarks.models import coverage, factor, points
from vani.models.calibration import ANCHOR, SPREAD, Anchored, anchored, spread_of

seconds = st.floats(1e-3, 1e6)


def test_a_model_that_explains_the_trace_promises_its_ratio():
    found = anchored(12.0, 10.0, 5.0, generic=False)
    assert isinstance(found, Anchored)
    assert found.after_s == pytest.approx(6.0)
    assert (found.best_s, found.worst_s) == (pytest.approx(6 / SPREAD), pytest.approx(6 * SPREAD))


@pytest.mark.parametrize("before", [10 * ANCHOR * 1.001, 10 / ANCHOR / 1.001, 0.0, math.inf])
def test_model_that_does_not_explain_the_trace_promises_no_gain(before):
    found = anchored(10.0, before, 1.0, generic=False)
    assert isinstance(found, str)
    assert "the model expects" in found


@given(traced=seconds, off=st.floats(1 / ANCHOR, ANCHOR), share=st.floats(0.01, 1))
def test_range_contains_the_estimate_and_is_wider_for_typical_rates(traced, off, share):
    before = traced * off * (1 - 1e-9 if off > 1 else 1 + 1e-9)
    known, typical = (anchored(traced, before, before * share, generic=generic) for generic in (False, True))
    assert isinstance(known, Anchored)
    assert isinstance(typical, Anchored)
    assert typical.best_s < known.best_s < known.after_s < known.worst_s < typical.worst_s
    assert known.after_s == pytest.approx(traced * share)


def test_typical_rates_widen_by_the_tolerance_of_the_anchor():
    assert spread_of(generic=True) == pytest.approx(SPREAD * ANCHOR)


def test_the_factor_is_the_median_of_the_machines():
    assert factor({"a": [math.log(2)], "b": [-math.log(3)], "c": [math.log(9)]}) == pytest.approx(3)


@pytest.mark.skipif(not DATA.exists(), reason="the measurements are not here")
@pytest.mark.slow
def test_ranges_cover_machines_they_were_not_fitted_to():
    machines = points()
    assert factor(machines) == pytest.approx(SPREAD, abs=0.005)
    for wide, within, above, below in coverage(machines).values():
        assert 1 < wide < 2
        assert 0.80 <= within <= 0.95
        assert above + below == pytest.approx(1 - within)
        assert abs(above - below) < 0.03  # neither side is missed systematically
