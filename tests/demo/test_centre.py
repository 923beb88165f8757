"""`vani centre demo`: days of forty jobs by each fixed rule for layouts, and by the advice from their logs."""

from __future__ import annotations

import pytest

from vani.centre.demo.centre import MACHINE, NOTHING, advice_of, centre_as_text, run_centre


@pytest.mark.slow
def test_advice_reaches_the_best_fixed_rule_and_changes_only_new_files(tmp_path):
    report = run_centre(tmp_path, seed=3)
    (rivals,) = report.rivals
    by_name = {rival.name: rival for rival in rivals}
    chance, advised = by_name[NOTHING], by_name["the advice's line"]
    fair = [
        rival for rival in rivals if rival.new_files.slower <= chance.new_files.slower + 0.1 * report.jobs
    ]
    assert advised.new_files.gain >= 0.95 * max(rival.new_files.gain for rival in fair)
    assert advised.all_files.gain >= 0.95 * max(rival.all_files.gain for rival in fair)
    assert advised.new_files.changed > 0
    # Lustre keeps the layout of files that are overwritten.
    assert {rival.existing.changed for rival in rivals} == {0}
    assert advised.existing.gain == pytest.approx(1.0, abs=0.1)
    assert "By replay no hook in each job beats this advice" in centre_as_text(report)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_advice(tmp_path):
    assert advice_of(tmp_path / "a", 5, MACHINE) == advice_of(tmp_path / "b", 5, MACHINE)
