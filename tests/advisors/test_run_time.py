"""The cost of a part of the I/O to the run: neither the sum over processes, nor all active time."""

from __future__ import annotations

import pytest
from builders import file, profile, shared

from vani.advisors.data_files import Group, data_files
from vani.advisors.movers import moved_in
from vani.models.run_time import app_share, files_s, files_share, of_files_s, of_profile_s
from vani.units import MiB


def made(*files, **settings):
    return profile(files, **({"processes": 8, "slowest_s": 50, "busy_s": 60} | settings))


def cost(found, kind="write"):
    return files_s(found.files, found.apps[0], kind)


def test_sequential_files_of_eight_processes_cost_the_time_of_one():
    # 8 s summed, 8 s in which any process is active, 1 s each; of 240 s in total that is 50 / 30 of the mean.
    run = made(*(file(f"/l/{i}", written=MiB, time_s=1, busy_s=1) for i in range(8)))
    assert cost(run) == pytest.approx(8 * 50 / 240)
    assert Group(run.apps[0], "", data_files(run)).wall_s("write") == cost(run)


def test_the_slowest_process_has_at_least_the_mean():
    # The others are busy elsewhere, but those that use the file spend 5 s each.
    run = made(shared(written=MiB, processes=2, time_s=10, busy_s=9), change={"apps[0].io.time_s.total": 1e6})
    assert cost(run) == pytest.approx(5)


def test_time_of_a_private_file_counts_for_its_process():
    assert cost(made(file(written=MiB, time_s=30, busy_s=30))) == 30


def test_no_part_costs_more_than_the_time_processes_spend_in_it():
    assert cost(made(shared(written=MiB, time_s=80, busy_s=2))) == 2


def test_no_part_costs_more_than_the_slowest_process_spends_in_all():
    assert cost(made(file(written=MiB, time_s=55, busy_s=55))) == 50


@pytest.mark.parametrize(
    "unknown", [{"change": {"apps[0].instances": 2}}, {"slowest_s": None}], ids=["several runs", "no balance"]
)
def test_busy_time_counts_if_the_slowest_process_is_unknown(unknown):
    run = made(*(file(f"/l/{i}", written=MiB, time_s=1, busy_s=1) for i in range(8)), **unknown)
    assert cost(run) == 8
    assert app_share(run.apps[0], "write") == files_share(run.files, run) == 1


def test_busy_time_counts_for_an_unknown_process():
    run = made(file(written=MiB, time_s=1, busy_s=1, apps=()))
    assert of_files_s(run.files, run, "write") == 1


def test_reading_and_writing_at_the_same_time_is_not_added_up():
    run = made(shared(written=MiB, read=MiB, time_s=80, busy_s=10))
    items = data_files(run)
    # 5 s each by their shares, and 10 s together; by busy times alone it could be 20 s.
    assert Group(run.apps[0], "", items).data_s() == 10


def test_flush_waits_for_the_written_bytes():
    # 8 processes: 0.5 s each in writes, 4 s each in flushes, one after the other or partly at the same time.
    some = shared(written=MiB, time_s=4, busy_s=5, sync_s=32)
    run = made(some, change={"files[0].io.busy_s.write": 0.5, "apps[0].io.time_s.total": 1e6})
    assert cost(run) == pytest.approx(0.5)
    assert cost(run, "write_synced") == pytest.approx(4.5)
    assert moved_in(run.files[0], reads=False)[1] == pytest.approx(5)
    assert moved_in(run.files[0], reads=True)[1] == 0


def test_second_with_any_process_writing_may_cost_the_run_less():
    run = made(slowest_s=15)
    assert app_share(run.apps[0], "total") == 0.25
    assert of_profile_s(run, "total") == 15


def test_files_of_several_apps_do_not_count_as_time_of_the_first():
    # The first app's slowest process spends 2 s in I/O, and another one does most to the file.
    run = made(shared(written=MiB, time_s=80, busy_s=30, apps=["ior", "other"]), slowest_s=2)
    assert of_files_s(run.files, run, "write") == 30
