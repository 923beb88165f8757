"""`vani demo centre`: a day of forty jobs with the hook and without."""

from __future__ import annotations

import pytest

from vani.demo.centre import run_centre
from vani.demo.centre_text import centre_as_text


@pytest.mark.slow
def test_the_hook_that_has_learned_gains_and_harms_nobody(tmp_path):
    report = run_centre(tmp_path, seed=3)
    without, chance, unknown, learned, twice = report.days
    assert (report.jobs, without.gain, unknown.expected, unknown.changed) == (40, 1.0, 0, 0)
    assert unknown.gain == pytest.approx(1.0), "a hook that knows nothing changes nothing"
    for day in (learned, twice):
        assert day.gain >= 1.3
        assert day.slower <= chance.slower
        assert day.expected == 40
    assert twice.error < learned.error
    assert twice.within >= 0.5
    assert "all seconds are modelled" in centre_as_text(report)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_days(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    assert run_centre(folders[0]).days == run_centre(folders[1]).days
