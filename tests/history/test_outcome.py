"""Whether a change helped, for runs whose reduction of waiting is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.history.test_story import DAY, NOVEMBER, a_run
from vani import centre
from vani.centre.history.outcome import outcome, outcomes_as_text
from vani.centre.history.rows import Verdict
from vani.centre.history.runs import write
from vani.centre.history.runs.store import Store
from vani.centre.history.story import CategoryRuns
from vani.errors import InputError

AT = float(NOVEMBER + 15 * DAY)


def runs(random: np.random.Generator, before: int, after: int, factor: float, *, moved: float = 1.0) -> CategoryRuns:
    """Waiting of 100 s on average with a spread of a third, and `factor` times as long afterwards."""
    waiting = random.lognormal(np.log(100), 0.33, before + after)
    waiting[before:] *= factor
    at = np.concatenate([AT - 1 - 1000.0 * np.arange(before)[::-1], AT + 1000.0 * np.arange(after)])
    amounts = np.where(at < AT, 1e9, 1e9 * moved)
    return CategoryRuns("u1", 4, at, waiting, waiting, waiting, amounts)


def of(category: CategoryRuns):
    (found,) = outcome("app", None, [category], AT).categories
    return found


def test_only_known_core_hours_are_saved():
    found = outcome("app", "u1", [runs(np.random.default_rng(1), 4000, 5000, 0.4)], AT)
    assert found.categories[0].verdict == "less"
    assert found.saved_s == pytest.approx(5000 * 60 * np.exp(0.33**2 / 2), rel=0.05)
    assert found.saved_s / found.before_s == pytest.approx(0.6, abs=0.02)


@pytest.mark.slow
def test_interval_covers_the_true_saving_nine_times_of_ten_with_few_false_positives():
    random, mean = np.random.default_rng(2), 100 * np.exp(0.33**2 / 2)
    inside, called = 0, 0
    for _ in range(200):
        before, after = random.integers(10, 60, 2).tolist()
        found = of(runs(random, before, after, 0.7))
        inside += found.low_s <= after * 0.3 * mean <= found.high_s
        called += of(runs(random, before, after, 1.0)).verdict != "no_difference"
    assert 165 <= inside <= 195
    assert called <= 35


def test_few_runs_or_other_amounts_of_data_are_no_evidence():
    random = np.random.default_rng(3)
    assert of(runs(random, 4, 50, 0.1)).verdict == "too_few_runs"
    assert of(runs(random, 50, 4, 0.1)).verdict == "too_few_runs"
    other = outcome("app", None, [runs(random, 50, 50, 0.1, moved=0.5)], AT)
    assert (other.categories[0].verdict, other.saved_s) == ("other_amounts", None)
    assert "not known yet" in outcomes_as_text([other])
    assert of(runs(random, 50, 50, 3.0)).verdict == "more"
    same = outcome("app", None, [runs(random, 50, 50, 1.0), runs(random, 4, 50, 0.1)], AT)
    assert "measured: no visible difference" in outcomes_as_text([same])


@pytest.fixture
def db(tmp_path: Path) -> Path:
    place = tmp_path / "h.sqlite"
    rows = [a_run(n, waiting_s=40.0 if n < 60 else 10.0, slowest_s=10.0 if n < 60 else 2.5) for n in range(100)]
    verdict = Verdict(rows[0].digest, "m", 4.0, 6.0, 8.0, "LUS002", "stripes", "Few targets.", ("x",), False)
    with Store(place).writing(make=True) as connection:
        write.add_runs(connection, rows)
        write.put(connection, [verdict])
    return place


def test_letter_is_recorded_with_its_promise_and_compared_with_the_result(db, tmp_path):
    with pytest.raises(InputError, match="no letter about app is recorded"):
        centre.history_outcome("app", db=db)
    assert centre.history_record_letter("app", "u1", db=db, sent="2026-11-16").expected == pytest.approx(0.6)
    (found,) = centre.history_outcome("app", "u1", db=db)
    assert (found.promise.low, found.promise.high) == (pytest.approx(0.4), pytest.approx(0.8))
    assert found.saved_s == pytest.approx(40 * 30.0)
    assert "measured: 75 % of the waiting, 0.333 (0.333 to 0.333 core-hours)" in outcomes_as_text([found])
    (change,) = centre.history_outcome("app", db=db, changed="2026-11-16")
    assert (change.promise, change.saved_s) == (None, found.saved_s)
    # A second letter ends the period of the first.
    centre.history_record_letter("app", "u1", db=db, sent="2026-11-17")
    assert [entry.categories[0].runs_after for entry in centre.history_outcome("app", db=db)] == [36, 4]
    centre.history_anonymise(tmp_path / "key", db=db)
    (letter, _) = centre.history_outcome("app", db=db)
    assert letter.user.startswith("user-")
    centre.history_remove(user=letter.user, db=db)
    with pytest.raises(InputError, match="no runs of app"):
        centre.history_outcome("app", db=db)


def test_letter_about_missing_runs_is_not_recorded(db):
    with pytest.raises(InputError, match="did you mean 'app'"):
        centre.history_record_letter("apq", "u1", db=db)
    with pytest.raises(InputError, match="--sent: 'soon' is not a day"):
        centre.history_record_letter("app", "u1", db=db, sent="soon")
    with pytest.raises(InputError, match="--changed: '2026-13' is not a day"):
        centre.history_outcome("app", db=db, changed="2026-13")
