"""The number of I/O nodes of each job."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.plan_forward import (
    OVER_STATIC,
    POOLS,
    SIX_JOBS,
    TABLE_4,
    best_repetitions,
    main,
    means,
    study,
)
from tests.plan.builders import NO_CURVES, jobs_of, numbers, planned
from vani.centre.plan.curves import curve_for
from vani.centre.plan.schema.jobs import AccessPattern, Jobs
from vani.errors import InputError

SIX = Jobs.load(SIX_JOBS)


# --- what the paper prints ------------------------------------------------------------------------


@pytest.mark.parametrize("policy", TABLE_4)
def test_table_4_is_reproduced_with_all_columns_and_totals(policy):
    wanted, total = TABLE_4[policy]
    plan = planned(SIX, 12, policy=policy)
    assert numbers(plan) == wanted
    assert plan.after.bandwidth == pytest.approx(total * 1e6)


def test_mckp_is_4_59_times_static_and_4_10_times_process():
    best = planned(SIX, 12)
    assert best.expected.speedup == pytest.approx(4.595, abs=0.001)
    assert best.after.io_nodes == 11
    process = planned(SIX, 12, policy="process").after.bandwidth
    assert best.after.bandwidth / process == pytest.approx(4.10, abs=0.005)


def test_printed_ceiling_for_static_contradicts_table_4():
    # BT-C would get 2, for which its curve has no figure: 12 * 32 / 272 = 1.41.
    curves = jobs_of(a={0: 1.0, 1: 1.0, 2: 1.0}, b={1: 1.0, 2: 1.0, 4: 1.0, 8: 1.0})
    small = curves.jobs[0].model_copy(update={"nodes": 32})
    jobs = curves.model_copy(update={"jobs": [small, curves.jobs[1].model_copy(update={"nodes": 240})]})
    assert numbers(planned(jobs, 12, policy="static"))["a"] == 1
    assert numbers(planned(jobs, 12, policy="static", rounding="ceil"))["a"] == 2


def test_static_uses_the_given_ratio_of_the_machine():
    plan = planned(
        jobs_of(a={1: 1.0, 2: 2.0, 4: 3.0, 8: 4.0}), 12, policy="static", nodes_per_io_node=96 / 12
    )
    assert numbers(plan) == {"a": 8}
    plan = planned(jobs_of(a={1: 1.0, 2: 2.0, 4: 3.0, 8: 4.0}), 12, policy="static", nodes_per_io_node=40)
    assert numbers(plan) == {"a": 2}


def check_study(sets: int, within: float) -> None:
    found = study(*means(), sets=sets)
    assert 1 - np.median(found.one / found.zero) == pytest.approx(0.821, abs=0.015)
    assert np.median(found.oracle / found.zero) - 1 == pytest.approx(0.256, abs=0.015)
    assert found.reaches_oracle == 56
    medians = dict(zip(POOLS, np.median(found.over_static, axis=1), strict=True))
    assert max(medians, key=medians.get) == 24
    for pool, paper in OVER_STATIC.items():
        assert medians[pool] == pytest.approx(paper, rel=within)
    assert found.over_static.min() >= 1
    over = found.rounded_over[POOLS.index(24) :]
    assert (over.min(), over.max()) == pytest.approx((0.25, 0.61), abs=0.04)


@pytest.mark.slow
def test_ten_thousand_sets_give_the_figures_of_section_3_2():
    check_study(10_000, 0.08)


@pytest.mark.slow
def test_five_hundred_sets_give_nearly_the_figures_of_section_3_2():
    check_study(500, 0.10)


def test_the_best_repetition_flatters_direct_access():
    runs = best_repetitions()
    if runs is None:
        pytest.skip("the single runs are not there")
    misleading, sound = study(*runs, sets=100), study(*means(), sets=100)
    assert np.median(misleading.oracle / misleading.zero) < 1.05 < np.median(sound.oracle / sound.zero)


def test_the_tables_are_printed(capsys):
    main(sets=20)
    printed = capsys.readouterr().out
    assert "static    1,478.0 (paper 1,478.0), mckp is 4.60 times that" in printed
    assert "MCKP / STATIC 2.36 (paper 1.90)" in printed
    assert "512 jobs, 256 I/O nodes:" in printed


# --- the optimum ----------------------------------------------------------------------------------

CURVES = st.dictionaries(
    st.sampled_from("abcd"),
    st.dictionaries(st.sampled_from([0, 1, 2, 4]), st.integers(1, 50).map(float), min_size=1),
    min_size=1,
)


def all_plans(jobs: Jobs, pool: int) -> list[tuple[list[float], list[float], int]]:
    """Rates, shares of the job's own best, and I/O nodes of every allocation that fits."""
    curves = [{item.io_nodes: item.bandwidth for item in job.curve} for job in jobs.jobs]
    best = [max((rate for n, rate in one.items() if n <= pool), default=0.0) for one in curves]
    found = []
    for taken in product(*curves):
        if sum(taken) <= pool:
            rates = [one[n] for one, n in zip(curves, taken, strict=True)]
            found.append((rates, [r / b for r, b in zip(rates, best, strict=True)], sum(taken)))
    return found


@given(
    CURVES,
    st.integers(0, 12),
    st.sampled_from(["sum", "max-min", "proportional"]),
    st.sampled_from([0.0, 0.5]),
)
def test_the_plan_is_the_optimum_of_brute_force_with_the_fewest_io_nodes(curves, pool, objective, floor):
    jobs = jobs_of(**curves)
    ways = [one for one in all_plans(jobs, pool) if min(one[1]) >= floor]

    def worth(one):
        rates, shares, used = one
        if objective == "proportional":
            return round(float(np.log(rates).sum()), 9), -used
        return (min(shares) if objective == "max-min" else 0.0), sum(rates), -used

    if not ways:
        with pytest.raises(InputError, match="smallest pool that works"):
            planned(jobs, pool, objective=objective, floor=floor)
        return
    plan = planned(jobs, pool, objective=objective, floor=floor)
    found = ([one.bandwidth for one in plan.jobs], [one.share for one in plan.jobs], plan.after.io_nodes)
    assert worth(found) == max(map(worth, ways))


@given(CURVES, st.integers(0, 12), st.sampled_from([0.0, 0.5, 1.0]))
def test_smallest_named_pool_works_and_smaller_pools_do_not(curves, pool, floor):
    jobs = jobs_of(**curves)
    try:
        planned(jobs, pool, floor=floor)
    except InputError as error:
        named = int(error.todo.rpartition(" ")[2])
        planned(jobs, named, floor=floor)
        for smaller in range(pool + 1, named):
            with pytest.raises(InputError):
                planned(jobs, smaller, floor=floor)


def test_value_of_one_more_io_node_is_the_gain_of_the_next_pool():
    for pool in range(4, 18):
        plan, larger = planned(SIX, pool), planned(SIX, pool + 1)
        assert plan.one_more == pytest.approx(larger.after.bandwidth - plan.after.bandwidth)


def test_every_pool_is_solved_at_once():
    for one in planned(SIX, 12).pools:
        assert planned(SIX, one.io_nodes).after.bandwidth == pytest.approx(one.bandwidth)


def test_the_same_inputs_give_the_same_bytes():
    assert planned(SIX, 12, compare=True).to_yaml() == planned(SIX, 12, compare=True).to_yaml()


# --- what cannot be done --------------------------------------------------------------------------


def test_jobs_share_an_io_node_if_too_few_exist_and_direct_access_is_excluded():
    plan = planned(jobs_of(a={1: 30.0}, b={1: 60.0}, c={1: 90.0}), 2, direct=False)
    assert {one.name: (one.io_nodes, one.shared, one.bandwidth) for one in plan.jobs} == {
        "a": (0, True, 10.0),
        "b": (0, True, 20.0),
        "c": (1, False, 90.0),
    }
    assert plan.after.io_nodes == 2
    assert "2 jobs share one I/O node" in plan.notes[0]


def test_unshareable_pool_is_refused_with_the_smallest_that_works():
    with pytest.raises(InputError, match="the smallest pool that works has 4"):
        planned(jobs_of(a={2: 30.0}, b={2: 60.0}), 3, direct=False)


def test_static_reports_assignments_beyond_the_pool():
    plan = planned(jobs_of(a={1: 1.0}, b={1: 1.0}, c={1: 1.0}), 2, policy="static", direct=False)
    assert plan.after.over == 1
    assert "3 I/O nodes are assigned of 2" in plan.over_capacity[0].reason
    assert not plan.is_whole


def test_job_without_a_figure_is_not_zero():
    plan = planned(Jobs.load(NO_CURVES), 12)
    by_name = {one.name: one for one in plan.jobs}
    assert by_name["notebook"].bandwidth is None
    assert plan.after.no_figure == 1
    assert by_name["climate"].low < by_name["climate"].bandwidth < by_name["climate"].high
    assert {one.name for one in plan.no_data} == {"climate", "plasma", "notebook"}


def test_a_job_without_figure_does_not_starve_the_others():
    curves = jobs_of(b={1: 5.0})
    unknown = curves.jobs[0].model_copy(update={"name": "a", "nodes": 640, "curve": None})
    plan = planned(curves.model_copy(update={"jobs": [unknown, *curves.jobs]}), 2, direct=False)
    assert numbers(plan) == {"a": 1, "b": 1}


def test_zero_omits_a_job_never_measured_with_direct_access():
    plan = planned(SIX, 12, policy="zero")
    assert [one.name for one in plan.unplaced] == ["BT-D", "IOR-MPI", "POSIX-L"]
    assert {one.reason for one in plan.unplaced} == {"no figure for direct access"}
    assert plan.expected is None
    forbidden = planned(SIX, 12, policy="zero", direct=False)
    assert {one.reason for one in forbidden.unplaced} == {"direct access is not allowed"}


@pytest.mark.parametrize(
    ("curve", "nodes", "said"),
    [({3: 1.0}, 64, "none of the numbers of I/O nodes that it can have"), ({0: 1.0}, 64, "none of the numbers of I/O nodes")],
)
def test_a_curve_without_a_legal_number_is_refused(curve, nodes, said):
    with pytest.raises(InputError, match=said):
        planned(jobs_of(a=curve), 4, direct=False)


def test_two_jobs_with_one_name_are_refused():
    one = jobs_of(a={1: 1.0})
    with pytest.raises(InputError, match="two jobs are named 'a'"):
        planned(one.model_copy(update={"jobs": one.jobs * 2}), 4)


def test_any_number_gives_numbers_that_do_not_divide_the_nodes():
    curve = {1: 1e9, 3: 2.9e9, 4: 3e9}
    assert numbers(planned(jobs_of(a=curve), 3, direct=False)) == {"a": 1}
    assert numbers(planned(jobs_of(a=curve), 3, direct=False, any_number=True)) == {"a": 3}


def test_curve_of_other_nodes_is_scaled_for_own_files_and_otherwise_refused():
    own = {"layout": "file_per_process", "request": 1 << 20}
    jobs = jobs_of(a={0: 5e9, 1: 1e9, 2: 2e9})
    small = jobs.jobs[0].model_copy(update={"curve_nodes": 16, "pattern": AccessPattern.model_validate(own)})
    curve, lack = curve_for(small)
    # Direct access did not follow; 64 nodes are four times 16.
    assert [(item.io_nodes, item.bandwidth) for item in curve] == [(4, 4e9), (8, 8e9)]
    plan = planned(Jobs(jobs=[small]), 8, direct=False)
    assert (plan.jobs[0].io_nodes, plan.jobs[0].bandwidth, plan.jobs[0].source) == (8, 8e9, "estimated")
    assert [left.reason for left in plan.no_data] == [lack]
    for change in ({"curve_nodes": 8}, {"curve_nodes": 24}, {"pattern": None}):
        refused = small.model_copy(update=change)
        assert curve_for(refused)[0] == []
        offer = planned(Jobs(jobs=[refused]), 8, direct=False, estimate="none")
        assert offer.jobs[0].source == "none" and "its curve was measured on" in offer.no_data[0].reason
