"""No plan of OSTs is slower than doing nothing, and what is called worth pinning gains: on drawn file systems."""

from __future__ import annotations

import pytest

from tests.plan.fleet import CHOSEN, judged

FEW = (*range(2000, 2006), 5020)
MANY = range(1000, 1060)


@pytest.mark.parametrize(
    ("seeds", "most_files"), [(FEW, 12), pytest.param(MANY, 64, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_plans_are_never_slower_than_doing_nothing_and_pins_gain(seeds, most_files):
    assert not set(seeds) & set(CHOSEN)
    plans = {seed: judged(seed, most_files) for seed in seeds}
    assert {seed: plan for seed, plan in plans.items() if plan.default < 1 / 1.03} == {}
    assert {seed: plan for seed, plan in plans.items() if plan.pin and plan.forced < 1.03} == {}
    assert any(plan.pin for plan in plans.values()) and not all(plan.pin for plan in plans.values())
