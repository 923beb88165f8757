"""The progress of a scenario's jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.plan.builders import SIX_JOBS, planned
from tests.plan.published import mean_error, oprael, read_ratios, table_6
from vani.centre.plan.schema.jobs import Jobs
from vani.centre.plan.schema.plans import SimulatePlan
from vani.centre.plan.schema.scenario import Placement, Scenario, Variant
from vani.centre.plan.schema.snapshot import Snapshot
from vani.centre.plan.simulate.jobs import jobs_of
from vani.centre.plan.simulate.machine import Placer, components_of, machine_of, pieces_of
from vani.centre.plan.simulate.metadata_target import cron_line
from vani.centre.plan.simulate.simulate import Named, play, simulate
from vani.errors import InputError
from vani.schema.profile import Profile
from vani.systems import load_system

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
GB = float(1 << 30)
FAST = 1.0e18
EIGHT = {"process": FAST, "targets": 8, "target": GB}


def scenario(machine: dict[str, Any] = EIGHT, /, *jobs: dict[str, Any], **more: Any) -> Scenario:
    return Scenario.model_validate(
        {"machine": machine, "workload": list(jobs), "placement": {"policy": "round_robin"}} | more
    )


def job(name: str = "a", *phases: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A job whose phases by default write 8 GB to one file on all targets."""
    plain = {"operation": "write", "bytes": 8 * GB, "files": 1, "layout": 8}
    return {"name": name, "phases": [plain | phase for phase in phases or ({},)]} | more


def simulated(asked: Scenario, named: Named | None = None, **more: Any) -> SimulatePlan:
    return simulate(asked, named or Named(), **more)


def ends(plan: SimulatePlan) -> dict[str, float | None]:
    return {one.name: one.end_s for one in plan.outcomes[-1].jobs}


# --- counted by hand ------------------------------------------------------------------------------


def test_a_job_alone_takes_its_bytes_over_the_slowest_stage():
    assert ends(simulated(scenario(EIGHT, job()))) == {"a": pytest.approx(1.0)}
    slow = EIGHT | {"node": 2 * GB}
    plan = simulated(scenario(slow, job()))
    assert ends(plan) == {"a": pytest.approx(4.0)}
    assert plan.outcomes[0].jobs[0].bound == {"node": pytest.approx(1.0)}


def test_serial_stages_add_up():
    slow = EIGHT | {"node": 2 * GB}
    assert ends(simulated(scenario(slow, job(), stages="serial"))) == {"a": pytest.approx(5.0)}


def test_jobs_on_the_same_targets_report_twice_the_time():
    plan = simulated(scenario(EIGHT, job("a"), job("b")), alone=True)
    assert ends(plan) == {"a": pytest.approx(2.0), "b": pytest.approx(2.0)}
    assert [one.slowdown for one in plan.outcomes[0].jobs] == pytest.approx([2.0, 2.0])


def test_many_processes_of_one_job_get_more_than_one_process_of_another():
    plan = simulated(scenario(EIGHT, job("many", processes=3), job("one", {"bytes": 8 * GB / 3})))
    assert ends(plan) == {"many": pytest.approx(4 / 3, rel=1e-3), "one": pytest.approx(4 / 3, rel=1e-3)}


def test_consecutive_pieces_use_one_target_at_a_time():
    in_turn = simulated(scenario(EIGHT, job()))
    contiguous = simulated(scenario(EIGHT, job(), pieces="contiguous"))
    assert (ends(in_turn)["a"], ends(contiguous)["a"]) == (pytest.approx(1.0), pytest.approx(8.0))


def test_reads_and_writes_have_their_own_rates():
    machine = EIGHT | {"target": {"read": 2 * GB, "write": GB}}
    plan = simulated(scenario(machine, job("a", {}, {"operation": "read"})))
    only = plan.outcomes[0].jobs[0]
    assert (only.write, only.read, only.end_s) == (
        pytest.approx(8 * GB),
        pytest.approx(16 * GB),
        pytest.approx(1.5),
    )


def test_opening_files_takes_its_time_on_the_metadata_server():
    machine = EIGHT | {"metadata": 100.0}
    plan = simulated(scenario(machine, job("a", {"opens": 200})))
    assert ends(plan) == {"a": pytest.approx(3.0)}
    assert plan.no_data[-1].name != "metadata"


def test_phases_compute_before_they_move_and_repeat():
    plan = simulated(scenario(EIGHT, job("a", {"compute_s": 9, "repeat": 3}, {"compute_s": 1}, start_s=100)))
    assert ends(plan) == {"a": pytest.approx(132.0)}
    assert plan.outcomes[0].jobs[0].io_s == pytest.approx(4.0)
    assert plan.outcomes[0].jobs[0].bytes == pytest.approx(32 * GB)


def test_background_drains_do_not_count_as_waiting():
    phases = ({"operation": "stage_out", "background": True}, {"compute_s": 5.0, "bytes": 0})
    machine = EIGHT | {"burst_buffer": GB}
    plan = simulated(scenario(machine, job("a", *phases)))
    assert ends(plan) == {"a": pytest.approx(8.0)}


def test_staging_in_reads_the_file_system_and_writes_the_burst_buffers():
    machine = EIGHT | {"target": {"read": GB, "write": 1.0}, "burst_buffer": {"read": 1.0, "write": 2 * GB}}
    assert ends(simulated(scenario(machine, job("a", {"operation": "stage_in"})))) == {
        "a": pytest.approx(4.0)
    }


def test_file_in_the_burst_buffer_does_not_slow_other_jobs():
    machine = EIGHT | {"burst_buffer": 4 * GB}
    near = job("near", {"storage": "burst_buffer"})
    plan = simulated(scenario(machine, near, job("far")))
    assert ends(plan) == {"near": pytest.approx(2.0), "far": pytest.approx(1.0)}


# --- what fails -----------------------------------------------------------------------------------

DEAD = {"kind": "target", "which": [3], "from_s": 0.5}


def test_endless_jobs_are_reported_with_their_stalled_flows():
    plan = simulated(
        scenario(EIGHT, job("a", {}, {}), job("b", {"layout": 1, "bytes": 1.0}), failures=[DEAD])
    )
    (left,) = plan.unplaced
    assert left.name == "a"
    assert "target 3 stands still, and 1 phase waits behind it" in left.reason
    assert plan.outcomes[0].makespan_s is None
    assert plan.outcomes[0].jobs[1].end_s is not None
    assert plan.timeline[-1].end_s == pytest.approx(0.5)


def test_recovered_target_costs_the_time_it_was_away():
    plan = simulated(scenario(EIGHT, job(), failures=[DEAD | {"until_s": 10.0}]))
    assert ends(plan) == {"a": pytest.approx(10.5)}
    assert not plan.unplaced


def test_a_slow_target_slows_every_file_on_it():
    slow = {"kind": "target", "which": [3], "factor": 0.25}
    assert ends(simulated(scenario(EIGHT, job(), failures=[slow]))) == {"a": pytest.approx(4.0)}


def test_offline_targets_of_a_snapshot_get_no_files_and_busy_ones_are_slower():
    snapshot = Snapshot.model_validate(
        {
            "ost": [
                {"index": 4, "size": 10**12, "used": 0, "state": "offline"},
                {"index": 7, "size": 10**12, "used": 0, "load": 0.5},
                {"index": 9, "size": 10**12, "used": 0, "state": "degraded"},
            ]
        }
    )
    machine = {"process": FAST, "snapshot": "now", "target": GB}
    plan = simulated(scenario(machine, job("a", {"layout": 2})), Named(snapshots={"now": snapshot}))
    assert ends(plan) == {"a": pytest.approx(8.0)}
    assert [one.name for one in plan.no_data if one.name.startswith("OST")] == ["OST 9"]


def test_overfull_targets_are_named():
    plan = simulated(scenario(EIGHT | {"target_size": 10**8}, job()))
    assert "8 targets would hold more than fits, this one 10.74 times" in plan.over_capacity[0].reason


# --- where files lie ------------------------------------------------------------------------------

PFL = "-E 128M -c 1 -E 512M -c 3 -E -1 -c 8"


def test_bytes_of_a_composite_file_follow_its_components():
    parts = components_of(PFL, targets=35, count=1, size=1 << 20, where="test")
    found = pieces_of(parts, 1 << 30, 0, 1 << 30, in_turn=True)
    assert [(one.component, one.bytes) for one in found] == [(0, 128 << 20), (1, 384 << 20), (2, 512 << 20)]
    apart = pieces_of(parts, 1 << 30, 0, 1 << 30, in_turn=False)
    assert len(apart) == 1 + 3 + 8
    assert sum(one.bytes for one in apart) == 1 << 30


def test_stripes_are_dealt_in_turn_to_the_byte():
    (part,) = components_of(3, targets=8, count=1, size=10, where="test")
    (piece,) = pieces_of((part,), 100, 5, 47, in_turn=True)
    # Stripes of 10: 5 to 10 on 0, then 10 each on 1, 2, 0, and 7 on 1.
    assert (piece.bytes * piece.share).tolist() == pytest.approx([15, 17, 10])


def placer(policy: str, seed: int = 1, targets: int = 12, servers: int = 3) -> Placer:
    figures = scenario(
        {"targets": targets, "servers": servers, "target": GB, "target_size": 10**12}, job()
    ).machine
    return Placer(machine_of(figures, nodes=1).targets, Placement.model_validate({"policy": policy}), seed)


@pytest.mark.parametrize("policy", ["round_robin", "random_start", "random", "weighted", "lsa", "least_used"])
def test_objects_of_a_component_are_on_distinct_targets(policy):
    parts = components_of(PFL, targets=12, count=1, size=1 << 20, where="test")
    for row in placer(policy).place([(2.0**30, parts)] * 20):
        assert [len(set(one.tolist())) for one in row] == [1, 3, 8]
    first, again = (placer(policy).place([(2.0**30, parts)] * 3) for _ in range(2))
    assert all(
        np.array_equal(*pair) for rows in zip(first, again, strict=True) for pair in zip(*rows, strict=True)
    )


def test_allocator_draws_by_free_space_once_it_differs():
    one = placer("lsa")
    (row,) = one.place([(6e11, components_of(1, targets=12, count=1, size=1 << 20, where="test"))])
    assert one.placed[row[0]] == 6e11
    drawn = [int(one._choose(1)[0]) for _ in range(400)]
    # 4e11 of 1e12 bytes are free there, so it is drawn 0.4 times as often as others.
    assert drawn.count(int(row[0][0])) < 400 / 12 * 0.75


def test_least_used_reaches_the_least_ost_cost_of_equal_files():
    plan = simulated(
        scenario(
            EIGHT, job("a", {"files": 16, "layout": 1}, processes=16), placement={"policy": "least_used"}
        )
    )
    assert plan.outcomes[0].ost_cost == pytest.approx(1.0)
    assert plan.outcomes[0].runs == 1


def test_seeds_give_a_range_and_the_same_seeds_the_same_plan():
    asked = scenario(
        EIGHT,
        job("a", {"files": 16, "layout": 1}, processes=16),
        placement={"policy": "random"},
        seeds=[1, 2, 3, 4, 5],
        variants=[{"name": "drawn"}, {"name": "balanced", "placement": {"policy": "least_used"}}],
    )
    plan = simulated(asked)
    drawn = plan.outcomes[0]
    assert (drawn.runs, drawn.low_s < drawn.high_s) == (5, True)
    assert drawn.low_s <= drawn.makespan_s <= drawn.high_s
    assert plan.expected.low < plan.expected.speedup < plan.expected.high
    assert simulated(asked).to_yaml() == plan.to_yaml()


def test_phases_naming_one_set_read_from_where_they_wrote():
    asked = scenario(EIGHT, job("a", {"layout": 1}, {"operation": "read", "layout": 1}))
    (built, _), = play(asked, Variant(name="x"), Named()).runs  # fmt: skip
    assert np.count_nonzero(built.placer.placed) == 1


# --- plans that are followed ----------------------------------------------------------------------


def test_a_forward_plan_gives_jobs_their_io_nodes_and_measured_rates():
    jobs = Jobs.load(SIX_JOBS)
    asked = scenario({"process": FAST, "io_nodes": 12, "targets": 1, "target": 1e15}, plans=["p"], jobs="j")
    plan = simulated(asked, Named(plans={"p": planned(jobs, 12)}, jobs=jobs))
    rates = {one.name: one.write for one in plan.outcomes[0].jobs}
    assert rates["IOR-MPI"] == pytest.approx(5089.9e6)
    assert rates["BT-C"] == pytest.approx(195.7e6)
    assert plan.outcomes[0].plans == ["forward"]


def test_nodes_are_distributed_over_planned_io_nodes_and_direct_jobs_use_none():
    curve = [{"io_nodes": 0, "bandwidth": 1e6}, {"io_nodes": 2, "bandwidth": 1e12}]
    jobs = Jobs.model_validate({"jobs": [{"name": "a", "nodes": 2, "bytes": 8 * GB, "curve": curve}]})
    asked = scenario(
        {"process": FAST, "io_nodes": 4, "io_node": GB, "targets": 1, "target": 1e15}, plans=["p"], jobs="j"
    )
    two = simulated(asked, Named(plans={"p": planned(jobs, 4)}, jobs=jobs))
    assert ends(two) == {"a": pytest.approx(4.0)}
    stages = {one.kind: one for one in two.outcomes[0].by_stage}
    assert (stages["io_node"].used, stages["io_node"].members) == (2, 4)
    none = simulated(asked, Named(plans={"p": planned(jobs, 4, policy="zero")}, jobs=jobs))
    assert "io_node" not in {one.kind for one in none.outcomes[0].by_stage}


def test_plan_for_more_io_nodes_than_exist_is_refused():
    jobs = Jobs.load(SIX_JOBS)
    asked = scenario({"io_nodes": 3, "targets": 1, "target": GB}, plans=["p"], jobs="j")
    with pytest.raises(InputError, match="assigns 11 I/O nodes, the machine has 3"):
        simulated(asked, Named(plans={"p": planned(jobs, 12)}, jobs=jobs))


def test_two_plans_of_the_same_kind_are_refused():
    jobs = Jobs.load(SIX_JOBS)
    plan = planned(jobs, 12)
    asked = scenario({"io_nodes": 12, "targets": 1, "target": GB}, plans=["p", "q"], jobs="j")
    with pytest.raises(InputError, match="two plans are of kind forward"):
        simulated(asked, Named(plans={"p": plan, "q": plan}, jobs=jobs))


# --- jobs, profiles -------------------------------------------------------------------------------


def test_individually_known_files_are_moved_by_their_ranks():
    jobs = Jobs.model_validate(
        {
            "jobs": [
                {
                    "name": "a",
                    "nodes": 1,
                    "processes": 2,
                    "creations": [
                        {"path": "/l/a", "size": 4 << 30, "rank": 0, "layout": 4},
                        {"path": "/l/b", "size": 1 << 30, "rank": 1, "layout": 1},
                    ],
                },
                {"name": "idle", "nodes": 1},
            ]
        }
    )
    plan = simulated(scenario(EIGHT, jobs="j"), Named(jobs=jobs))
    assert ends(plan) == {"a": pytest.approx(1.0)}
    assert [one.name for one in plan.no_data if one.name == "idle"] == ["idle"]


def test_a_profile_is_played_at_the_distances_that_its_phases_had():
    profile = Profile.load(GOLDEN / "v2-cm1like-8r.yaml")
    asked = scenario({"targets": 8, "target": 1e15}, {"name": "cm1", "profile": "p"})
    found, lacks = jobs_of(asked, None, {"p": profile}, {}, where="test")
    assert not lacks
    assert sum(phase.bytes * phase.repeat for phase in found[0].phases) == profile.workflow.io.bytes.total
    plan = simulated(asked, Named(profiles={"p": profile}))
    assert ends(plan)["cm1"] == pytest.approx(profile.workflow.runtime_s, rel=0.03)


# --- bounds and measurements ----------------------------------------------------------------------


def test_twice_of_every_rate_takes_half_the_time():
    jobs = (job("a", {"layout": 2, "files": 4}, processes=4, nodes=2), job("b", {"layout": 3}))
    slow, fast = (
        ends(simulated(scenario({"process": FAST, "targets": 8, "target": rate, "node": 3 * rate}, *jobs)))
        for rate in (GB, 2 * GB)
    )
    assert fast == {name: pytest.approx(end / 2) for name, end in slow.items()}


def test_growing_a_single_bottleneck_delays_no_job():
    jobs = (job("a", start_s=0.3), job("b"))
    before, after = (ends(simulated(scenario(EIGHT | {"target": rate}, *jobs))) for rate in (GB, 2 * GB))
    assert all(after[name] < before[name] for name in before)


@pytest.mark.slow
@pytest.mark.parametrize("stages", ["serial", "overlapped"])
def test_table_6_is_met_better_than_by_the_papers_simulator(stages):
    points = table_6(load_system("titan"), stages=stages, seeds=2, most_nodes=1024)
    assert len(points) == 5
    assert mean_error(points) <= 0.066


@pytest.mark.slow
@pytest.mark.parametrize("stages", ["serial", "overlapped"])
def test_all_of_table_6_is_met_better_than_by_the_papers_simulator(stages):
    points = table_6(load_system("titan"), stages=stages)
    assert mean_error(points, other=True) == pytest.approx(0.066, abs=5e-4)
    assert mean_error(points) <= 0.066


def test_equal_processes_of_a_node_are_one_row():
    asked = scenario(EIGHT, job("a", {"bytes": 1000 * 8 * GB}, processes=1000))
    built, found = play(asked, Variant(name="x"), Named()).runs[0]
    assert (len(built.work.count), found.events) == (1, 1)
    assert found.elapsed == pytest.approx(1000.0)


def test_million_flows_are_refused_before_they_are_built():
    with pytest.raises(InputError, match="more than 200,000 flows"):
        simulated(scenario(EIGHT, job("a", {"repeat": 1000}, nodes=1000)))


@pytest.mark.slow
@pytest.mark.parametrize("pieces", ["in_turn", "contiguous"])
def test_papers_read_ratio_is_within_the_range_over_seeds(pieces):
    ratios = read_ratios(load_system("tarazu-testbed"), pieces=pieces, policy="random_start")
    assert ratios.read.min() <= 612 / 428 <= ratios.read.max()


def test_continued_round_robin_leaves_nothing_to_gain():
    ratios = read_ratios(load_system("tarazu-testbed"), pieces="in_turn", policy="round_robin", seeds=(1,))
    assert ratios.read.max() == pytest.approx(1.0, abs=0.01)


def test_opraels_stripe_sweep_is_met_within_eight_percent():
    assert mean_error(oprael(load_system("tianhe-prototype"))) <= 0.08


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "more", "what"),
    [
        (EIGHT | {"target": 0}, {}, "machine.target is 0: nothing would move"),
        (EIGHT | {"target": {"read": 1.0, "write": 0}}, {}, "writes 0 bytes per second"),
        ({"targets": 8}, {}, "nothing on the way of 'a' has a rate"),
        ({"node": GB}, {}, "the machine has no targets"),
        (EIGHT, {"failures": [{"kind": "target", "which": [8]}]}, "target 8 fails, but there are 8"),
        (EIGHT, {"failures": [{"kind": "server", "which": [0]}]}, "the machine has none with a rate"),
        (EIGHT | {"nodes": 1}, {"workload": [job(nodes=2)]}, "the jobs have 2 nodes, the machine 1"),
        (EIGHT, {"workload": [job(processes=1_000_000)]}, "more than 200,000 flows"),
        (EIGHT, {"workload": [job("a", {"layout": "-E 1G -c"})]}, "not options of a composite layout"),
        (EIGHT, {"workload": [job("a", {"operation": "stage_in"})]}, "burst buffer without a known rate"),
        (EIGHT, {"workload": [job(), job()]}, "two jobs are named 'a'"),
        (EIGHT, {"workload": []}, "no job runs"),
        (EIGHT, {"workload": [{"name": "a"}]}, "job 'a' has nothing to do"),
        (EIGHT, {"failures": [DEAD | {"until_s": 0.1}]}, "ends at 0.1 s and begins at 0.5 s"),
    ],
)  # fmt: skip
def test_impossible_scenarios_are_refused_in_one_line(machine, more, what):
    with pytest.raises(InputError, match=what):
        simulated(scenario(machine, job(), **more))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"machine": EIGHT | {"targets": 3600}, "workload": [job("a", {"layout": 3600, "bytes": 1e14}, nodes=10_000)]}, "resources more than"),
        ({"workload": [job(nodes=10_000)], "placement": {"policy": "random"}, "seeds": list(range(900))}, "over all seeds"),
    ],
    ids=["wide stripes of many processes", "many seeds"],
)  # fmt: skip
def test_grammar_too_large_for_memory_is_refused_during_expansion(more, what):
    asked = Scenario.model_validate(scenario(EIGHT, job()).model_dump(by_alias=True) | more)
    with pytest.raises(InputError, match=what):
        simulated(asked)


SMALL_FILES = {"operation": "write", "bytes": 640e6, "files": 6400, "compute_s": 100.0}


def on_mdt(phases, *, free=2_000_000_000, **policy):
    document = {
        "machine": {"node": 6e9, "targets": 12, "target": 0.8e9, "metadata_free": free},
        "workload": [{"name": "small", "nodes": 4, "processes": 64, "phases": phases}],
        "placement": {"policy": "least_used"},
        "variants": [{"name": "mdt", "data_on_mdt": {"below": 131072, "expires_s": 1000.0, **policy}}],
    }
    return simulate(Scenario.model_validate(document), Named())


def test_small_files_start_on_the_metadata_target_and_expire_there():
    plan = on_mdt([SMALL_FILES])
    assert plan.outcomes[0].ost_cost is None  # no byte is on an OST
    assert "mdt: on the metadata target: 640 MB at most; 640 MB expired after 16 min 40 s" in plan.notes[1]


def test_files_move_to_osts_before_a_use_that_comes_after_their_expiry():
    plan = on_mdt([SMALL_FILES, SMALL_FILES | {"operation": "read", "compute_s": 5000.0}])
    assert [job.name for job in plan.outcomes[0].jobs] == ["small", "moves to OSTs"]
    assert plan.outcomes[0].jobs[1].bytes == 640e6


def test_files_used_least_recently_move_where_others_need_the_room():
    sets = [SMALL_FILES | {"file_set": name} for name in ("a", "b")]
    plan = on_mdt(sets, pressure=0.4)
    assert "640 MB moved to make room" in plan.notes[1]
    assert "0 B moved to make room" in on_mdt(sets, pressure=0.9).notes[1]


def test_files_for_which_there_is_no_room_start_on_osts():
    plan = on_mdt([SMALL_FILES], free=1_000_000_000)
    assert "640 MB found no room" in plan.notes[1]
    assert plan.outcomes[0].ost_cost is not None


def test_larger_files_and_those_with_a_layout_of_their_own_do_not_start_there():
    own = [SMALL_FILES | {"files": 64}, SMALL_FILES | {"layout": "-E 1M -c 1 -E -1 -c 4", "file_set": "b"}]
    assert "0 B at most" in on_mdt(own).notes[1]


def test_unknown_free_space_of_the_metadata_target_is_refused():
    with pytest.raises(InputError, match="the free space of the metadata target is not known"):
        on_mdt([SMALL_FILES], free=None)


def test_line_of_the_crontab_quotes_the_folder_and_escapes_percent_signs():
    line = cron_line("/lustre/50% a", 90_000)
    assert line.startswith(r"17 3 * * * lfs find '/lustre/50\% a' -type f -L mdt -A +2 ")
    assert cron_line("/lustre/a\nb", 1).startswith("17 3 * * * lfs find DIR -type f -L mdt -A +1 ")
