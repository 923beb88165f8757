"""Models of write times: each method against known truths, the choice among them, and the interval."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("scipy")
pytest.importorskip("sklearn")

from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import Lasso

from tests.history.write_time_machines import CETUS, LARGE, SMALL, TITAN, generated
from vani.centre.write_time.choice import choose, judge
from vani.centre.write_time.fit import with_paper_features
from vani.centre.write_time.methods import (
    METHODS,
    _gram,
    _path,
    described,
    linear_features,
    non_negative_fit,
    stage_loads,
)
from vani.centre.write_time.published import PUBLISHED
from vani.centre.write_time.samples import Samples
from vani.errors import InputError


def grid(seconds=lambda nodes, size, stripes: 1 + size / 1e9 / stripes + size / 2e9 / nodes) -> Samples:
    nodes, size, stripes = (
        column.ravel().astype(float)
        for column in np.meshgrid([1, 2, 4, 8, 16], np.array([1, 4, 16]) * 1e9, [1, 2, 4, 8])
    )
    return Samples(
        {"nodes": nodes, "bytes": size, "stripe_count": stripes}, {}, seconds(nodes, size, stripes)
    )


def test_plain_methods_come_first_and_each_is_found_by_its_file():
    assert list(METHODS) == [
        "mean", "nearest", "log_linear", "stage_sum", "bottleneck", "trees", "lasso", "relative_lasso",
    ]  # fmt: skip


def test_the_bandwidths_of_stages_that_add_up_are_found():
    samples = grid()
    found = METHODS["stage_sum"].fit(samples, samples.numbers["nodes"], {})["coefficients"]
    binds = {name: cost for name, cost in found.items() if cost * stage_loads(samples, {})[name].max() > 1e-6}
    assert binds == pytest.approx({"1": 1.0, "bytes/stripe_count": 1e-9, "bytes/nodes": 0.5e-9}, rel=1e-6)


def test_product_of_powers_is_found_if_it_exists():
    samples = grid(lambda nodes, size, stripes: 3e-8 * size**0.9 / nodes**0.5 / stripes**0.25)
    score = judge("log_linear", *_split(samples))
    assert score.error < 1e-9


def _split(samples: Samples) -> tuple[Samples, np.ndarray, Samples]:
    large = samples.numbers["nodes"] == samples.numbers["nodes"].max()
    return samples.only(~large), samples.numbers["nodes"][~large], samples.only(large)


@pytest.mark.slow
def test_method_is_chosen_without_the_scale_it_is_evaluated_on():
    samples = grid()
    found = choose(samples, samples.numbers["nodes"])
    assert found.scores[0].method == found.method
    assert [one.error for one in found.scores] == sorted(one.error for one in found.scores)
    assert len(found.scores[0].ratios) == 24  # 16 nodes from 1 to 8, and 8 nodes from 1 to 4.
    assert found.low <= 1 <= found.high


def test_interval_contains_the_prediction_even_with_a_bias_at_the_largest_scale():
    # On the largest scale everything takes twice as long: a method without it predicts half, and is finally
    # fitted to it.
    samples = grid(lambda nodes, size, stripes: (1 + size / 1e9 / stripes) * np.where(nodes == 16, 2.0, 1.0))
    for method in ("stage_sum", "nearest"):
        found = choose(samples, samples.numbers["nodes"], [method])
        assert (found.scores[0].ratios[:12] > 1.2).all()  # More than the widening of the extremes of a few.
        assert found.low <= 1 < found.high


@pytest.mark.slow
def test_noisy_times_give_the_mean_or_a_wide_interval():
    random = np.random.default_rng(0)
    samples = grid(lambda nodes, size, stripes: np.exp(random.normal(0, 1.0, len(nodes))))
    found = choose(samples, samples.numbers["nodes"])
    assert found.high / found.low > 9


@given(st.integers(0, 2**32 - 1))
def test_coefficients_are_non_negative_and_locally_optimal(seed):
    random = np.random.default_rng(seed)
    matrix, wanted = random.random((20, 4)), random.random(20)
    found = non_negative_fit(matrix, wanted, np.ones(20))
    assert (found >= 0).all()

    def wrong(x):
        return float(((matrix @ x - wanted) ** 2).sum())

    for step in random.normal(0, 0.05, (50, 4)):
        assert wrong(np.maximum(found + step, 0)) >= wrong(found) - 1e-12


def test_lasso_path_matches_scikit_learn_on_a_whole_training_set():
    random = np.random.default_rng(3)
    inner = random.normal(size=(60, 5))
    seconds = 4 + inner @ np.array([2.0, 0, -1, 0, 0.5]) + random.normal(0, 0.1, 60)
    gram, toward, count = _gram(
        np.column_stack([np.ones(60), inner]), seconds, np.ones(60), np.ones(60, dtype=bool)
    )
    for shrinkage, coefficients in _path(gram, toward, count):
        if shrinkage > 1e-3:
            theirs = Lasso(alpha=shrinkage, tol=1e-12, max_iter=100_000).fit(inner, seconds)
            assert coefficients == pytest.approx([theirs.intercept_, *theirs.coef_], abs=1e-6)


def test_search_names_the_chosen_scales_and_shrinkage():
    samples = grid()
    found = METHODS["lasso"].fit(samples, samples.numbers["nodes"], {})
    assert set(found["scales"]) <= {1.0, 2.0, 4.0, 8.0, 16.0}
    assert 0 <= found["shrinkage"] <= 10
    assert set(found["coefficients"]) <= set(linear_features(samples, {}))


@pytest.mark.slow
def test_saved_trees_equal_the_grown_ones():
    samples = grid()
    matrix = np.stack(list(described(samples, {}).values()), axis=1)
    theirs = GradientBoostingRegressor(
        n_estimators=400, max_depth=4, learning_rate=0.05, subsample=0.7, random_state=0
    ).fit(matrix, np.log(samples.seconds / samples.numbers["bytes"]))
    ours = METHODS["trees"].predict(METHODS["trees"].fit(samples, samples.numbers["nodes"], {}), samples, {})
    assert ours == pytest.approx(np.exp(theirs.predict(matrix)) * samples.numbers["bytes"], rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("machine", [CETUS, TITAN], ids=["cetus", "titan"])
@pytest.mark.parametrize("law", ["additive", "bottleneck"])
def test_large_writes_on_known_machines_are_predicted_from_small_ones(machine, law):
    pool = PUBLISHED[machine.name].pool
    small, _ = generated(machine, law, SMALL, 80, 1)
    large, true = generated(machine, law, LARGE, 50, 2)
    assert np.mean(np.abs(true / large.seconds - 1) <= 0.3) > 0.99
    found = choose(
        with_paper_features(small, pool),
        small.numbers["nodes"],
        ["nearest", "stage_sum", "bottleneck", "relative_lasso"],
    )
    ratios = large.seconds / found.predict(with_paper_features(large, pool))
    assert np.mean(np.abs(1 / ratios - 1) <= 0.3) >= 0.9
    if law == "additive":
        whole = METHODS["stage_sum"].fit(with_paper_features(small, pool), small.numbers["nodes"], {})["coefficients"]
        for name in ("m*K", "s_r*m*K" if machine is TITAN else "s_io*m*K"):
            assert whole[name] == pytest.approx(machine.stages[name], rel=0.15)


def test_missing_column_of_the_papers_features_is_named():
    with pytest.raises(InputError, match="no column 'processes_per_node'"):
        with_paper_features(grid(), PUBLISHED["titan"].pool)


def test_a_single_scale_and_too_few_samples_are_refused():
    samples = grid()
    with pytest.raises(InputError, match="all samples are of one scale"):
        choose(samples, np.ones(len(samples)))
    with pytest.raises(InputError, match="3 samples"):
        choose(samples.only(np.arange(len(samples)) < 3), np.arange(3.0))
