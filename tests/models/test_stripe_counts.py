"""Advised stripe counts and their gains on measured runs, next to rules of thumb."""

from __future__ import annotations

import statistics

import pytest

from benchmarks.accuracy import PAGE, with_table
from benchmarks.data import DATA
from benchmarks.gains import of_advice, of_curves, tables
from benchmarks.stripes import BEHIND, FEW, MeasuredRun, aims_of, scores_of
from vani.models.stripe_count import RANGE_EXPONENT, measured_per_node, nearest_curve, neat, speedup
from vani.schema.system import StripeCurve
from vani.units import GiB

pytestmark = pytest.mark.skipif(not DATA.exists(), reason="the measurements are not here")


@pytest.mark.parametrize(
    ("kind", "left_out", "more"),
    [
        pytest.param("collective", True, 0.05, marks=pytest.mark.slow),
        pytest.param("independent", True, 0.05, marks=pytest.mark.slow),
        ("collective", False, 0.05),
        ("independent", False, 0.05),
        # One machine was measured with these.
        ("file per process", False, 0.02),
        ("reads", False, -0.005),
    ],
)
def test_advised_counts_reach_more_than_any_fixed_rule(kind, left_out, more):
    aims = aims_of(scores_of(kind, left_out=left_out))
    assert aims.mean > 0.9
    assert aims.mean > aims.best + more
    assert aims.behind <= BEHIND
    assert aims.low <= FEW


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stripes", "stripe gains"])
def test_figures_on_the_page_are_current(name):
    page = PAGE.read_text()
    assert page == with_table(page, name, tables()[name]), "run `python -m benchmarks.accuracy`"


def test_ranges_contain_counts_that_are_not_on_the_curve():
    points = of_curves()
    given = [point for point in points if point.low is not None]
    assert len(given) > 60
    assert statistics.fmean(point.is_inside for point in given) > 0.75
    assert max(point.high / point.low for point in given) < 10
    assert sum(point.measured < 1 and point.low > 1.05 for point in given) < 0.005 * len(given)


@pytest.mark.slow
def test_gain_needs_a_curve_and_a_faster_run():
    assert [point for point in of_advice(curves=False) if point.low is not None] == []
    with_curves = [point for point in of_advice(curves=True) if point.low is not None]
    assert [point for point in with_curves if point.measured < 1 and point.low > 1.05] == []


def test_bandwidth_between_measured_counts_is_a_power_of_the_count():
    points = _curve(16).points
    factor, spread = speedup(points, 1, 4)
    assert factor == pytest.approx(3**0.5)
    assert spread == pytest.approx(4**RANGE_EXPONENT)
    # Nothing is known outside the measured counts, where a run may get slower.
    assert speedup(points, 1, 32) is None
    assert speedup(points[1:], 8, 16) is None
    # The run's own rate is a point, too.
    assert speedup(points[1:], 8, 16, 1e9) == (pytest.approx(3), 1)


def test_between_measured_counts_bandwidth_follows_the_logarithm():
    run = MeasuredRun("m", "x", "collective", GiB, 8, 2, 8, "mpiio", {2: 100.0, 8: 300.0})
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
        curve = nearest_curve(among, nodes=2, **{"collective": False, "reads": False} | pattern)
        return None if curve is None else measured_per_node(curve)

    assert (enough(), enough(collective=True), enough(strided=True)) == (4, 8, 1)
    # All files of a node together.
    assert enough(own=True) == 32
    assert enough(reads=True) is None
    # Contiguous regions replace pieces in turn if these were not measured, but never the reverse.
    assert enough(curves[:1], strided=True) == 4
    assert enough(curves[2:3]) is None


@pytest.mark.parametrize(
    ("count", "most", "wanted"),
    [(1, 9, 1), (5, 100, 6), (22, 32, 24), (28, 32, 32), (9, 7, 7), (5, 5, 5), (0.2, 3, 1)],
)
def test_counts_are_made_neat(count, most, wanted):
    assert neat(count, most) == wanted
