"""Phases from the times of files (Tarazu, section 6.3), for logs without calls."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

import vani
from vani.centre.plan.schema.scenario import Scenario
from vani.centre.plan.simulate.jobs import MAX_STRETCHES, jobs_of, phases_of_files
from vani.centre.plan.simulate.simulate import Named, simulate
from vani.errors import VaniError

DATA = Path(__file__).resolve().parents[1] / "data" / "darshan"
LOGS = sorted([*DATA.glob("*.darshan"), *DATA.glob("old/*.darshan.gz")])
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "darshan-logs"


def file(
    first: float,
    last: float,
    read: int = 0,
    written: int = 0,
    *,
    busy: float = 0.0,
    opens: int = 0,
    users: int = 1,
):
    io = SimpleNamespace(
        bytes=SimpleNamespace(read=read, written=written),
        ops=SimpleNamespace(metadata=opens),
        time_s=SimpleNamespace(total=busy),
    )
    return SimpleNamespace(first_s=first, last_s=last, io=io, processes=users)


def test_bytes_and_idle_time_of_files_are_spread_and_added_up():
    files = [file(2, 12, read=100, busy=2.0, opens=10), file(7, 17, written=50, busy=5.0)]
    phases, begin = phases_of_files(files, processes=2)
    assert begin == 2
    rows = [(one.operation, one.bytes, one.files, one.opens, one.compute_s) for one in phases]
    # Each stretch of 5 s contains 1 s of I/O of the first file, 2.5 s of the second, or both at once.
    assert rows == [
        ("read", 50, 1, 5, 4.0),
        ("read", 50, 1, 5, 2.5),
        ("write", 25, 1, 0, 0.0),
        ("write", 25, 1, 0, 2.5),
    ]


def test_time_between_files_is_computing_and_files_without_bytes_are_left_out():
    phases, begin = phases_of_files([file(1, 2, written=8), file(0, 9), file(5, 5, written=4)], processes=1)
    assert begin == 1
    assert [(one.bytes, one.compute_s) for one in phases] == [(8, 1.0), (4, pytest.approx(3.0, abs=1e-5))]
    assert phases_of_files([file(0, 1)], processes=1) == ([], 0.0)


def test_many_files_make_a_bounded_number_of_stretches_and_no_byte_is_lost():
    files = [file(n, n + 1.5, read=1000 + n) for n in range(900)]
    phases, _ = phases_of_files(files, processes=4)
    assert len(phases) <= MAX_STRETCHES
    assert sum(one.bytes for one in phases) == pytest.approx(sum(1000 + n for n in range(900)))


def ended(profile):
    scenario = Scenario.model_validate(
        {
            "machine": {"targets": 4, "target": 1e9, "process": 1e12},
            "workload": [{"name": "run", "profile": "log"}],
        }
    )
    plan = simulate(scenario, Named(profiles={"log": profile}))
    return plan, plan.outcomes[0].jobs


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)
def test_a_log_without_phases_is_played_with_all_its_bytes(log):
    profile = vani.profile(log).model_copy(update={"phases": None})
    plan, jobs = ended(profile)
    assert sum(job.bytes for job in jobs) == pytest.approx(profile.workflow.io.bytes.total, rel=1e-9)
    assert any("spread evenly over the time of each listed file" in left.reason for left in plan.no_data)


def test_unlisted_files_are_reported_as_left_out():
    profile = vani.profile(DATA / "v3-posix-mix-1r.darshan").model_copy(update={"phases": None})
    assert len(profile.files) > 1
    some = profile.model_copy(update={"files": profile.files[:1]})
    scenario = Scenario.model_validate(
        {"machine": {"targets": 1, "target": 1.0}, "workload": [{"name": "run", "profile": "log"}]}
    )
    _, ((name, why),) = jobs_of(scenario, None, {"log": some}, {}, where="test")
    assert name == "run"
    assert why.endswith("are left out")


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="the logs are not beside the repository")
def test_every_log_of_others_that_moved_bytes_of_files_is_played():
    left_out = []
    for log in sorted(SHARED.rglob("*.darshan")):
        try:
            profile = vani.profile(log, files=1000)
        except VaniError:
            continue
        if profile.dataset.io.bytes.total and not ended(profile)[1]:
            left_out.append(log.name)
    assert not left_out
