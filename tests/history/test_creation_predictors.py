"""Predictors of creations: families with known laws, the assumption of each, and the choice among them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.creations import auto_next, auto_rest, with_range
from tests.history.creation_families import FAMILIES, HARDER, category
from vani.centre.prediction.creations import predictors
from vani.centre.prediction.creations.choice import (
    Follower,
    blocks_of,
    choose_next,
    compare,
    on_next_run,
    remembered,
)
from vani.centre.prediction.creations.following import ToDo, follow
from vani.centre.prediction.creations.laws import expected_count
from vani.centre.prediction.creations.predictors import PREDICTORS
from vani.centre.prediction.creations.series import Creations, Foreseen, is_right, nothing, of_sizes

pytest.importorskip("statsmodels", reason="statsmodels is not installed (vani-io[centre])")

CERTAIN = ("constant", "by rank", "plot and checkpoint", "longer")
UNKNOWABLE = ("random walk", "sweep")
PLAIN = [name for name, one in PREDICTORS.items() if not one.costly]


def test_plain_predictors_come_first_and_each_is_found_by_its_file():
    assert list(PREDICTORS) == [
        "last_value", "last_period", "steady_growth", "same_position", "run_law", "markov", "arima",
    ]  # fmt: skip


@pytest.mark.slow
def test_next_run_of_ten_families_is_predicted_as_well_as_possible():
    found = {}
    for family in FAMILIES:
        *past, came = category(family, 0)
        outcome = compare(choose_next(past, PLAIN).foreseen, came)
        found[family] = outcome.accuracy
    assert {family: found[family] for family in CERTAIN} == dict.fromkeys(CERTAIN, 1.0)
    assert np.mean(list(found.values())) >= 0.75
    assert max(found[family] for family in UNKNOWABLE) < 0.2


@pytest.mark.slow
def test_the_rest_of_a_run_is_foreseen_from_its_beginning():
    found = {}
    for family in FAMILIES:
        *past, came = category(family, 1)
        found[family] = np.mean([one.accuracy for one in auto_rest(past, came, blocks_of(len(came)))])
    assert {family: found[family] for family in CERTAIN} == dict.fromkeys(CERTAIN, 1.0)
    assert np.mean(list(found.values())) >= 0.85
    assert found["sweep"] == 1.0


def test_a_longer_run_is_foreseen_with_its_number_of_files():
    *past, came = category("longer", 2)
    assert expected_count(past) == (len(came), "by a constant step")
    assert len(choose_next(past, PLAIN).foreseen) == len(came) > len(past[-1])


def test_no_law_no_promise():
    *past, _ = category("random walk", 0)
    chosen = choose_next(past, PLAIN)
    assert chosen.probability.mean() < 0.3
    assert chosen.high / chosen.low > 1.2


def test_probability_grows_with_held_out_runs_and_is_unknown_without():
    *past, _ = category("by rank", 0)
    assert np.isnan(choose_next(past[:1]).probability).all()
    two, all_ = choose_next(past[:2]).probability, choose_next(past).probability
    assert 0.5 < two.min() < all_.min() < 0.9  # Seven runs cannot show a law that breaks in one of ten.


@pytest.mark.slow
def test_high_probabilities_are_calibrated():
    given_, right = [], []
    for family in (*FAMILIES, *HARDER):
        *past, came = category(family, 3, 25)
        chosen = choose_next(past, PLAIN)
        outcome = compare(chosen.foreseen, came)
        there = outcome.at >= 0
        given_.append(chosen.probability[outcome.at[there]])
        right.append(outcome.right[there])
    sure = np.concatenate(given_) >= 0.9
    assert sure.mean() > 0.5
    assert np.concatenate(right)[sure].mean() >= 0.95


def test_a_law_that_broke_in_a_run_before_the_last_four_is_not_sure():
    *past, _ = category("by rank", 0, 13)
    assert choose_next(past, PLAIN).probability.min() > 0.88
    other, _ = category("by rank", 1, 2)
    past[5] = other
    assert choose_next(past, PLAIN).probability.max() < 0.85


@pytest.mark.slow
def test_run_followed_file_by_file_is_predicted_again_only_at_misses():
    *past, came = category("by rank", 0)
    assert follow(past, came).done == ()
    *past, came = category("sweep", 1)
    followed = follow(past, came)
    assert [todo for _, todo in followed.done] == [ToDo.PREDICT]
    assert followed.hits.mean() >= 0.85
    *past, came = category("random walk", 1)
    assert follow(past, came).times(ToDo.START_OVER) >= 1


def test_order_of_ranks_does_not_matter():
    run = of_sizes([10, 20, 10, 20], [0, 1, 0, 1])
    foreseen = Foreseen(np.array([20.0, 10.0, 20.0, 10.0]), np.array([1, 0, 1, 0]))
    assert compare(foreseen, run).accuracy == 1.0


def test_files_of_unexpected_ranks_are_matched_by_order():
    foreseen = Foreseen(np.full(3, 7.0), np.zeros(3, np.int64))
    assert compare(foreseen, of_sizes([7, 7, 7], [4, 5, 6])).accuracy == 1.0


def test_predicted_files_that_were_not_created_count_as_misses():
    foreseen = Foreseen(np.full(4, 7.0), np.zeros(4, np.int64))
    assert compare(foreseen, of_sizes([7, 7], [0, 0])).accuracy == 0.5


def test_sizes_are_right_within_a_hundredth():
    foreseen = np.array([99.0, 98.9, 101.0, 0.0, 1.0, np.nan])
    assert is_right(foreseen, np.array([100, 100, 100, 0, 0, 100.0])).tolist() == [
        True, False, True, True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("runs", "law", "next_run"),
    [
        ([[5, 6], [5, 6], [5, 6]], "equal", [5, 6]),
        ([[5, 6], [50, 60], [5, 6], [50, 60], [5, 6]], "two alternating", [50, 60]),
        ([[8, 1], [16, 2], [32, 4], [64, 8]], "by a constant factor", [128, 16]),
        ([[100, 10], [300, 10], [500, 10], [700, 10]], "by a constant step", [900, 10]),
    ],
)
def test_order_of_runs_is_found(runs, law, next_run):
    found = PREDICTORS["run_law"].predict([of_sizes(run) for run in runs], nothing(), None)
    assert found.law == law
    assert found.sizes == pytest.approx(next_run)


def test_markov_chain_predicts_from_the_last_two_runs():
    chain = [1, 1, 5, 9, 1, 1, 5, 9] * 3
    found = PREDICTORS["markov"].predict([], of_sizes(chain), 8)
    assert found.sizes.tolist() == [1, 1, 5, 9, 1, 1, 5, 9]


def test_a_constant_series_is_not_fitted():
    found = PREDICTORS["arima"].predict([], of_sizes([4096] * 40), 5)
    assert (found.law, found.sizes.tolist()) == ("constant: last value used", [4096.0] * 5)


@pytest.mark.slow
def test_arima_continues_a_trend_and_names_its_order():
    random = np.random.default_rng(0)
    series = np.rint(1000 + 50 * np.arange(60) + random.normal(0, 3, 60)).astype(np.int64)
    found = PREDICTORS["arima"].predict([], of_sizes(series.tolist()), 3)
    assert found.law.startswith("ARIMA(")
    assert found.sizes == pytest.approx([4000, 4050, 4100], rel=0.02)


def test_arima_that_no_order_fits_in_time_falls_back(monkeypatch):
    monkeypatch.setattr(predictors, "_ORDER_S", -1.0)
    random = np.random.default_rng(0)
    found = PREDICTORS["arima"].predict([], of_sizes(random.integers(1, 1000, 50).tolist()), 2)
    assert found.law == "no order fits: last value used"


def test_costly_predictors_are_not_tried_if_a_plain_one_is_right(monkeypatch):
    monkeypatch.setitem(PREDICTORS, "arima", replace(PREDICTORS["arima"], predict=None))
    *past, came = category("doubled", 0)
    assert auto_next(past, came).accuracy == 1.0
    assert "arima" not in choose_next(past).accuracy


@pytest.mark.parametrize(
    "runs",
    [
        [nothing()], [nothing(), nothing(), nothing()], [of_sizes([1]), nothing()], [of_sizes([7])] * 5,
        [of_sizes([0, 0])] * 4, [of_sizes([1 << 62] * 3, [0, 1, 2])] * 4, [of_sizes([0, 1 << 62, 1])] * 4,
        [of_sizes([1 << k] * 2) for k in range(52, 62)],
    ],
    ids=["one empty", "empty", "then empty", "one file", "zeros", "2^62", "0 and 2^62", "up to 2^61"],
)  # fmt: skip
@pytest.mark.parametrize("begun", [[], [0], [1 << 62] * 30, [3, 4, 5]])
def test_odd_histories_are_handled(runs, begun):
    if not begun:
        chosen = choose_next(runs)
    else:
        follower = Follower(runs)
        follower.see_all(of_sizes(begun))
        chosen = follower.rest(of_sizes(begun))
    sizes = chosen.foreseen.sizes[np.isfinite(chosen.foreseen.sizes)]
    assert (sizes >= 0).all()
    assert len(chosen.probability) == len(chosen.foreseen)


def test_only_the_last_of_very_many_runs_are_examined():
    assert len(remembered([of_sizes([5])] * 100_000)) == 64
    assert len(remembered([of_sizes([5] * 1_500_000)] * 3)) == 1


@given(st.lists(st.lists(st.integers(0, 1 << 62), max_size=6), min_size=1, max_size=5), st.integers(0, 3))
def test_every_predictor_takes_every_history(runs, ranks):
    past = [of_sizes(run, [at % (ranks + 1) for at in range(len(run))]) for run in runs]
    for name in PLAIN:
        outcome = on_next_run(PREDICTORS[name], past, past[-1])
        assert 0 <= outcome.accuracy <= 1
        assert outcome.right.shape == past[-1].sizes.shape


def test_ranges_contain_the_mean():
    assert with_range([0.5, 0.5]) == "0.50 (0.50-0.50)"


def test_creations_are_found_by_rank_and_turn():
    run = Creations(np.array([1, 2, 3, 4]), np.array([0, -1, 0, 2]), np.zeros(4, np.int64))
    assert run.at(np.array([0, 0, -1, 2, 2]), np.array([0, 1, 0, 0, 1])).tolist()[:4] == [1, 3, 2, 4]
    assert np.isnan(run.at(np.array([2]), np.array([1]))).all()
