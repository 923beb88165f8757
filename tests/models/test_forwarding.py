"""Curves of bandwidth by number of I/O nodes, and conclusions from them."""

from __future__ import annotations

import math
from collections import Counter
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import models
from benchmarks.forwarding import HELD_OUT as ALIKE
from benchmarks.forwarding import (
    LEGAL,
    RUNS,
    WAYS,
    coverage,
    few_curves_regret,
    fewest,
    held_out_regret,
    oracle,
    read_runs,
    regret_by_offset,
    summary,
)
from vani.models.forwarding import (
    HELD_OUT,
    Pattern,
    Rate,
    Scenario,
    choose,
    curves_of,
    legal,
    measured,
    nearest,
    prefetch_chunk,
    speedups,
)
from vani.models.stripe_count import measured_per_node, nearest_curve
from vani.schema.system import System
from vani.systems import known_systems, load_system
from vani.units import KiB, MiB


def test_bundled_measurements_match_the_paper():
    scenarios = measured()
    assert len(scenarios) == 189
    # By mean, direct access is the best in 22 scenarios, 1, 2, 4 and 8 I/O nodes in 10, 91, 16 and 50.
    best = Counter(max(s.curve, key=lambda n, s=s: s.curve[n].mean) for s in scenarios)
    assert best == {0: 22, 1: 10, 2: 91, 4: 16, 8: 50}


@given(st.sampled_from(measured()))
def test_a_measured_pattern_is_its_own_nearest(scenario):
    found, distance = nearest(scenario.pattern, measured())
    assert (found, distance) == (scenario, 0)


def test_the_nearest_has_the_same_layout_and_order():
    for layout, order in (("fpp", "contiguous"), ("shared", "contiguous"), ("shared", "strided")):
        found, distance = nearest(Pattern(24, 24 * 20, layout, order, 200 * KiB), measured())
        assert (found.pattern.layout, found.pattern.order) == (layout, order)
        assert 0 < distance < 2
    # A process with its own file interleaves with no other.
    assert nearest(Pattern(8, 96, "fpp", "strided", 32 * KiB), measured())[1] == 0


def test_doubling_has_distance_one():
    assert nearest(Pattern(64, 64 * 48, "fpp", "contiguous", 8 * MiB), measured())[1] == 1


@given(st.integers(1, 5000), st.booleans())
def test_io_nodes_divide_the_compute_nodes(nodes, direct):
    found = legal(nodes, [0, 1, 2, 3, 4, 8], direct=direct)
    assert 1 in found
    assert (0 in found) is direct
    assert all(nodes % n == 0 for n in found if n)


def test_fewest_nodes_close_to_the_best_rate_are_chosen():
    curve = {0: Rate(95, 0), 1: Rate(10, 0), 2: Rate(91, 0), 8: Rate(100, 0)}
    assert fewest(curve, [0, 1, 2, 8], 0.1) == 2
    assert fewest(curve, [0, 1, 2, 8], 0.05) == 8
    assert fewest(curve, [0, 1, 2], 0.1) == 0
    assert fewest(curve, [1], 0.1) == 1
    assert fewest(curve, [3], 0.1) is None


def test_the_oracle_is_the_best_mean():
    curve = {0: Rate(95, 0), 1: Rate(10, 0), 2: Rate(91, 0), 8: Rate(100, 0)}
    assert oracle(curve, [0, 1, 2, 8]) == 8
    assert oracle(curve, [0, 1, 2]) == 0


def curve(nodes=8, per_node=12, request=MiB, layout="shared", operation="write", **rates):
    pattern = Pattern(nodes, nodes * per_node, layout, "contiguous", request, operation)
    return Scenario(pattern, {int(n[1:]): Rate(rate, 0.1 * rate) for n, rate in rates.items()})


def test_the_choice_loses_least_in_the_weighted_mean_of_near_curves():
    # With 16 nodes: with 1 the near curve loses 0, the two a doubling away 20 and 50 %; with 2, 40, 0 and 0
    # %.
    near = curve(nodes=16, n1=100, n2=60)
    others = [curve(nodes=8, n1=80, n2=100), curve(nodes=32, n1=50, n2=100)]
    found = choose(near.pattern, [*others, near], [1, 2], 1.0)
    assert found.lost == pytest.approx({1: (0.5 * 0.2 + 0.5 * 0.5) / 2, 2: 0.4 / 2})
    assert found.io_nodes == 1
    assert (found.near[0], found.distance) == (near, 0)
    assert found.rates[1].mean == pytest.approx((100**2 * 80 * 50) ** 0.25)
    assert found.rates[1].deviation == pytest.approx(0.1 * found.rates[1].mean)


def test_contradicting_curves_give_no_answer():
    torn = [curve(nodes=8, n1=20, n2=100), curve(nodes=32, n1=100, n2=20)]
    wanted = Pattern(16, 192, "shared", "contiguous", MiB)
    assert "every number loses 40%" in choose(wanted, torn, [1, 2], 0.39)
    assert choose(wanted, torn, [1, 2], 0.41).io_nodes == 1


@pytest.mark.parametrize(
    ("pattern", "answered"),
    [
        (Pattern(16, 192, "shared", "contiguous", MiB), True),
        (Pattern(17, 204, "shared", "contiguous", MiB), False),
        (Pattern(8, 192, "shared", "contiguous", MiB), True),
        (Pattern(8, 193, "shared", "contiguous", MiB), False),
        (Pattern(8, 96, "shared", "contiguous", MiB // 2), True),
        (Pattern(8, 96, "shared", "contiguous", MiB // 2 - 1), False),
        (Pattern(8, 96, "shared", "strided", MiB), False),
        (Pattern(8, 96, "fpp", "contiguous", MiB), False),
        (Pattern(8, 96, "shared", "contiguous", MiB, "read"), False),
    ],
)
def test_curve_applies_within_a_factor_of_two(pattern, answered):
    found = choose(pattern, [curve(n1=1, n2=2)], [1, 2], 0.1)
    assert isinstance(found, str) is not answered


def test_direct_access_needs_similar_processes_per_node():
    own = [curve(layout="fpp", n0=3, n1=1, n2=2)]
    assert choose(Pattern(8, 128, "fpp", "contiguous", MiB), own, [0, 1, 2], 0.1).io_nodes == 0
    assert isinstance(choose(Pattern(8, 192, "fpp", "contiguous", MiB), own, [0, 1, 2], 0.1), str)
    assert choose(Pattern(8, 192, "fpp", "contiguous", MiB), own, [1, 2], 0.1).io_nodes == 2


def test_compared_are_the_numbers_of_the_nearest_curve():
    few, other = curve(n1=1, n2=2), curve(nodes=16, n2=1, n4=9)
    found = choose(few.pattern, [other, few], [1, 2, 4], 0.1)
    assert (found.io_nodes, set(found.lost), found.near) == (2, {1, 2}, (few,))
    assert "fewer than two" in choose(few.pattern, [few], [2, 4], 0.1)


def test_equal_numbers_prefer_the_fewest_and_direct_access_last():
    alike = curve(n0=100, n1=99.6, n2=100)
    assert choose(alike.pattern, [alike], [0, 1, 2], 0.1).io_nodes == 1
    best = curve(n0=100, n1=99.4, n2=99.4)
    assert choose(best.pattern, [best], [0, 1, 2], 0.1).io_nodes == 0


def test_bundled_curves_apply_only_to_their_machine():
    assert curves_of(load_system("marenostrum4")) == list(measured())
    for name in known_systems():
        if name != "marenostrum4":
            assert curves_of(load_system(name)) == []


def test_curve_of_the_description_replaces_the_bundled_one():
    system = load_system("marenostrum4")
    own = {"operation": "write", "layout": "file_per_process", "request": 32 * KiB, "nodes": 8}
    points = [{"io_nodes": 1, "bandwidth": 1.0}, {"io_nodes": 2, "bandwidth": 2.0, "deviation": 0.5}]
    tree = system.model_dump(by_alias=True)
    tree["forwarding"]["curves"] = [own | {"processes_per_node": 12, "points": points}, {"points": points}]
    found = curves_of(System.model_validate(tree))
    assert len(found) == 189, "a curve whose conditions are not known is none"
    assert found[0] == Scenario(
        Pattern(8, 96, "fpp", "contiguous", 32 * KiB), {1: Rate(1.0, 0.0), 2: Rate(2.0, 0.5)}
    )


def test_range_of_a_speedup_covers_held_out_errors():
    rates = {1: Rate(10, 9), 2: Rate(20, 3)}
    width = math.hypot(0.15, HELD_OUT)
    assert speedups(rates, 1, 2) == pytest.approx((2 * math.exp(-2 * width), 2, 2 * math.exp(1.5 * width)))


def test_curves_on_the_page_of_models_are_used(pytestconfig, tmp_path):
    text = (pytestconfig.rootpath / "docs" / "models.md").read_text(encoding="utf-8")
    path = tmp_path / "mine.yaml"
    stripes, forwarding = (block.split("```")[0] for block in text.split("```yaml\n")[1:])
    path.write_text(stripes)
    curves = load_system(path).file_systems[0].stripe_curves
    curve = nearest_curve(curves, nodes=16, collective=True, reads=False)
    assert curve is not None
    assert measured_per_node(curve) == 2
    path.write_text(forwarding)
    (one,) = curves_of(load_system(path))
    assert one.pattern == Pattern(32, 32 * 18, "fpp", "contiguous", MiB)
    assert set(one.curve) == {0, 2, 4}


# --- judged on patterns that were held out: `python -m benchmarks.models --forwarding` prints all of it


@pytest.mark.parametrize("allowed", LEGAL.values(), ids=LEGAL)
@pytest.mark.parametrize(
    "held_out", ["number of nodes", "request size", "processes per node", "number of processes"]
)
@pytest.mark.sampled(3)
def test_held_out_patterns_lose_at_most_a_twentieth(held_out, allowed):
    answers = summary(held_out_regret(WAYS["near curves (FWD001)"], ALIKE[held_out], allowed))
    before = summary(held_out_regret(WAYS["nearest curve"], ALIKE[held_out], allowed))
    assert answers.mean < min(0.03, before.mean)
    assert answers.percentile_90 < min(0.11, before.percentile_90)
    assert answers.refused < 0.35


@pytest.mark.skipif(not RUNS.exists(), reason="the single runs are not there")
@pytest.mark.parametrize("allowed", LEGAL.values(), ids=LEGAL)
def test_nominal_90_percent_ranges_cover_single_runs_of_held_out_patterns(allowed):
    found = coverage(read_runs(), ALIKE["number of nodes"], allowed)
    assert 0.85 < found.inside < 0.95
    assert found.below < 0.07
    assert found.anchored > 0.5


@pytest.mark.parametrize("allowed", LEGAL.values(), ids=LEGAL)
def test_fixed_numbers_lose_and_few_curves_cause_refusals_not_losses(allowed):
    for name, way in WAYS.items():
        if name.startswith("always") and way(measured()[0].pattern, measured(), allowed) is not None:
            assert summary(held_out_regret(way, ALIKE["the pattern itself"], allowed)).mean > 0.15
    few = summary(few_curves_regret(WAYS["near curves (FWD001)"], allowed, range(3)))
    assert few.mean < 0.05
    assert 0.2 < few.refused < 0.6


@pytest.mark.parametrize("allowed", LEGAL.values(), ids=LEGAL)
def test_envelope_limits_the_loss_to_a_tenth(allowed):
    means = {key: fmean(losses) for key, losses in regret_by_offset(allowed).items()}
    is_direct = 0 in allowed
    for (kind, condition, far), mean in means.items():
        if far <= 1 and not (is_direct and kind[1] == "fpp" and condition == "processes per node"):
            assert mean <= 0.1, (kind, condition, far)
    strided = ("write", "shared", "strided")
    assert means[strided, "nodes", 2] > 0.1
    assert means[strided, "request", 2] > 0.1
    if is_direct:
        assert means[("write", "fpp", "contiguous"), "processes per node", 1] > 0.15


def test_equation_2():
    assert prefetch_chunk(64 * MiB, 4, 256) == MiB
    assert prefetch_chunk(64 * MiB, 1, 0) == 64 * MiB


@pytest.mark.slow
def test_benchmark_prints_regret_by_held_out_part(monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.forwarding.LEGAL", {"forwarded only": LEGAL["forwarded only"]})
    monkeypatch.setattr("benchmarks.forwarding.RUNS", RUNS / "nowhere")
    models.main(forwarding=True)
    shown = capsys.readouterr().out
    for title in ALIKE:
        assert f"held out: {title}" in shown
    rows = [line for line in shown.splitlines() if line.startswith("  near curves (FWD001)")]
    assert len(rows) == len(ALIKE) + 1
    assert "Tarazu" not in shown
