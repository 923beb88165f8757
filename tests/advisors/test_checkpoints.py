"""Which phases are checkpoints, and the cost of one."""

from __future__ import annotations

import pytest
from builders import file, profile

from vani.models.checkpoint import checkpoints
from vani.units import MiB


def found(*phases, slowest_s=60.0, **more):
    settings = {"least_bytes": 1.0, "alike": 0.5, "least_count": 2}
    return checkpoints(profile(phases=phases, slowest_s=slowest_s, busy_s=60), **(settings | more))[0]


def phase(start_s, **more):
    return {"start_s": start_s, "end_s": start_s + 2, "written": 10 * MiB, "busy_s": 1.0} | more


def test_interval_and_cost():
    (one,) = found(phase(0), phase(10), phase(30))
    assert (one.count, one.interval_s, one.cost_s, one.share) == (3, 15, 1, pytest.approx(1 / 15))
    assert one.size == 10 * MiB
    assert one.shortest(0.1) == 10


def test_small_writes_between_are_a_part_of_their_cost_and_no_checkpoints():
    (one,) = found(phase(0), phase(5, written=MiB, busy_s=0.5), phase(10))
    assert (one.count, one.interval_s, one.cost_s) == (2, 10, 1.25)


def test_time_outside_the_checkpoints_does_not_count():
    (one,) = found(
        phase(0, written=MiB, busy_s=5.0), phase(10), phase(20), phase(30, written=MiB, busy_s=5.0)
    )
    assert (one.count, one.cost_s) == (2, 1)


def test_flushing_is_a_part_of_their_cost():
    (one,) = found(
        phase(0, busy_s=3.0, time_s=1.0, sync_s=2.0), phase(10, busy_s=3.0, time_s=1.0, sync_s=2.0)
    )
    assert one.cost_s == 3


def test_the_run_waits_for_the_slowest_process_and_not_for_all_of_them_in_turn():
    # In a minute in which any process does I/O, no process does more than 15 s.
    (one,) = found(phase(0), phase(10), phase(30), slowest_s=15)
    assert (one.cost_s, one.share) == (0.25, pytest.approx(0.25 / 15))


def test_each_app_has_its_own_checkpoints():
    made = found(phase(0, app="a"), phase(10, app="a"), phase(0, app="b"), phase(20, app="b"))
    assert [(one.app, one.interval_s) for one in made] == [("a", 10), ("b", 20)]


def test_reading_is_not_part_of_the_checkpoint_cost():
    (one,) = found(phase(0), phase(5, kind="read", written=0, read=MiB, busy_s=3.0), phase(10))
    assert one.cost_s == 1


def test_the_best_interval_is_youngs():
    (one,) = found(phase(0), phase(10), phase(30))
    assert one.best(5_000.0) == pytest.approx(100.0)


def test_file_read_again_is_not_a_checkpoint():
    states = [phase(0), phase(10), phase(20)]

    def judged(read):
        files = [file("/lustre/a", written=30 * MiB, read=read)]
        return checkpoints(profile(files, phases=states), least_bytes=1.0, alike=0.5, least_count=2)

    assert judged(30 * MiB)[0] == []
    assert "rereads its output" in judged(15 * MiB)[1]
    # A restart reads one of several states.
    assert len(judged(10 * MiB)[0]) == 1
