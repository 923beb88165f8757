"""Checking from a compute node what a batch system's hook writes."""

from __future__ import annotations

import json
import socket
from datetime import UTC, datetime, timedelta

import pytest

from vani.centre.plan.job_check import check_node
from vani.centre.plan.job_settings import SharingRules
from vani.centre.plan.running_jobs import plan_running_jobs
from vani.centre.prolog.state import State

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
HOST = socket.gethostname().partition(".")[0]


@pytest.fixture
def site(tmp_path):
    """A state with one job on this host, a snapshot, and a folder of known jobs."""
    snapshot = {"schema": "vani.snapshot/1", "time": "2026-11-27T11:59:00Z", "forwarding": [{"name": "ion0"}]}
    (tmp_path / "now.yaml").write_text(json.dumps(snapshot))
    (tmp_path / "known").mkdir()
    (tmp_path / "known" / "bt.yaml").write_text("")
    script = tmp_path / "task-prolog"
    script.write_text(f'#!/bin/sh\ncat "{tmp_path}/state/$SLURM_JOB_ID.env"\n')
    script.chmod(0o755)
    state = State(tmp_path / "state")
    state.register({"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": HOST, "SLURM_JOB_NUM_NODES": "1"})
    plan_running_jobs(state, SharingRules(snapshot=tmp_path / "now.yaml", direct=False), "7", now_s=0.0, say=print)
    return tmp_path


def checked(site, environment=None, **more):
    rules = SharingRules(**{"snapshot": site / "now.yaml", "known": site / "known"} | more)
    checks = check_node(
        site / "state", rules, environment=environment or {}, max_age_s=300.0, task_prolog=site / "task-prolog", now=NOW
    )
    return {check.name: (check.is_sound, check.line) for check in checks}


def in_job(site):
    lines = (site / "state" / "7.env").read_text().splitlines()
    return {"SLURM_JOB_ID": "7"} | dict(line.removeprefix("export ").split("=", 1) for line in lines)


def test_working_node_has_a_line_per_requirement(site):
    found = checked(site, in_job(site))
    assert [sound for sound, _ in found.values()] == [True] * 7
    assert found["state"][1] == f"{site}/state: 1 job running, 1 plan"
    assert found["I/O nodes"][1] == "1 of 1 I/O node can be assigned"
    assert found["snapshot"][1] == f"{site}/now.yaml: 60 s old"
    assert found["known jobs"][1] == f"{site}/known: 1 document"
    assert found["task-prolog"][1].endswith("prints 5 variables for job 7")
    assert found["this job"][1] == f"7: its map assigns {HOST} to I/O node 0"


def test_requirement_that_cannot_be_tested_is_not_a_fault(site):
    assert checked(site)["this job"] == (None, "this is not a job: run it inside a job, with srun, to check its plan and map")
    State(site / "state").forget("7")
    assert checked(site)["task-prolog"][0] is None


def test_missing_state_is_an_error(site):
    (site / "state").rename(site / "elsewhere")
    assert checked(site)["state"] == (False, f"{site}/state/jobs: No such file or directory")


def test_world_writable_state_is_a_fault(site):
    (site / "state" / "jobs").chmod(0o777)
    sound, line = checked(site)["state is safe"]
    assert (sound, "is writable by everyone" in line) == (False, True)


@pytest.mark.parametrize(
    ("time", "line"),
    [((NOW - timedelta(hours=1)).isoformat(), "but --max-age allows 5 min"), (None, "contains no time of its load; let `vani plan snapshot`")],
)
def test_an_old_snapshot_is_a_fault(site, time, line):
    (site / "now.yaml").write_text(json.dumps({"schema": "vani.snapshot/1", "time": time, "forwarding": [{"name": "ion0"}]}))
    sound, said = checked(site)["snapshot"]
    assert (sound, line in said) == (False, True)


def test_missing_folder_of_known_jobs_is_named(site):
    assert checked(site, known=site / "gone")["known jobs"][1].startswith(f"{site}/gone: no such folder")


def test_a_placement_library_that_no_task_could_load_is_a_fault(site):
    assert checked(site, place_library="lib/x.so")["placement library"][0] is False
    assert checked(site, place_library=str(site / "x.so"))["placement library"] == (
        False, f"{site}/x.so: is not here; install it in the same folder on all nodes"
    )  # fmt: skip
    (site / "x.so").touch()
    assert checked(site, place_library=str(site / "x.so"))["placement library"][0] is True


def test_silent_task_prolog_is_an_error(site):
    (site / "task-prolog").write_text("#!/bin/sh\n")
    assert checked(site)["task-prolog"][0] is False
    (site / "task-prolog").unlink()
    assert checked(site)["task-prolog"][0] is False


def test_tasks_without_their_plan_are_a_fault(site):
    sound, line = checked(site, {"SLURM_JOB_ID": "7"})["this job"]
    assert (sound, line.startswith("environment: VANI_PLAN is not set, not ")) == (False, True)
    (site / "state" / "7.map").write_text("elsewhere 0\n")
    assert f"has no line for {HOST}; " in checked(site, in_job(site))["this job"][1]
    assert f"has no line for {HOST}, which Slurm calls n1; " in checked(site, in_job(site) | {"SLURMD_NODENAME": "n1"})["this job"][1]


@pytest.mark.parametrize("name", ["VANI_PLACE_DB", "LD_PRELOAD", "ROMIO_HINTS"])
def test_library_missing_on_this_node_is_a_fault(site, name):
    here = {"VANI_PLACE_DB": str(site / "now.yaml"), "LD_PRELOAD": f"libm.so.6:{site}/task-prolog"}
    assert checked(site, in_job(site) | here)["this job"][0]
    sound, line = checked(site, in_job(site) | here | {name: f"{site}/gone"})["this job"]
    assert (sound, f"{site}/gone: does not exist here, or cannot be read ({name})" in line) == (False, True)


def test_nothing_is_written(site):
    before = {place: place.stat().st_mtime_ns for place in site.rglob("*")}
    checked(site, in_job(site))
    assert {place: place.stat().st_mtime_ns for place in site.rglob("*")} == before
