"""Intervals of write times from few held-out samples contain nine out of ten, on unseen machines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("scipy")


from tests.history.write_time_machines import LARGE, SMALL, TITAN, Machine, drawn, generated
from vani.centre.write_time.choice import choose
from vani.centre.write_time.fit import with_paper_features
from vani.centre.write_time.published import PUBLISHED
from vani.centre.write_time.samples import _student, nine_of_ten


def test_students_quantiles_match_scipy():
    from scipy.stats import t  # noqa: PLC0415

    for freedom in range(1, 40):
        assert _student(0.95, freedom) == pytest.approx(t.ppf(0.95, freedom), rel=0.01)


def test_the_ends_of_an_interval_leave_out_as_many_values_as_a_tenth_allows():
    for count, left_out in ((19, 0), (38, 0), (39, 1), (58, 1), (59, 2), (199, 9)):
        assert nine_of_ten(np.arange(float(count))).tolist() == [left_out, count - 1 - left_out]


def test_interval_from_two_samples_per_scale_covers_nine_of_ten():
    # The extremes of the two, widened by 15 %, covered 66 %.
    pool, held = PUBLISHED["titan"].pool, []
    for seed in range(300, 312):
        factors = np.random.default_rng(seed).uniform(-0.9, 0.9, len(TITAN.stages))
        stages = {
            name: cost * float(np.exp(f))
            for (name, cost), f in zip(TITAN.stages.items(), factors, strict=True)
        }
        machine = Machine("titan", TITAN.start, stages)
        small, _ = generated(machine, "additive", SMALL, 2, seed)
        large, _ = generated(machine, "additive", LARGE, 10, seed + 1000)
        found = choose(with_paper_features(small, pool), small.numbers["nodes"], ["nearest", "stage_sum"])
        ratios = large.seconds / found.predict(with_paper_features(large, pool))
        held.append(((ratios >= found.low) & (ratios <= found.high)).mean())
        assert found.held_out >= 9
    assert 0.85 <= np.mean(held) <= 0.99


def test_interval_widens_with_distance_and_with_disagreeing_methods():
    samples = drawn("contended", 11, 120, 20)
    small = samples.numbers["nodes"] <= 128
    fitted = choose(samples.only(small), samples.numbers["nodes"][small], ["nearest", "stage_sum", "bottleneck"])
    alone, large = replace(fitted, rivals={}), samples.only(~small)

    def width(of, times):
        low, high = of.interval(large, np.full(len(large), times))
        assert (low <= of.predict(large)).all()
        assert (of.predict(large) <= high).all()
        return (high / low).mean()

    assert width(alone, 0.5) == pytest.approx(width(alone, 1.0)) == pytest.approx(fitted.high / fitted.low)
    drift = max(fitted.offset, 1 / fitted.offset)
    assert width(alone, 4.0) == pytest.approx(width(alone, 1.0) * drift**3)
    assert drift > 1.01
    assert width(replace(alone, rivals={"mean": {"seconds": 1.0}}), 1.0) > width(alone, 1.0)
