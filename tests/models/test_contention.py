"""The contention model against measurements, and its general properties."""

from __future__ import annotations

import statistics
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import models
from vani.models import contention
from vani.models.contention import (
    Burst,
    Path,
    advised_count,
    fewest_targets,
    most_loaded,
    neat,
    path_of,
    predict,
)
from vani.schema.system import System

GB = 1e9
PLAIN = Path(target=1 * GB, targets=32, client=2 * GB, process=None)

rates = st.floats(min_value=1e6, max_value=1e11)
bursts = st.builds(
    Burst,
    bytes=st.floats(min_value=1e6, max_value=1e14),
    nodes=st.integers(1, 4096),
    processes=st.integers(1, 100_000),
    files=st.sampled_from([1, 2, 64, 4096]),
    stripe_count=st.integers(1, 128),
)
paths = st.builds(
    Path,
    target=rates,
    targets=st.none() | st.integers(1, 1000),
    server=st.none() | rates,
    servers=st.none() | st.integers(1, 200),
    whole=st.none() | rates,
    client=st.none() | rates,
)


def test_table_6_is_met_as_well_as_by_the_paper():
    errors = models.errors(models.TABLE_6_POINTS, models.path_of_system("titan"))
    simulator = models.mean_abs(row[3] / row[2] - 1 for row in models.TABLE_6)
    assert simulator == pytest.approx(0.066, abs=5e-4)  # paper-facts: 6.6 %
    assert models.mean_abs(errors) <= 0.035
    assert max(map(abs, errors)) <= 0.09


def test_points_of_table_6_excluded_from_the_fit_are_predicted():
    errors = models.left_out(models.TABLE_6_POINTS, models.path_of_system("titan"), models.TITAN_FITTED)
    assert models.mean_abs(errors) <= 0.05


def test_titan_is_described_with_the_rates_that_fit_table_6():
    path = models.path_of_system("titan")
    fitted = models.fit(models.TABLE_6_POINTS, path, models.TITAN_FITTED)
    for name in models.TITAN_FITTED:
        assert getattr(path, name) == pytest.approx(getattr(fitted, name), rel=0.01)


def test_tianhe_is_described_with_rates_fitted_to_one_target_sweeps():
    path = models.tianhe_path(whole=False)
    points = models.oprael_points([*models.PROCESS, *models.COMPUTE_NODE])
    fitted = models.fit(points, path, ("process", "client", "target"))
    assert path.target == pytest.approx(fitted.target, rel=0.01)
    assert path.client == pytest.approx(fitted.client, rel=0.01)
    assert pytest.approx(fitted.process, rel=0.03) == contention.PAGE_CACHE_RATE


@pytest.mark.parametrize("whole", [True, False], ids=["described", "nothing of the sweep known"])
def test_the_advised_count_reaches_nine_tenths_with_few_targets(whole):
    scores = models.score(models.advised(models.tianhe_path(whole=whole)))
    assert statistics.fmean(one.reached for one in scores) >= 0.9
    assert max(one.over for one in scores) <= 1.5


def test_the_sweeps_of_processes_nodes_and_targets_are_predicted():
    path = models.tianhe_path()
    for sweep, bar in ((models.PROCESS, 0.08), (models.COMPUTE_NODE, 0.08), (models.OST, 0.1)):
        assert models.mean_abs(models.errors(models.oprael_points(sweep), path)) <= bar


@pytest.mark.skipif(not models.IO500.exists(), reason="the measurements are not here")
def test_io500_is_met_within_an_order_of_magnitude():
    found = [
        one.predicted("ior_easy_write") / one.gb_s["ior_easy_write"]
        for one in models.read_io500()
        if one.kind in {"lustre", "beegfs"} and "ior_easy_write" in one.gb_s
    ]
    assert len(found) > 50
    assert statistics.fmean(0.1 <= one <= 10 for one in found) >= 0.9


def test_stages_of_a_shared_file_are_counted_by_hand():
    # 32 GB from 8 nodes to 4 targets: 8 GB to each target, 4 GB from each node.
    found = predict(Burst(bytes=32 * GB, nodes=8, processes=8, stripe_count=4), PLAIN)
    assert found.stages == {"client": pytest.approx(2.0), "target": pytest.approx(8.0)}
    assert found.seconds == pytest.approx(10)
    assert found.best_s == pytest.approx(8)
    assert found.worst_s == pytest.approx(13)
    assert found.slowest == "target"


def test_three_stripes_on_two_targets_wait_for_the_target_with_two():
    path = replace(PLAIN, targets=2, client=None)
    assert predict(Burst(bytes=3 * GB, stripe_count=3), path).seconds == pytest.approx(2)


def test_packed_nodes_share_an_io_node():
    path = Path(target=1e15, io_node=1 * GB, io_nodes=10, nodes_per_io_node=100, client=None, process=None)
    burst = Burst(bytes=100 * GB, nodes=50, processes=50)
    assert predict(burst, path).seconds == pytest.approx(10, rel=1e-3)
    assert predict(burst, path, packed=True).seconds == pytest.approx(100, rel=1e-3)
    assert predict(burst, path).worst_s == pytest.approx(130, rel=1e-3)


def test_small_pieces_of_several_nodes_move_locks():
    path = replace(PLAIN, lock_s=0.01)
    burst = Burst(bytes=1000 * 1000, nodes=4, processes=4, stripe_count=2, piece=1000)
    # 1,000 pieces, a lock of 10 ms each, two objects at a time.
    assert predict(burst, path).stages["lock"] == pytest.approx(5)
    for change in ({"piece": None}, {"nodes": 1}, {"piece": 1 << 20}, {"files": 2}):
        assert "lock" not in predict(replace(burst, **change), path).stages


def test_fullest_of_random_targets_agrees_with_a_simulation():
    # 1,000 draws with numpy's default_rng(0): mean of the fullest of 1008 bins.
    assert most_loaded(1024, 1008) == pytest.approx(5.5, abs=0.15)
    assert most_loaded(16384, 1008) == pytest.approx(30.5, abs=0.5)
    assert most_loaded(5, 1) == 5
    assert most_loaded(0, 7) == 0


@given(balls=st.integers(1, 10**8), bins=st.integers(1, 5000))
def test_fullest_bin_is_between_the_mean_and_the_total(balls, bins):
    assert balls / bins * 0.999 <= most_loaded(balls, bins) <= balls * 1.001


@given(burst=bursts, path=paths)
def test_times_are_ordered_and_scale_with_the_bytes(burst, path):
    found = predict(burst, path)
    assert 0 < found.best_s <= found.seconds * (1 + 1e-9)
    assert found.seconds <= found.worst_s
    double = predict(replace(burst, bytes=2 * burst.bytes), path)
    assert double.seconds == pytest.approx(2 * found.seconds)


@given(burst=bursts.map(lambda one: replace(one, files=1)), path=paths, most=st.integers(1, 300))
def test_fewest_targets_are_among_the_existing_ones(burst, path, most):
    count = fewest_targets(burst, path, most)
    assert 1 <= count <= most
    assert 1 <= advised_count(burst, path, most) <= most


@given(d=rates, b=rates, most=st.integers(65, 2000))
def test_fewest_of_many_targets_agree_with_a_full_search(d, b, most):
    path = Path(target=b, client=d, process=None)
    burst = Burst(bytes=1e12, nodes=4, processes=4)
    times = [predict(replace(burst, stripe_count=n), path).seconds for n in range(1, most + 1)]
    wanted = next(n for n, time in enumerate(times, start=1) if time <= min(times) / 0.9)
    assert abs(fewest_targets(burst, path, most) - wanted) <= 1


@pytest.mark.parametrize(
    ("count", "most", "wanted"),
    [(1, 9, 1), (5, 100, 6), (22, 32, 24), (28, 32, 32), (9, 7, 7), (5, 5, 5), (0.2, 3, 1)],
)
def test_counts_are_made_neat(count, most, wanted):
    assert neat(count, most) == wanted


def described(**disk):
    return System.model_validate({"name": "x", "file_systems": [{"name": "fs", "type": "lustre", **disk}]})


def test_full_rate_is_kept_if_all_targets_are_used():
    # 10 targets of 1 GB/s, of which the whole delivers 5: the shared part costs as much again.
    system = described(targets=10, bandwidth_per_target={"write": 1 * GB}, max_bandwidth={"write": 5 * GB})
    path = path_of(system, system.file_systems[0])
    alone = replace(path, client=None, process=None)
    assert predict(Burst(bytes=5 * GB, stripe_count=10), alone).seconds == pytest.approx(1)


def test_whole_equal_to_the_sum_of_its_targets_adds_no_cost():
    system = described(
        targets=10,
        servers=5,
        bandwidth_per_target={"write": 1 * GB},
        bandwidth_per_server={"write": 2 * GB},
        max_bandwidth={"write": 10 * GB},
    )
    path = path_of(system, system.file_systems[0])
    assert path.whole is None
    assert path.server is None


@pytest.mark.parametrize(
    "disk",
    [
        {"targets": 10, "max_bandwidth": {"write": 20 * GB}},
        {"targets": 10, "servers": 5, "bandwidth_per_server": {"write": 4 * GB}},
    ],
    ids=["whole", "server"],
)
def test_targets_share_the_known_rate(disk):
    system = described(**disk)
    path = path_of(system, system.file_systems[0])
    assert path.target == 2 * GB
    assert any("share" in one for one in path.assumed)


def test_missing_rates_give_a_request_instead_of_a_path():
    system = described(targets=10)
    assert "bandwidth_per_target" in path_of(system, system.file_systems[0])
    path = path_of(system, system.file_systems[0], target_rate=5e8)
    assert path.target == 5e8
    assert "500 MB/s" in path.assumed[0]


def test_the_benchmark_prints_all_figures(capsys):
    models.main()
    printed = capsys.readouterr().out
    for word in ("leave one out", "sweep process", "sweep compute_node", "fixed 1", "all 32", "IO500"):
        assert word in printed
