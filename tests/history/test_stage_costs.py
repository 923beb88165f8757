"""Costs of stages: found with ranges if the samples determine them, and otherwise not identified."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("scipy")
pytest.importorskip("sklearn")

from tests.history.write_time_machines import LARGE, SMALL, TITAN, generated
from vani.centre.write_time.choice import choose, judge, stage_costs
from vani.centre.write_time.fit import with_paper_features
from vani.centre.write_time.methods import METHODS
from vani.centre.write_time.published import PUBLISHED
from vani.centre.write_time.samples import Samples


def measured(seed: int = 0) -> Samples:
    random = np.random.default_rng(seed)
    nodes, size, stripes = (
        column.ravel().astype(float)
        for column in np.meshgrid([1, 2, 4, 8, 16], np.array([1, 4, 16]) * 1e9, [1, 2, 4, 8])
    )
    # All nodes together never wait for the file system as a whole.
    seconds = 1 + size / 1e9 / stripes + size / 2e9 / nodes
    return Samples(
        {"nodes": nodes, "bytes": size, "stripe_count": stripes},
        {},
        seconds * np.exp(random.normal(0, 0.05, len(seconds))),
    )


@pytest.mark.parametrize("method", ["stage_sum", "bottleneck", "lasso", "relative_lasso"])
@pytest.mark.sampled(2)
def test_bandwidths_are_found_with_a_range_that_holds_them(method):
    samples = measured()
    fitted = choose(samples, samples.numbers["nodes"], [method])
    found = {one.stage: one for one in stage_costs(fitted, samples, samples.numbers["nodes"])}
    assert next(iter(found)) in ("bytes/stripe_count", "bytes/nodes", "1")
    for one in found.values():
        assert (one.cost is None) == (one.low is None) == (one.high is None)
        assert one.cost is None or one.low <= one.cost <= one.high
    if method == "stage_sum":
        for stage, cost in (("bytes/stripe_count", 1e-9), ("bytes/nodes", 0.5e-9), ("1", 1.0)):
            assert found[stage].cost == pytest.approx(cost, rel=0.1)
            assert found[stage].high < 1.6 * found[stage].low
    assert found["nodes"].cost is None


def test_bytes_and_requests_of_one_size_are_one_stage():
    samples = measured()
    alike = samples.with_numbers({**samples.numbers, "request": np.full(len(samples), 1e6)})
    scale = samples.numbers["nodes"]
    one, other = (stage_costs(choose(some, scale, ["stage_sum"]), some, scale) for some in (samples, alike))
    assert [stage.stage for stage in other if "requests" in stage.stage] == []
    costs = {stage.stage: stage.cost for stage in other}
    for stage in one:
        assert costs[stage.stage] == (None if stage.cost is None else pytest.approx(stage.cost, rel=1e-3))


@pytest.mark.parametrize("method", ["mean", "nearest", "log_linear", "trees"])
@pytest.mark.slow
def test_methods_without_stages_report_none(method):
    samples = measured()
    fitted = choose(samples, samples.numbers["nodes"], [method])
    assert stage_costs(fitted, samples, samples.numbers["nodes"]) == []


def test_only_one_of_two_stages_with_proportional_loads_is_needed():
    # Titan's servers and targets have the same load until a job is large; its file system as a whole never
    # limits.
    pool = PUBLISHED["titan"].pool
    small, _ = generated(TITAN, "bottleneck", SMALL, 150, 1)
    large, _ = generated(TITAN, "bottleneck", LARGE, 50, 2)
    train = with_paper_features(small, pool)
    found = METHODS["bottleneck"].fit(train, small.numbers["nodes"], {})
    assert set(found["coefficients"]) == {"m*K", "s_r*m*K", "s_ost"}
    for name, cost in found["coefficients"].items():
        assert cost == pytest.approx(TITAN.stages[name], rel=0.05)
    score = judge("bottleneck", train, small.numbers["nodes"], with_paper_features(large, pool))
    assert score.within(0.3) >= 0.99
