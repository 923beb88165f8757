"""Time proceeds from event to event, and every simulation ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vani.centre.plan.simulate.events import Change, Phase, SimulatedRun, Usage, Workload, run


def shared(
    sizes: list[float], phases: list[Phase], *, count: list[int] | None = None, capacity: float = 1.0
) -> Workload:
    """A one-segment flow for each size, all through resource 0 with one unit per byte."""
    flows = len(sizes)
    return Workload(
        Usage(np.arange(flows + 1), np.zeros(flows, dtype=np.int64), np.ones(flows), np.full(flows, np.inf)),
        np.array(sizes, dtype=float),
        np.ones(flows, dtype=bool),
        np.stack([np.arange(flows), np.arange(1, flows + 1)], axis=1),
        np.array(count or [1] * flows, dtype=np.int64),
        phases,
        1 + max(one.job for one in phases),
        np.array([capacity]),
        np.zeros(1, dtype=np.int64),
        1,
    )


def played(work: Workload, *changes: Change) -> SimulatedRun:
    return run(work, changes)


def test_shorter_flow_ends_first_and_the_longer_gets_all():
    found = played(shared([1.0, 3.0], [Phase(0, range(2))]))
    assert found.flow_end.tolist() == pytest.approx([2.0, 4.0])
    assert (found.events, found.moved.tolist()) == (2, pytest.approx([4.0]))


def test_equal_flows_in_one_row_share_like_separate_rows():
    together = played(shared([1.0, 3.0], [Phase(0, range(2))], count=[3, 1]))
    apart = played(shared([1.0, 1.0, 1.0, 3.0], [Phase(0, range(4))]))
    assert together.flow_end.tolist() == pytest.approx([apart.flow_end[0], apart.flow_end[3]])
    assert together.moved.tolist() == pytest.approx(apart.moved.tolist())


def test_a_phase_begins_after_the_one_before_it_and_its_pause():
    found = played(shared([2.0, 1.0], [Phase(0, range(1)), Phase(0, range(1, 2), after=0, delay=5.0)]))
    assert found.phase_begin.tolist() == pytest.approx([0.0, 7.0])
    assert found.phase_end.tolist() == pytest.approx([2.0, 8.0])


def test_phases_without_flows_end_as_they_begin():
    found = played(
        shared(
            [1.0], [Phase(0, range(0), at=3.0), Phase(0, range(1), after=0), Phase(0, range(1, 1), after=1)]
        )
    )
    assert found.phase_end.tolist() == pytest.approx([3.0, 4.0, 4.0])


def test_resource_that_fails_and_recovers_costs_the_time_between():
    found = played(shared([4.0], [Phase(0, range(1))]), Change(1.0, 0, 0.0), Change(11.0, 0, 1.0))
    assert found.flow_end.tolist() == pytest.approx([14.0])


def test_a_slow_resource_takes_as_much_longer():
    assert played(shared([4.0], [Phase(0, range(1))]), Change(0.0, 0, 0.5)).flow_end[0] == pytest.approx(8.0)


def test_endless_job_is_reported_and_blocks_its_dependants():
    phases = [Phase(0, range(1)), Phase(0, range(1, 2), after=0), Phase(1, range(2, 3), at=100.0)]
    found = played(shared([4.0, 1.0, 1.0], phases), Change(1.0, 0, 0.0))
    assert found.phase_end[0] == np.inf
    assert np.isnan(found.phase_begin[1])
    assert found.phase_end[2] == np.inf
    assert found.moved.tolist() == pytest.approx([1.0, 0.0])


def test_changes_after_the_end_do_not_prolong_the_run():
    assert played(shared([1.0], [Phase(0, range(1))]), Change(1e9, 0, 0.0)).elapsed == pytest.approx(1.0)


sizes = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30)


@given(sizes=sizes, starts=st.data(), speed=st.floats(1.0, 100.0))
@settings(deadline=None)
def test_bytes_are_conserved_and_a_faster_single_bottleneck_never_ends_anything_later(sizes, starts, speed):
    at = [starts.draw(st.floats(0, 100)) for _ in sizes]
    phases = [Phase(0, range(n, n + 1), at=t) for n, t in enumerate(at)]
    slow, fast = run(shared(sizes, phases)), run(shared(sizes, phases, capacity=speed))
    assert slow.moved.sum() == pytest.approx(sum(sizes))
    assert slow.carried.sum() == pytest.approx(sum(sizes))
    assert (fast.flow_end <= slow.flow_end * (1 + 1e-9)).all()


@given(sizes=sizes)
@settings(deadline=None)
def test_twice_of_everything_takes_half_the_time(sizes):
    phases = [Phase(0, range(len(sizes)))]
    assert run(shared(sizes, phases, capacity=2.0)).flow_end * 2 == pytest.approx(run(shared(sizes, phases)).flow_end)


def crowd(flows: int, targets: int, stripes: int) -> Workload:
    """Flows of random length over random targets, and through a node shared by eight of them."""
    random = np.random.default_rng(0)
    on = np.array([random.choice(targets, stripes, replace=False) for _ in range(flows)])
    resource = np.hstack([on, targets + np.arange(flows)[:, None] // 8]).ravel()
    load = np.hstack([np.full((flows, stripes), 1 / stripes), np.full((flows, 1), 0.2)]).ravel()
    members = targets + flows // 8 + 1
    return Workload(
        Usage(np.arange(flows + 1) * (stripes + 1), resource, load, np.full(flows, np.inf)),
        random.uniform(1, 30, flows),
        np.ones(flows, dtype=bool),
        np.stack([np.arange(flows), np.arange(1, flows + 1)], axis=1),
        np.ones(flows, dtype=np.int64),
        [Phase(0, range(flows))],
        1,
        np.ones(members),
        np.zeros(members, dtype=np.int64),
        1,
    )


@pytest.mark.slow
def test_ends_with_a_tolerance_are_within_one_percent_of_exact_ones():
    work = crowd(1000, 3600, 8)
    exact, near = run(work), run(work, tolerance=0.005)
    assert near.events < exact.events / 2
    assert np.abs(near.flow_end / exact.flow_end - 1).max() <= 0.01
    assert near.moved.sum() == pytest.approx(exact.moved.sum())


@pytest.mark.slow
def test_steps_are_bounded_in_number_and_contain_all_bytes():
    work, resources = crowd(1000, 100, 4)
    found = run(work, resources, keep_steps=True)
    assert found.events >= 900
    assert len(found.steps) <= 800
    assert sum(one.moved.sum() for one in found.steps) == pytest.approx(work.amount.sum())
    assert all(a.end == b.begin for a, b in zip(found.steps, found.steps[1:], strict=False))
