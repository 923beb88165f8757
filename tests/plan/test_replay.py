"""A queue of jobs whose I/O nodes are shared again at each change."""

from __future__ import annotations

import heapq
import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.plan_forward import (
    PAPER_NUMBERS,
    PAPER_POSIX_L,
    numbers_of_first_job,
    posix_l_bounds,
    replay_of_queue,
)
from tests.plan.builders import NO_CURVES, jobs_of, numbers, planned, settings_of
from vani.centre.plan.forward import ForwardInputs
from vani.centre.plan.replay import replay
from vani.centre.plan.schema.jobs import Jobs
from vani.centre.plan.schema.plans import ReplayPlan
from vani.errors import InputError
from vani.models.forwarding import measured

NODES = 16


def replayed(
    jobs: Jobs, io_nodes: int = 4, *, nodes: int = NODES, poll_s: float = 0.0, **more: Any
) -> ReplayPlan:
    """A replay with the defaults of the command."""
    compare, estimate = more.pop("compare", False), more.pop("estimate", "near")
    given = ForwardInputs(jobs, settings_of(io_nodes, **more), measured(), estimate=estimate)
    return replay(given, nodes=nodes, poll_s=poll_s, compare=compare)


def queue_of(*jobs: dict[str, Any]) -> Jobs:
    """Jobs a, b, c, ... with bandwidths by number of I/O nodes as `curve`."""
    return Jobs.model_validate(
        {
            "jobs": [
                {"name": name, "nodes": 8, "bytes": 100.0}
                | job
                | {"curve": [{"io_nodes": n, "bandwidth": rate} for n, rate in job["curve"].items()]}
                for name, job in zip("abcdefghij", jobs, strict=False)
            ]
        }
    )


JOB = st.fixed_dictionaries(
    {
        "nodes": st.sampled_from([4, 8, 16]),
        "bytes": st.integers(1, 1000).map(float),
        "submit_s": st.integers(0, 20).map(float),
        "curve": st.fixed_dictionaries(
            {1: st.integers(1, 50)}, optional={n: st.integers(1, 50) for n in (0, 2, 4)}
        ),
    }
)
QUEUES = st.lists(JOB, min_size=1, max_size=7).map(lambda jobs: queue_of(*jobs))
POLLS = st.sampled_from([0.0, 3.0, 10.0])
POLICIES = st.sampled_from(["mckp", "static", "process", "oracle"])


# --- what always holds ----------------------------------------------------------------------------


@given(QUEUES, POLLS, POLICIES)
def test_jobs_begin_in_the_order_of_their_submission_as_soon_as_nodes_are_free(queue, poll_s, policy):
    plan = replayed(queue, poll_s=poll_s, policy=policy)
    wanted = sorted(queue.jobs, key=lambda job: job.submit_s)
    assert [one.name for one in plan.jobs] == [job.name for job in wanted]
    # An independent simulation of the queue with the computed ends.
    clock, free, ends = 0.0, NODES, []
    for one in plan.jobs:
        clock = max(clock, one.submit_s)
        while ends and (ends[0][0] <= clock or free < one.nodes):
            end, nodes = heapq.heappop(ends)
            clock, free = max(clock, end), free + nodes
        free -= one.nodes
        assert (one.start_s, free >= 0) == (clock, True)
        heapq.heappush(ends, (one.end_s, one.nodes))


@given(QUEUES, POLLS, POLICIES)
def test_every_byte_is_moved_once_and_periods_follow_each_other(queue, poll_s, policy):
    for one in replayed(queue, poll_s=poll_s, policy=policy).jobs:
        assert math.fsum(part.bytes for part in one.periods) == pytest.approx(one.bytes)
        moment = one.start_s
        for part in one.periods:
            assert part.start_s == pytest.approx(moment)
            moment += part.seconds
        assert moment == pytest.approx(one.end_s)
        assert one.bandwidth == pytest.approx(one.bytes / (one.end_s - one.start_s))


@given(QUEUES)
def test_running_jobs_always_have_the_plan_of_all_running_jobs(queue):
    plan = replayed(queue)
    moments = sorted({0.0, *(t for one in plan.jobs for t in (one.start_s, one.end_s))})
    by_name = {job.name: job for job in queue.jobs}
    for begin, end in itertools.pairwise(moments):
        if end - begin < 1e-9:
            continue
        middle = (begin + end) / 2
        running = [one for one in plan.jobs if one.start_s < middle < one.end_s]
        if not running:
            continue
        has = {
            one.name: part.io_nodes
            for one in running
            for part in one.periods
            if part.start_s <= middle < part.start_s + part.seconds
        }
        assert sum(has.values()) <= 4
        alone = queue.model_copy(update={"jobs": [by_name[one.name] for one in running]})
        assert has == numbers(planned(alone, 4))
    assert plan.after.late_s == 0


@given(QUEUES, st.sampled_from([3.0, 10.0]))
def test_running_job_changes_its_number_only_at_multiples_of_the_poll(queue, poll_s):
    for one in replayed(queue, poll_s=poll_s).jobs:
        for part in one.periods[1:]:
            assert part.start_s == pytest.approx(round(part.start_s / poll_s) * poll_s)


@given(QUEUES, POLLS)
def test_static_never_gives_a_running_job_another_number(queue, poll_s):
    plan = replayed(queue, poll_s=poll_s, policy="static")
    assert {len(one.periods) for one in plan.jobs} == {1}
    assert plan.after == plan.before


@given(QUEUES, POLLS)
def test_the_same_queue_gives_the_same_bytes(queue, poll_s):
    first, again = (replayed(queue, poll_s=poll_s, compare=True).to_yaml() for _ in range(2))
    assert first == again


# --- what a reader reckons by hand ----------------------------------------------------------------

TWO = ({"curve": {1: 10.0, 2: 20.0, 4: 40.0}}, {"curve": {2: 50.0}, "submit_s": 1.0})


def test_a_change_is_seen_at_the_next_poll():
    # On its own a has 4; b arrives after 1 s and takes 2 of them for 2 s.
    at_once = replayed(queue_of(*TWO)).jobs[0]
    assert [(part.io_nodes, part.seconds) for part in at_once.periods] == [(4, 1.0), (2, 2.0), (4, 0.5)]
    assert at_once.bandwidth == pytest.approx(100 / 3.5)
    late = replayed(queue_of(*TWO), poll_s=2.0)
    assert [(part.io_nodes, part.start_s) for part in late.jobs[0].periods] == [(4, 0.0), (2, 2.0)]
    assert late.after.late_s == 1.0
    assert "for 1 s jobs use more I/O nodes than there are" in late.notes[0]


def test_eq_2_adds_the_bandwidths_of_all_jobs_over_their_own_life():
    plan = replayed(queue_of(*TWO))
    assert plan.after.bandwidth == pytest.approx(100 / 3.5 + 100 / 2)
    assert plan.after.makespan_s == pytest.approx(3.5)
    assert (plan.after.solved, plan.after.changes, plan.after.io_nodes) == (3, 2, 4)


def test_static_has_the_ratio_of_the_machine_not_of_the_jobs_that_run():
    plan = replayed(queue_of({"curve": {1: 1.0, 2: 1.0, 4: 9.0}}), 4, policy="static")
    assert plan.jobs[0].periods[0].io_nodes == 2
    assert plan.forward.nodes_per_io_node == NODES / 4


def test_half_of_a_ratio_that_is_not_a_binary_fraction_is_rounded_up():
    # 25 of 100 nodes, 6 I/O nodes: 1.5.
    queue = queue_of({"nodes": 25, "curve": {1: 1.0, 5: 2.0}})
    static = planned(
        queue_of({"nodes": 50, "curve": {1: 1.0, 2: 1.0}}), 6, policy="static", nodes_per_io_node=100 / 3
    )
    assert numbers(static) == {"a": 2}
    assert replayed(queue, 6, nodes=100, policy="static").jobs[0].periods[0].io_nodes == 1


def test_jobs_share_an_io_node_while_too_few_are_free():
    queue = queue_of({"curve": {1: 10.0}}, {"curve": {1: 10.0}, "bytes": 10.0})
    plan = replayed(queue, 1, direct=False)
    first, second = plan.jobs
    assert second.bandwidth == pytest.approx(5)
    assert [(part.io_nodes, part.shared) for part in first.periods] == [(0, True), (1, False)]
    assert first.end_s == pytest.approx(2 + 90 / 10)
    assert plan.after.io_nodes == 1


def test_shared_io_node_gives_each_job_more_when_another_ends():
    queue = queue_of(*({"curve": {1: 30.0}, "bytes": size} for size in (100.0, 10.0, 20.0)))
    plan = replayed(queue, 1, nodes=24, direct=False)
    assert [round(one.end_s, 6) for one in plan.jobs] == [
        round(5 / 3 + 80 / 30, 6),
        1.0,
        round(1 + 10 / 15, 6),
    ]
    assert [part.bytes for part in plan.jobs[0].periods] == pytest.approx([10, 10, 80])


def test_policies_unable_to_run_a_queue_state_the_reason():
    plan = replayed(queue_of({"curve": {1: 1.0}}), compare=True)
    zero = next(one for one in plan.compared if one.policy == "zero")
    assert (zero.bandwidth, zero.makespan_s) == (None, None)
    assert zero.reason == "job a: zero cannot serve it: no figure for direct access"
    assert [one.policy for one in plan.compared] == [
        "mckp",
        "static",
        "process",
        "zero",
        "one",
        "oracle",
    ]
    with pytest.raises(InputError, match="zero cannot serve it"):
        replayed(queue_of({"curve": {1: 1.0}}), policy="zero")


# --- what the paper prints ------------------------------------------------------------------------


def test_queue_of_section_5_3_matches_the_printed_part():
    found = replay_of_queue()
    assert [one.name for one in found.jobs if one.start_s == 0] == [
        "HACC", "IOR-MPI", "SIM", "IOR-MPI-2", "IOR-MPI-3", "POSIX-S",
    ]  # fmt: skip
    static = replay_of_queue(policy="static", compare=False)
    gives = {one.name: one.periods[0].io_nodes for one in static.jobs}
    assert gives | PAPER_NUMBERS == gives
    assert numbers_of_first_job() == [8, 4]
    least, most = posix_l_bounds()
    assert least < PAPER_POSIX_L[-1] < most
    # With other curves than the paper's.
    assert 1.5 < found.expected.speedup < 2.5
    assert not found.over_capacity


# --- what cannot be replayed ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"nodes": 32}, "job a: has 32 nodes, the machine 16: it would never start; give a larger --nodes"),
        ({"bytes": None}, "job a: has no bytes, so its end is not known"),
        ({"bytes": 0.0}, "job a: has no bytes"),
        ({"bytes": 1e18}, "job a: would not end within 1e"),
        ({"submit_s": 1e18}, "job a: is submitted after 1e"),
    ],
)
def test_a_job_that_never_begins_or_ends_is_refused(change, said):
    with pytest.raises(InputError) as raised:
        replayed(queue_of({"curve": {1: 1.0}} | change))
    assert str(raised.value).startswith(said)


def test_a_job_without_a_bandwidth_is_refused():
    queue = Jobs.load(NO_CURVES)
    queue = queue.model_copy(update={"jobs": [job.model_copy(update={"bytes": 1e9}) for job in queue.jobs]})
    with pytest.raises(InputError, match="job notebook: its run time is not known: no measured curve"):
        replayed(queue, nodes=100)
    known = queue.model_copy(update={"jobs": queue.jobs[:2]})
    plan = replayed(known, nodes=100)
    assert {one.source for one in plan.jobs} == {"estimated"}
    assert len(plan.no_data) == 2


def test_pool_too_small_for_running_jobs_is_refused_with_the_smallest_possible():
    queue = queue_of({"curve": {2: 30.0}}, {"curve": {2: 60.0}, "submit_s": 1.0})
    with pytest.raises(InputError) as raised:
        replayed(queue, 3, direct=False)
    assert "those that run 1 s after the first submission (a, b)" in str(raised.value)
    assert "for these the smallest pool that works has 4" in str(raised.value)
    assert replayed(queue, 4, direct=False).after.io_nodes == 4


def test_jobs_with_one_name_are_refused():
    one = jobs_of(a={1: 1.0})
    with pytest.raises(InputError, match="two jobs are named 'a'"):
        replayed(one.model_copy(update={"jobs": one.jobs * 2}))
