"""`vani centre demo`: a day of forty jobs by each fixed rule for layouts."""

from __future__ import annotations

import pytest

from vani.centre.demo.centre import RULES, run_centre
from vani.centre.demo.command import centre_as_text


@pytest.mark.slow
def test_wide_defaults_gain_on_many_slow_targets():
    report = run_centre(seed=3)
    without, other, *rules = report.days
    assert (report.jobs, without.gain, len(rules)) == (40, 1.0, len(RULES))
    assert other.gain == pytest.approx(1.0, abs=0.1), "other noise alone gains nothing"
    assert min(day.gain for day in rules) >= 1.3
    assert all(day.ost_cost < without.ost_cost for day in rules)
    assert "all seconds are modelled" in centre_as_text(report)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_days():
    assert run_centre().days == run_centre().days
