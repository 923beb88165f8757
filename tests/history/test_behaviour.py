"""Behaviours by totals, predictors on sequences with known laws, and predictions of the next run."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.behaviour import right_of
from tests.history.behaviour_laws import AIOT_TABLE_1, LAWS, many_runs
from vani.centre.prediction.behaviour.clustering import FACTOR, behaviour_ids
from vani.centre.prediction.behaviour.evaluation import compare_predictors, judge, score, shares
from vani.centre.prediction.behaviour.next_run import next_run
from vani.centre.prediction.behaviour.panel import AUTO, Panel, most_likely
from vani.centre.prediction.behaviour.predictors import begins
from vani.centre.prediction.behaviour.runs import Runs
from vani.errors import InputError

DAY = 86_400.0


def ids_of(*written: float, category=None) -> list[int]:
    totals = np.zeros((len(written), 3))
    totals[:, 1] = written
    return behaviour_ids(
        np.zeros(len(written), np.int64) if category is None else np.array(category), totals
    ).tolist()


def a_sequence(ids, *, length=600.0, apart=DAY, category=None, names=(("app", "u1", 8),)) -> Runs:
    written = 1e9 * 4.0 ** np.array(ids, float)
    submitted = apart * np.arange(len(written))
    none = np.full(len(written), np.nan)
    figures = {
        "bytes_read": 0 * written,
        "bytes_written": written,
        "metadata": 0 * written + 7,
        "reads": none,
    }
    figures |= {"writes": none, "files": none, "runtime_s": 0 * written + length, "in_io_s": none}
    mine = np.zeros(len(written), np.int64) if category is None else np.array(category)
    return Runs(list(names), mine, submitted, submitted + length, figures)


# Behaviours


def test_runs_within_a_factor_of_1_2_are_one_behaviour_and_numbers_follow_appearance():
    assert ids_of(100, 119, 200, 100, 90, 241) == [0, 0, 1, 0, 0, 2]
    assert ids_of(100, 100 * FACTOR) == [0, 0]
    assert ids_of(100, 100 * FACTOR * 1.001) == [0, 1]


def test_nothing_moved_is_a_behaviour_of_its_own_and_sizes_go_up_to_the_largest():
    assert ids_of(0, 1, 0, 2.0**62, 2.0**62) == [0, 1, 0, 2, 2]


def test_runs_linked_by_others_are_one_behaviour():
    assert ids_of(100, 115, 130, 150) == [0, 0, 0, 0]


def test_later_run_between_two_behaviours_changes_neither():
    assert ids_of(100, 140, 118, 100, 140) == [0, 1, 0, 0, 1]


def test_each_category_counts_from_0():
    assert ids_of(100, 500, 100, 500, category=[0, 1, 1, 0]) == [0, 0, 1, 1]


@given(st.lists(st.sampled_from([0, 1, 10, 11, 12, 14, 16, 2**20, 2**62]), max_size=40), st.integers(0, 40))
def test_later_runs_never_change_the_id_of_an_earlier_one(written, length):
    assert ids_of(*written)[:length] == ids_of(*written[:length])


def test_behaviours_that_no_run_links_are_those_of_dbscan():
    cluster = pytest.importorskip("sklearn.cluster")
    random = np.random.default_rng(4)
    centres = np.exp(random.uniform(5, 25, (30, 3)))
    totals = centres[random.integers(0, 30, 400)] * np.exp(random.uniform(-0.08, 0.08, (400, 3)))
    labels = cluster.DBSCAN(eps=np.log(FACTOR), min_samples=1, metric="chebyshev").fit_predict(np.log(totals))
    numbers: dict[int, int] = {}
    assert behaviour_ids(np.zeros(400, np.int64), totals).tolist() == [
        numbers.setdefault(label, len(numbers)) for label in labels.tolist()
    ]


@pytest.mark.slow
def test_a_million_runs_of_a_category_get_ids_in_seconds():
    begin = time.process_time()
    ids = behaviour_ids(
        np.zeros(1_000_000, np.int64), np.exp(np.random.default_rng(1).uniform(20, 23, (1_000_000, 3)))
    )
    assert time.process_time() - begin < 20
    assert ids[0] == 0


# Predictors


def test_plain_predictors_come_first():
    assert [*begins()][:11] == [
        "last value", "most frequent", "recent", "Markov 1", "Markov 2", "Markov 3", "Markov 4", "Markov 5",
        "longest match", "recent Markov", "habits",
    ]  # fmt: skip


def test_the_last_value_is_right_in_24_of_the_37_transitions_of_table_1():
    right, asked = right_of([[int(one) for one in text] for text in AIOT_TABLE_1.values()])
    assert asked == 37
    assert right["last value"] == 24


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
@pytest.mark.sampled(2)
def test_auto_is_at_most_0_06_below_the_best_possible(law):
    right, asked = right_of(law.draw(np.random.default_rng(seed), 400) for seed in range(2))
    assert right[AUTO] / asked >= law.best - 0.06


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60))
def test_every_predictor_gives_probabilities_of_seen_behaviours(sequence):
    panel = Panel(begins())
    for place, behaviour in enumerate(sequence):
        for found in panel.predict(0):
            assert set(found) <= set(sequence[:place])
            assert all(share >= 0 for share in found.values())
            assert sum(found.values()) <= 1 + 1e-9
        panel.see(0, behaviour, panel.guesses(0))


def test_new_category_gets_no_prediction():
    assert [most_likely(one) for one in Panel(begins()).predict(3)] == [(-1, 0.0)] * 12


# Evaluation


def test_each_run_is_predicted_from_earlier_or_finished_runs():
    # They start daily and take a day and a half: the previous run is still running, the one before that has
    # ended.
    runs = a_sequence([0, 1] * 40, length=1.5 * DAY)
    said = {}
    for ended_only in (False, True):
        tested = judge(runs, 40, ended_only=ended_only, begin=begins())
        said[ended_only] = score(tested, runs.category[tested.place], "last value").per_run[0]
    assert said == {False: 0.0, True: 1.0}


def test_shares_have_a_range_over_categories():
    right = np.array([True] * 90 + [False] * 10)
    category = np.array([0] * 90 + [1] * 10)
    per_run, per_category = shares(right, category)
    assert (per_run[0], per_category[0]) == (0.9, 0.5)
    assert per_run[1:] == (0.0, 1.0)


@pytest.mark.slow
def test_auto_is_right_as_often_as_it_claims():
    found = compare_predictors(many_runs(4000, 20), 0.3)
    often = [one for one in found.modes[0].reliability if one.runs >= 100]
    assert len(often) >= 3
    for one in often:
        assert one.right == pytest.approx(one.said, abs=0.08)


def test_nothing_is_evaluated_without_a_known_category():
    with pytest.raises(InputError, match="none belongs to a known category"):
        compare_predictors(a_sequence([0]), 0.3)


# The next run


def test_next_run_has_probabilities_amounts_and_a_similar_run():
    found = next_run(a_sequence([0, 1, 1, 0, 1, 1] * 5), "app")
    assert (found.user, found.processes, found.runs) == ("u1", 8, 30)
    first = found.behaviours[0]
    assert first.behaviour == 0
    assert first.probability > 0.9
    assert (first.bytes_written.low, first.bytes_written.median) == (1e9, 1e9)
    assert first.resembles.submitted == 27 * DAY
    assert sum(one.probability for one in found.behaviours) + found.other == pytest.approx(1)
    assert [run.behaviour for run in found.past] == [0, 1, 1, 0, 1, 1] * 5
    assert found.past[0].expected is None


def test_single_run_is_weak_evidence():
    found = next_run(a_sequence([0]), "app")
    assert [one.behaviour for one in found.behaviours] == [0]
    assert found.behaviours[0].probability < 0.7


def test_equal_runs_are_expected_to_continue():
    found = next_run(a_sequence([0] * 50), "app")
    assert found.behaviours[0].probability > 0.95


def test_runs_that_had_not_ended_are_not_known():
    runs = a_sequence([0, 0, 0, 1], length=2 * DAY)
    assert next_run(runs, "app", at=3 * DAY).runs == 2
    assert next_run(runs, "app", at=0.0).outside == ["no ended run is known"]


def test_unknown_category_is_reported_with_the_known_ones():
    found = next_run(a_sequence([0, 1]), "app", processes=64)
    assert found.behaviours == []
    assert found.outside == ["no run with 64 processes is known (there are runs with 8)"]


def test_latest_run_decides_among_several_categories():
    runs = a_sequence([0, 0, 0], category=[0, 1, 0], names=(("app", "u1", 8), ("app", "u2", 16)))
    found = next_run(runs, "app")
    assert (found.user, found.processes) == ("u1", 8)
    assert "2 categories" in found.notes[0]
