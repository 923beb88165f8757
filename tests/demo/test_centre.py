"""`vani centre demo`: a day of forty jobs with and without the hook."""

from __future__ import annotations

import pytest

from vani.centre.demo.centre import run_centre
from vani.centre.demo.command import centre_as_text


@pytest.mark.slow
def test_hook_changes_nothing_until_it_has_learned(tmp_path):
    report = run_centre(tmp_path, seed=3)
    without, _, unknown, learned, twice = report.days
    assert (report.jobs, without.gain, unknown.expected, unknown.changed) == (40, 1.0, 0, 0)
    assert unknown.gain == pytest.approx(1.0), "a hook that knows nothing changes nothing"
    for day in (learned, twice):
        assert day.gain >= 1.3
        assert day.expected == 40
        assert day.ost_cost < without.ost_cost
        # Small jobs next to wide files of others miss their aim.
        assert day.slower <= 0.1 * report.jobs
    assert twice.error < learned.error
    assert twice.within >= 0.65, "ranges claim 0.78, and days have noise of their own"
    assert "all seconds are modelled" in centre_as_text(report)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_days(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    assert run_centre(folders[0]).days == run_centre(folders[1]).days
