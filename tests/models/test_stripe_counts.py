"""Advised stripe counts and their gains on measured runs, next to rules of thumb."""

from __future__ import annotations

import statistics

import pytest

from benchmarks.gains import changes
from benchmarks.stripe_runs import DATA, Run, runs
from benchmarks.stripes import THUMB, advised, shares
from vani.models.stripe_count import measured_per_node, speedup
from vani.schema.system import StripeCurve
from vani.units import GiB

pytestmark = pytest.mark.skipif(not DATA.exists(), reason="the measurements are not beside the repository")


def _mean_of_machines(rule, measured):
    by_machine = {run.machine: [other for other in measured if other.machine == run.machine] for run in measured}
    return statistics.fmean(statistics.fmean(shares(rule, own)) for own in by_machine.values())


@pytest.mark.parametrize("kind", ["collective", "independent"])
def test_advised_counts_reach_more_than_any_rule_of_thumb(kind):
    measured = [run for run in runs() if run.kind == kind]
    reached = _mean_of_machines(advised, measured)
    assert reached > 0.9
    assert statistics.fmean(share < 0.5 for share in shares(advised, measured)) <= 0.01
    for rule in THUMB.values():
        assert reached > _mean_of_machines(rule, measured) + 0.05


@pytest.mark.slow
def test_intervals_of_gains_contain_measurements():
    points = changes()
    large = [point for point in points if point.measured > 1.3]
    given = [point for point in points if point.expected is not None]
    assert statistics.fmean(point.expected is not None for point in large) > 0.6
    assert 0.75 <= statistics.fmean(p.expected.low <= p.measured <= p.expected.high for p in given) <= 0.9
    assert statistics.median(point.measured / point.expected.speedup for point in given) >= 1


def test_nodes_limited_by_their_own_rate_gain_nothing():
    assert speedup(1, 8, 6.1e9, nodes=2) == 1
    assert 1 < speedup(1, 8, 1e9, nodes=2) < speedup(1, 8, 0.1e9, nodes=2) < 8


def test_between_measured_counts_bandwidth_follows_the_logarithm():
    run = Run("m", "x", "collective", GiB, 8, 2, 8, "mpiio", {2: 100.0, 8: 300.0})
    assert run.reached(4) == pytest.approx(200 / 300)
    # Fewer than the measured ones are at worst proportional.
    assert run.reached(1) == pytest.approx(50 / 300)


def _curve(enough: int, **pattern) -> StripeCurve:
    points = [{"stripe_count": 1, "bandwidth": 1e9}, {"stripe_count": enough, "bandwidth": 3e9}]
    return StripeCurve.model_validate({"calls": "independent", "nodes": 2, "points": points} | pattern)


def test_curve_applies_only_to_its_own_pattern():
    own = _curve(4, layout="file_per_process", processes_per_node=8)
    curves = [_curve(8), _curve(16, calls="collective"), _curve(2, order="strided"), own]

    def enough(among=curves, **pattern):
        return measured_per_node(among, nodes=2, **{"collective": False, "reads": False} | pattern)

    assert (enough(), enough(collective=True), enough(strided=True)) == (4, 8, 1)
    # All files of a node together.
    assert enough(own=True) == 32
    assert enough(reads=True) is None
    # Contiguous regions replace pieces in turn if these were not measured, but never the reverse.
    assert enough(curves[:1], strided=True) == 4
    assert enough(curves[2:3]) is None
