"""The nodes that the I/O of jobs passes."""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.plan_path import FORWARDING, NODES, PER_STORAGE, STORAGE, print_flows, print_table_3
from benchmarks.plan_path import jobs_of as jobs_alike
from benchmarks.plan_path import machine as tai_hu
from tests.plan.path_builders import (
    DIMENSIONS,
    TABLE_3_JOBS,
    TABLE_3_NOW,
    best_by_enumeration,
    check_sound,
    demands,
    jobs_of,
    largest_flow,
    machine,
    machines,
    node,
    planned,
)
from vani.centre.plan.path_layers import carried, greedy, network_of, room_for
from vani.centre.plan.schema.jobs import Jobs
from vani.centre.plan.schema.plans import PathPlan
from vani.centre.plan.schema.snapshot import MetadataServer, Snapshot
from vani.errors import InputError
from vani.models import stripe_count


def forwarders(plan: PathPlan) -> dict[str, dict[str, int]]:
    """Compute nodes by forwarding node, by job."""
    return {job.name: {one.forwarding: one.nodes for one in job.map} for job in plan.jobs}


# --- what has to hold for every machine --------------------------------------------------------------


@given(machines(), st.lists(demands(), min_size=1, max_size=4), st.booleans(), st.booleans())
def test_no_node_is_above_its_peak_or_abnormal_and_flows_are_conserved(snapshot, asked, exact, pack):
    jobs = jobs_of(*asked)
    check_sound(planned(jobs, snapshot, exact=exact, pack=pack), jobs, snapshot)


@given(machines(), demands())
def test_no_flow_is_above_the_maximum_and_the_exact_one_is_the_maximum(snapshot, asked):
    jobs = jobs_of(asked)
    most = largest_flow(snapshot, {name: asked[name] for name in DIMENSIONS})
    for pack in (False, True):
        assert planned(jobs, snapshot, pack=pack).jobs[0].flow <= most + 1e-6
        assert planned(jobs, snapshot, pack=pack, exact=True).jobs[0].flow == pytest.approx(most, abs=2e-6)


@given(machines(complete=True), demands(), st.booleans())
def test_algorithm_1_is_maximal_if_every_forwarding_node_reaches_every_storage_node(
    snapshot, asked, pack
):
    most = largest_flow(snapshot, {name: asked[name] for name in DIMENSIONS})
    assert planned(jobs_of(asked), snapshot, pack=pack).jobs[0].flow == pytest.approx(most, abs=2e-6)


@given(machines(), demands(), st.booleans(), st.booleans())
@settings(max_examples=60)
@pytest.mark.slow
def test_mapping_is_optimal_with_one_forwarding_node_per_compute_node(
    snapshot, asked, exact, pack
):
    asked |= {"nodes": min(asked["nodes"], 5)}
    best = best_by_enumeration(snapshot, {name: asked[name] for name in DIMENSIONS}, asked["nodes"])
    job = planned(jobs_of(asked), snapshot, exact=exact, pack=pack).jobs[0]
    assert job.met == pytest.approx(best, abs=5e-6)
    assert job.bound is None or job.bound == pytest.approx(best, abs=5e-6)


def test_for_many_forwarding_nodes_the_mapping_is_sought_and_its_bound_printed():
    fwd, reach = 40, {f"f{n}": ["s0", "s1"][n % 2 : n % 2 + 1] for n in range(40)}
    snapshot = machine([node(0.3 + 0.01 * n) for n in range(fwd)], [[node(0.0, 10)], [node(0.0, 10)]], reach)
    job = planned(jobs_of({"iobw": 25.0, "nodes": 30}), snapshot).jobs[0]
    # A compute node demands more than any forwarding node has: the thirty with most are the best.
    assert job.met == pytest.approx(sum(0.7 - 0.01 * n for n in range(30)) / 25) == pytest.approx(job.bound)


def test_busy_target_is_not_used_while_any_storage_node_has_an_idle_one():
    snapshot = Snapshot.model_validate(
        Snapshot.load(TABLE_3_NOW).model_dump(by_alias=True)
        | {
            "ost": [
                target.model_dump() | ({"load": 0.95} if target.index == 1 else {})
                for target in Snapshot.load(TABLE_3_NOW).ost
            ]
        }
    )
    plan = planned(Jobs.load(TABLE_3_JOBS), snapshot)
    assert all(job.met == pytest.approx(1.0) for job in plan.jobs)
    assert {flow.ost for job in plan.jobs for flow in job.flows} == set(range(3, 13))


@given(machines(), st.lists(demands(), min_size=1, max_size=3))
def test_a_plan_is_the_same_for_the_same_inputs(snapshot, asked):
    assert planned(jobs_of(*asked), snapshot).to_yaml() == planned(jobs_of(*asked), snapshot).to_yaml()


def test_algorithm_1_but_not_the_mapping_falls_below_the_maximum_with_limited_reach():
    # f0 reaches both storage nodes and takes the only one that f1 reaches.
    snapshot = machine([node(), node()], [[node()], [node(0.1)]], {"f0": ["s0", "s1"], "f1": ["s0"]})
    jobs = jobs_of({"iobw": 1.9, "nodes": 19})
    network = network_of(snapshot, {"iobw"})
    demand = np.array([1.9, 0.0, 0.0])
    assert carried(greedy(network, room_for(network, demand), demand, pack=True)) < 0.9
    for exact in (False, True):
        plan = planned(jobs, snapshot, pack=True, exact=exact)
        assert plan.jobs[0].met == pytest.approx(1.0)
        check_sound(plan, jobs, snapshot)


# --- table III --------------------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [False, True])
def test_table_3_meets_all_demand_and_uses_neither_the_busy_nor_the_abnormal_target(pack):
    jobs, snapshot = Jobs.load(TABLE_3_JOBS), Snapshot.load(TABLE_3_NOW)
    plan = planned(jobs, snapshot, pack=pack)
    check_sound(plan, jobs, snapshot)
    assert plan.is_whole
    assert all(one.met == pytest.approx(1.0) for one in plan.jobs)
    assert not {flow.ost for one in plan.jobs for flow in one.flows} & {1, 2}
    assert all(load.after <= 1 + 1e-9 for layer in plan.layers for load in layer.loads)


def test_five_applications_on_four_forwarding_nodes_share_one_where_jobs_are_packed():
    found = forwarders(planned(Jobs.load(TABLE_3_JOBS), Snapshot.load(TABLE_3_NOW), pack=True))
    assert found == {
        "XCFD": {"fwd1": 512},
        "Macdrp": {"fwd2": 256},
        "Quantum": {"fwd3": 512},
        "WRF": {"fwd4": 256},
        "Grapes": {"fwd4": 512},
    }


def test_metadata_heavy_job_is_split_only_on_a_shared_forwarding_node():
    jobs, snapshot = Jobs.load(TABLE_3_JOBS), Snapshot.load(TABLE_3_NOW)
    spread, packed = planned(jobs, snapshot), planned(jobs, snapshot, pack=True)
    # 12,000 of 15,000 operations; AIOT's algorithm 2 has P the other way round, its text as here.
    assert {one.metadata_share for one in spread.jobs[2].request_split} == {0.8}
    assert [one.name for one in spread.jobs if one.request_split] == ["Quantum"]
    assert packed.jobs[2].request_split == []
    assert ("request split", "it shares no forwarding node") in [
        (one.name, one.reason) for one in packed.jobs[2].kept
    ]
    asked = planned(jobs, snapshot, metadata_share=0.6)
    assert {one.metadata_share for one in asked.jobs[2].request_split} == {0.6}


# --- queues -----------------------------------------------------------------------------------------


def test_lowest_bucket_and_longest_waiting_request_are_served_first():
    loads = [0.3, 0.0, 0.15, 0.2, 0.0]
    snapshot = machine([node(load, 100) for load in loads], [[node(0.0, 1000)]])
    plan = planned(jobs_of(*[{"iobw": 1.0}] * 6), snapshot)
    # {0}: f1 and f4; (0, 20 %]: f2, f3, then those that were used.
    assert [next(iter(one)) for one in forwarders(plan).values()] == ["f1", "f4", "f2", "f3", "f1", "f4"]


def test_job_submitted_later_is_served_later():
    snapshot = machine([node(), node()], [[node(0.0, 10)]])
    plan = planned(jobs_of({"iobw": 0.1, "submit_s": 5.0}, {"iobw": 0.1}), snapshot)
    assert forwarders(plan) == {"a": {"f1": 4}, "b": {"f0": 4}}


def test_sequential_jobs_take_what_earlier_ones_released():
    snapshot = machine([node()], [[node()]])
    plan = planned(jobs_of({"iobw": 0.6}, {"iobw": 0.8}, {"iobw": 0.1}), snapshot)
    assert [one.met for one in plan.jobs] == pytest.approx([1.0, 0.5, 0.0])
    assert [(one.name, one.reason) for one in plan.over_capacity] == [
        ("b", "50 % of its demand is carried: forwarding nodes have room for 50 %")
    ]
    assert [one.name for one in plan.unplaced] == ["c"]
    assert plan.jobs[2].map == []


def test_binding_dimension_decides_and_printed_equation_1_ignores_it():
    narrow = {"iops": 1e9, "mdops": 100.0}
    snapshot = machine([node(0.0, 10, peak=narrow), node(0.0, 10, peak=narrow)], [[node(0.0, 100)]])
    jobs = jobs_of({"iobw": 1.0, "mdops": 150.0})
    plan = planned(jobs, snapshot, pack=True)
    assert (plan.jobs[0].binds, plan.jobs[0].met, plan.is_whole) == (
        "mdops",
        pytest.approx(0.75 + 0.25),
        True,
    )
    assert len(plan.jobs[0].map) == 2
    printed = planned(jobs, snapshot, pack=True, capacity="eq1")
    assert (printed.jobs[0].binds, len(printed.jobs[0].map)) == ("iobw", 1)
    assert [(one.name, one.reason) for one in printed.over_capacity] == [
        ("f0", "150 mdops where 100 are free: equation 1 does not count them")
    ]
    assert "does not depend on data" in printed.notes[0]


def test_printed_equation_1_ignores_a_job_without_bytes():
    plan = planned(jobs_of({"iobw": 0, "mdops": 5.0}), machine([node()], [[node()]]), capacity="eq1")
    assert (plan.jobs[0].met, [one.name for one in plan.no_data]) == (None, ["a"])
    assert "and equation 1 counts only bytes" in plan.no_data[0].reason


def test_the_balance_index_is_the_population_standard_deviation_over_a_half():
    snapshot = machine([node(0.0), node(1.0)], [[node(0.0, 10), node(0.0, 10)]])
    plan = planned(jobs_of({"iobw": 0.5}), snapshot, pack=True)
    assert (plan.before.forwarding, plan.before.ost) == (1.0, 0.0)
    assert plan.after.forwarding == pytest.approx(0.5)
    # 0.05 and 0: a standard deviation of 0.025.
    assert plan.after.ost == pytest.approx(0.05)


# --- one forwarding node for each compute node -----------------------------------------------------------


def test_compute_nodes_are_not_split_if_forwarding_nodes_have_capacity():
    # In shares 0.6 and 0.4 of three nodes: two fit on neither proportionally, but 1 and 2 do.
    snapshot = machine([node(0.4), node(0.0)], [[node(0.0, 10)]])
    plan = planned(jobs_of({"iobw": 1.5, "nodes": 3}), snapshot)
    assert forwarders(plan) == {"a": {"f1": 2, "f0": 1}}
    assert plan.jobs[0].met == pytest.approx(1.0)


def test_loss_from_a_single_forwarding_node_is_stated():
    snapshot = machine([node(), node()], [[node(0.0, 10)]])
    plan = planned(jobs_of({"iobw": 1.6, "nodes": 1}), snapshot, pack=True)
    only = plan.jobs[0]
    assert (only.flow, only.met) == (pytest.approx(1.0), pytest.approx(1 / 1.6))
    assert (
        "no forwarding node has enough room for one of its compute nodes"
        in plan.over_capacity[0].reason
    )


def test_hosts_are_named_or_numbered_if_unknown():
    snapshot = machine([node(), node()], [[node(0.0, 10)]])
    plan = planned(jobs_of({"iobw": 2.0, "nodes": 10, "hosts": "n[08-12],m[1-5]"}), snapshot, pack=True)
    assert [(one.first, one.hosts) for one in plan.jobs[0].map] == [(0, "n[08-12]"), (5, "m[1-5]")]
    plan = planned(jobs_of({"iobw": 2.0, "nodes": 10}), snapshot, pack=True)
    assert [(one.first, one.nodes, one.hosts) for one in plan.jobs[0].map] == [(0, 5, None), (5, 5, None)]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ([{"iobw": 1.0, "hosts": "n[1-3]"}], "job a: its `hosts` are 3, its `nodes` 4"),
        (
            [{"iobw": 1.0, "hosts": "n[1-4]"}, {"iobw": 1.0, "hosts": "n[4-7]"}],
            "host 'n4' is in the jobs 'a' and 'b'",
        ),
    ],
)
def test_too_few_hosts_and_hosts_of_two_jobs_are_refused(asked, said):
    with pytest.raises(InputError, match=said):
        planned(jobs_of(*asked), machine([node()], [[node()]]))


# --- figures that nobody gave --------------------------------------------------------------------------


def test_a_node_without_a_figure_that_others_have_is_not_used():
    for without in (node(None), node(0.0, None)):
        plan = planned(jobs_of({"iobw": 0.5}), machine([without, node(0.7)], [[node(0.0, 10)]]))
        assert forwarders(plan)["a"] == {"f1": 4}
        assert [one.name for one in plan.no_data] == ["f0"]
        assert plan.layers[0].unused == 1


def test_layer_without_figures_uses_all_nodes_with_a_note():
    plan = planned(jobs_of({"iobw": 0.5}), machine([node(None)], [[node(0.0, 10)]]))
    assert (plan.jobs[0].met, plan.before.forwarding) == (pytest.approx(1.0), None)
    assert [one.reason for one in plan.no_data] == [
        "their load is not known: plans use their full peaks"
    ]
    bare = machine([{"load": 0.5}], [[{"load": 0.5}]], storage={0: {"peak": None}})
    plan = planned(jobs_of({"iobw": 5e9}), bare)
    assert plan.jobs[0].met == pytest.approx(1.0)
    assert {one.name for one in plan.no_data} == {"forwarding nodes", "storage nodes", "OSTs"}


def test_peaks_that_no_job_asks_about_are_not_missed():
    snapshot = machine(
        [{"load": 0.0, "peak": {"iobw": 1.0}}], [[node()]], storage={0: {"peak": {"iobw": 1.0}}}
    )
    assert planned(jobs_of({"iobw": 0.5}), snapshot).is_whole
    assert not planned(jobs_of({"iobw": 0.5, "iops": 3.0}), snapshot).is_whole


def test_a_job_without_a_demand_gets_a_forwarding_node_and_no_flow():
    plan = planned(jobs_of({}, {"iobw": 0.5}), machine([node(), node()], [[node()]]), pack=True)
    assert forwarders(plan) == {"a": {"f0": 4}, "b": {"f1": 4}}
    assert (plan.jobs[0].met, plan.jobs[0].flows) == (None, [])
    assert plan.no_data[0].name == "a"
    # An unknown part of a demand is not 0.
    part = planned(jobs_of({"iobw": 0.5, "mdops": None}), machine([node()], [[node()]]))
    assert part.no_data[0].reason == "no mdops: not checked against any peak"


def test_storage_node_without_figures_has_the_load_of_its_targets():
    snapshot = machine([node(0.0, 100)], [[node(0.5), node(0.1)], [node(0.2), node(0.2)]])
    plan = planned(jobs_of({"iobw": 0.2}), snapshot)
    assert {flow.storage for flow in plan.jobs[0].flows} == {"s1"}
    assert plan.layers[1].largest_before == pytest.approx(0.3)


def test_servers_replace_undescribed_storage_nodes():
    target = {"size": 1, "used": 0} | node()
    snapshot = Snapshot.model_validate(
        {
            "forwarding": [{"name": "f0"} | node()],
            "oss": [{"name": "oss0"}, {"name": "oss1"}],
            "ost": [target | {"index": 0, "oss": "oss1"}, target | {"index": 1}],
        }
    )
    plan = planned(jobs_of({"iobw": 0.5}), snapshot)
    assert [(one.storage, one.ost) for one in plan.jobs[0].flows] == [("oss1", 0)] * len(plan.jobs[0].flows)
    assert "OST 1" in {one.name for one in plan.no_data}


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ({"forwarding": []}, "names no forwarding node; add `forwarding`"),
        ({"ost": [], "storage": []}, "names no OST; add `ost`"),
        ({"storage": []}, "names no storage node; add `storage`, or the `oss` of each OST"),
        ({"reach": {"f0": []}}, "reach: no forwarding node reaches a storage node"),
        ({"reach": {}}, "reach: no forwarding node reaches a storage node"),
    ],
)
def test_a_machine_without_a_path_is_refused(missing, said):
    snapshot = machine([node()], [[node()]]).model_copy(update={})
    tree = snapshot.model_dump(by_alias=True) | missing
    with pytest.raises(InputError, match=said):
        planned(jobs_of({"iobw": 0.5}), Snapshot.model_validate(tree))


def test_unreachable_nodes_are_unused_and_jobs_unplaced_if_all_are_abnormal():
    plan = planned(jobs_of({"iobw": 0.5}), machine([node(), node()], [[node()]], {"f0": [], "f1": ["s0"]}))
    assert forwarders(plan)["a"] == {"f1": 4}
    plan = planned(jobs_of({"iobw": 0.5}, {}), machine([node(state="offline")], [[node()]]))
    assert [one.name for one in plan.unplaced] == ["a", "b"]
    plan = planned(jobs_of({"iobw": 0.5}), machine([node(), node()], [[node()]], {"f1": ["s0"]}))
    assert ("f0", "`reach` does not name it: it is not used") in [
        (one.name, one.reason) for one in plan.no_data
    ]


# --- settings -------------------------------------------------------------------------------------------


def setting(plan: PathPlan, name: str) -> str:
    return next(one.reason for one in plan.jobs[0].kept if one.name == name)


def test_prefetch_chunk_follows_equation_2_for_small_reads_and_light_load():
    reads = {"operation": "read", "layout": "file_per_process", "request": 65536}
    asked = {"iobw": 0.1, "processes": 16, "pattern": reads}
    light = machine([node(prefetch_buffer=64 << 20)], [[node()]])
    assert planned(jobs_of(asked), light).jobs[0].prefetch_chunk == (64 << 20) // 16
    larger = planned(jobs_of(asked | {"pattern": reads | {"request": 4 << 20}}), light)
    assert "are not smaller than the chunk" in setting(larger, "prefetch chunk")
    busy = planned(jobs_of(asked | {"iobw": 0.6}), light)
    assert setting(busy, "prefetch chunk") == "its forwarding nodes are loaded to 60 %"
    unknown = planned(jobs_of(asked), machine([node()], [[node()]]))
    assert setting(unknown, "prefetch chunk").startswith("prefetch_buffer of its forwarding nodes")
    writes = planned(jobs_of(asked | {"pattern": reads | {"operation": "write"}}), light)
    assert setting(writes, "prefetch chunk") == "it writes most of its bytes"


def test_stripes_agree_with_the_rule_and_plans_of_osts():
    wide = machine([node(0.0, 1e12) for _ in range(64)], [[node(0.0, 1e9) for _ in range(32)]])
    shared = {"operation": "write", "layout": "shared", "order": "contiguous", "request": 1 << 20}
    asked = {"iobw": 5e9, "nodes": 8, "processes": 64, "bytes": 64 << 30, "pattern": shared}
    # As many targets as LUS002 advises for so many nodes; 1 GiB regions would keep each target busy for long.
    few = planned(jobs_of(asked), wide).jobs[0]
    wanted = stripe_count.neat(math.ceil(stripe_count.PER_NODE * 8), 32)
    assert (few.stripe_count, few.stripe_size) == (wanted, 4 << 20)
    assert few.lines[0] == f"lfs setstripe -c {wanted} -S 4M DIR"
    assert f"striping_factor={wanted} striping_unit=4194304" in few.lines[1]
    # Figure 10 (b): interleaved by 1 MiB.
    strided = planned(jobs_of(asked | {"pattern": shared | {"order": "strided"}}), wide).jobs[0]
    assert strided.stripe_size == 1 << 20
    assert planned(jobs_of(asked | {"nodes": 64}), wide).jobs[0].stripe_count == 32
    own = planned(jobs_of(asked | {"pattern": shared | {"layout": "file_per_process"}}), wide).jobs[0]
    assert (own.stripe_count, own.stripe_size, own.lines) == (1, None, ["lfs setstripe -c 1 DIR"])


def test_all_settings_have_lines_and_small_files_use_an_idle_metadata_target():
    reads = {"operation": "read", "layout": "file_per_process", "request": 65536}
    asked = {"iobw": 0.1, "iops": 1, "mdops": 2e8, "processes": 16, "bytes": 16 * 100_000, "pattern": reads}
    idle = machine([node(prefetch_buffer=64 << 20)], [[node()]])
    idle = idle.model_copy(update={"mds": MetadataServer(cpu=0.2, memory=0.1, free=1 << 40)})
    job = planned(jobs_of(asked, asked), idle, metadata_share=0.8).jobs[0]
    assert (job.dom, job.stripe_count) == (128 << 10, 1)
    assert [line for line in job.lines if not line.startswith("#")] == [
        "lctl set_param mdc.*.max_rpcs_in_flight=32 osc.*.max_rpcs_in_flight=8",
        "lctl set_param llite.*.max_read_ahead_per_file_mb=4",
        "lfs setstripe -E 128K -L mdt -E -1 -c 1 DIR",
    ]
    busy = idle.model_copy(update={"mds": MetadataServer(cpu=0.9, memory=0.1)})
    name = "data on the metadata target"
    assert setting(planned(jobs_of(asked), busy), name) == "the metadata server is busy"
    assert job.lines[-1].startswith("# line of a crontab, against a full metadata target: 17 3 * * * lfs find DIR ")
    for free, why in ((None, "the free space of the metadata target is not known"), (10**9, "has 1 GB left")):
        full = idle.model_copy(update={"mds": MetadataServer(cpu=0.2, free=free)})
        assert setting(planned(jobs_of(asked), full), name).endswith(why)
    unknown = idle.model_copy(update={"mds": None})
    assert setting(planned(jobs_of(asked), unknown), name) == "the load of the metadata server is not known"
    large = planned(jobs_of(asked | {"bytes": 16 << 21}), idle)
    assert setting(large, name).endswith("too large for the metadata target")


def test_profile_of_an_earlier_run_gives_demand_reads_and_the_shared_file():
    from vani.schema.profile import Profile  # noqa: PLC0415

    golden = Path(__file__).resolve().parents[1] / "golden" / "v3-ior-ssf-hdf5-4r.yaml"
    run = Profile.load(golden)
    wide = machine([node(0.0, 1e12)], [[node(0.0, 1e9) for _ in range(8)]])
    plan = planned(jobs_of({}), wide, profiles={"a": run})
    only = plan.jobs[0]
    assert only.met == pytest.approx(1.0)
    assert only.iobw and only.iops and only.mdops
    assert plan.notes == ["iobw and iops and mdops of a: the busiest phase of its profile"]
    assert only.stripe_count is not None


@given(st.integers(1, 40), st.integers(1, 6), st.integers(1, 12))
def test_every_compute_node_gets_exactly_one_forwarding_node(nodes, count, tenths):
    snapshot = machine([node(n / 10) for n in range(count)], [[node(0.0, 10)]])
    jobs = jobs_of({"iobw": tenths / 5, "nodes": nodes})
    check_sound(planned(jobs, snapshot), jobs, snapshot)


# --- the whole machine ------------------------------------------------------------------------------------


def test_the_benchmark_prints_table_3_and_flows_and_finds_none_above_the_maximum(capsys):
    print_table_3()
    print_flows(50)
    shown = capsys.readouterr().out
    assert shown.count("least share of a demand that is met: 1.0000") == 2
    assert shown.count("OST 1 or 2 used: no") == 2
    assert "above the maximum: 0" in shown


@pytest.mark.parametrize("jobs", [1, 80])
@pytest.mark.slow
def test_a_plan_for_all_of_taihulight_takes_seconds(jobs):
    # Measured: 0.1 s for one job of 40,960 nodes, 0.3 s for 80.
    snapshot, asked = (
        tai_hu(FORWARDING, STORAGE, PER_STORAGE),
        jobs_alike([NODES // jobs] * jobs, [3e11 / jobs] * jobs),
    )
    began = time.process_time()
    plan = planned(asked, snapshot)
    assert time.process_time() - began < 5
    assert sum(one.nodes for job in plan.jobs for one in job.map) == NODES
    assert plan.is_whole
    assert len(plan.to_yaml()) < 2_000_000


def test_expected_gain_is_relative_to_a_static_map_in_blocks():
    snapshot = machine([node(), node(), node(state="offline")], [[node(0.0, 10)]])
    # Six nodes of three jobs, two each. The second block has 1.6 where 1 is free, the third has no working
    # node.
    jobs = jobs_of({"iobw": 0.1, "nodes": 2}, {"iobw": 1.6, "nodes": 2}, {"iobw": 0.2, "nodes": 2})
    expected = planned(jobs, snapshot).expected
    assert expected.before == pytest.approx((1 + 1 / 1.6 + 0) / 3)
    assert expected.after == pytest.approx(1.0)
    assert expected.speedup == pytest.approx(3 / (1 + 1 / 1.6))
    assert planned(jobs_of({}), snapshot).expected is None


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(1, 5))
def test_static_map_in_blocks_equals_the_map_by_node(nodes, count):
    snapshot = machine([node(n / 10, 3.0) for n in range(count)], [[node()]])
    jobs = jobs_of(*({"iobw": float(n + 1), "nodes": many} for n, many in enumerate(nodes)))
    block = -(-sum(nodes) // count)
    owner = [n for n, many in enumerate(nodes) for _ in range(many)]
    asked = [0.0] * count
    for place, job in enumerate(owner):
        asked[place // block] += (job + 1) / nodes[job]
    carried = [min(1.0, 3 * (1 - n / 10) / one) if one else 1.0 for n, one in enumerate(asked)]
    shares = [0.0] * len(nodes)
    for place, job in enumerate(owner):
        shares[job] += carried[place // block] / nodes[job]
    assert planned(jobs, snapshot).expected.before == pytest.approx(sum(shares) / len(shares))


@pytest.mark.parametrize("peak", [0.0, 5e-324, 1e-300, 1e-9])
@pytest.mark.parametrize("rate", [5e-324, 1e-300, 1e18])
def test_extreme_figures_of_a_machine_do_not_overflow(peak, rate):
    # Formerly "overflow encountered in multiply", a fault of Vani, for a peak of 1e-300.
    snapshot = machine([node(0.0, peak), node(0.0, 1e18)], [[node(0.0, peak), node(0.0, 1e18)]])
    plan = planned(jobs_of({"iobw": rate}), snapshot)
    assert plan.jobs[0].met == pytest.approx(1.0 if rate < 1 else 1e15 / 1e18, rel=0.01)


def test_unreachable_room_is_not_mentioned_in_the_reason():
    # f0 has room and reaches a full target; f1 is full and reaches an empty one of half the demand.
    snapshot = machine(
        [node(), node(1.0)], [[node(1.0)], [node(0.0, 0.5)]], reach={"f0": ["s0"], "f1": ["s1"]}
    )
    plan = planned(jobs_of({"iobw": 1.0}), snapshot)
    assert plan.unplaced[0].reason == (
        "none of its demand is carried: the storage nodes that forwarding nodes with room reach are full"
    )
