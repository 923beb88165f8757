"""What the advised stripe counts reach on measured runs, beside fixed counts."""

from __future__ import annotations

import statistics

import pytest

from benchmarks.stripe_counts import DATA, FIXED, Run, recommended, runs
from vani.units import GiB

pytestmark = pytest.mark.skipif(not DATA.exists(), reason="the measurements are not beside the repository")


def test_advised_counts_reach_more_than_any_fixed_count():
    measured = runs()
    advised = [run.reached(recommended(run)) for run in measured]
    assert statistics.fmean(advised) > 0.9
    assert min(advised) > 0.6
    for count in FIXED:
        assert statistics.fmean(advised) > statistics.fmean(run.reached(count) for run in measured) + 0.1


def test_files_that_stay_in_memory_get_few_targets_and_long_ones_many():
    counts = {run.name: recommended(run) for run in runs()}
    assert counts["ior 1 GiB"] == 1
    assert counts["ior 4 GiB"] == 4
    assert counts["ior 32 GiB"] >= 16
    assert counts["btio 12207 MiB"] >= 16


def test_between_measured_counts_bandwidth_follows_the_logarithm():
    run = Run("x", GiB, collective=False, measured={1: 100.0, 4: 300.0})
    assert run.reached(2) == pytest.approx(200 / 300)
