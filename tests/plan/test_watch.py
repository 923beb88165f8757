"""Running jobs held against what was foreseen, and against the machine."""

from __future__ import annotations

import json
import time

import pytest
from click.testing import CliRunner

from vani.api.plan.job import plan_running_jobs
from vani.api.plan.pools import SharingRules
from vani.api.plan.watch import Created, Suggestion, created_files, look
from vani.cli.main import commands
from vani.database.interactions import Interaction, store
from vani.prolog.state import State

FORESEEN = [f"/scratch/out.{n}" for n in range(20)]


@pytest.fixture
def site(tmp_path):
    """A job with two I/O nodes and a database of twenty files."""
    machine(tmp_path, "ok", "ok")
    state = State(tmp_path / "state")
    state.register({"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-4]", "SLURM_JOB_NUM_NODES": "4"})
    plan_running_jobs(state, rules(tmp_path), "7", now_s=0.0, say=print)
    rows = [Interaction(name, 1 << 20, 1, 0, None, 1 << 20, 1, 0, ()) for name in FORESEEN]
    store(rows, str(tmp_path / "state" / "7.sqlite"))
    return tmp_path


def machine(folder, *states, mds=None):
    nodes = [{"name": f"ion{n}", "state": state} for n, state in enumerate(states)]
    now = {"schema": "vani.snapshot/1", "forwarding": nodes} | ({} if mds is None else {"mds": mds})
    (folder / "now.yaml").write_text(json.dumps(now))


def rules(folder):
    return SharingRules(snapshot=folder / "now.yaml", direct=False)


def looked(site, **more):
    state = State(site / "state")
    jobs = state.running(now_s=time.time(), expire_s=1e9, say=print)
    return list(look(state, jobs, rules(site), **more))


def log(site, hits, misses):
    lines = [f"11 placed 1 {name}" for name in FORESEEN[:hits]] + [f"11 unknown /scratch/new.{n}" for n in range(misses)]
    (site / "7.placed").write_text("11 exists /scratch/in\n" + "\n".join(lines) + "\n11 unkn")
    return {"logs": str(site / "%j.placed")}


def test_a_job_that_does_as_foreseen_needs_nothing(site):
    assert looked(site) == []
    assert looked(site, **log(site, 20, 1)) == []


@pytest.mark.parametrize(
    ("misses", "action"), [(2, "predict again"), (7, "predict again"), (8, "retrain"), (10, "retrain"), (11, "start over")]
)
def test_misses_of_a_tenth_of_three_in_a_row_and_of_half_have_their_actions(site, misses, action):
    """Twenty files were foreseen: two misses are a tenth, the fourth tenth in a row is retrained, eleven are over half."""
    (suggestion,) = looked(site, **log(site, 0, misses))
    assert (suggestion.job, suggestion.action) == ("7", action)
    assert suggestion.why.startswith(f"{misses} of {misses} files were not foreseen, 20 were; ")


def test_a_log_is_read_up_to_its_last_whole_line(site):
    log(site, 1, 1)
    assert list(created_files("7", str(site / "%j.placed"), None)) == [
        Created(FORESEEN[0], True), Created("/scratch/new.0", False),
    ]  # fmt: skip
    assert list(created_files("8", str(site / "%j.placed"), None)) == []


def test_a_growing_trace_stands_for_the_log(site):
    lines = [
        f'11 {1790000000 + n}.000000 openat(AT_FDCWD, "/scratch/new.{n}", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3</scratch/new.{n}> <0.100000>\n'
        f'11 {1790000000 + n}.200000 write(3</scratch/new.{n}>, "x", 1) = 1 <0.100000>\n'
        for n in range(12)
    ]
    (site / "7.strace").write_text("".join(lines) + "11 1790000100.0 openat(AT_FD")
    (suggestion,) = looked(site, traces=str(site / "%j.strace"))
    assert suggestion.action == "start over"


def test_an_io_node_that_fails_is_replaced_where_that_is_wanted(site):
    machine(site, "ok", "offline", "ok")
    assert [(one.job, one.action) for one in looked(site)] == [("7", "plan again")]
    command = ["plan", "watch", "--once", "--state", str(site / "state"), "--snapshot", str(site / "now.yaml"), "--no-direct"]
    done = CliRunner().invoke(commands, command)
    assert done.stdout == "job 7: plan again: no longer in service: ion1\n"
    assert " 1\n" in (site / "state" / "7.map").read_text()
    done = CliRunner().invoke(commands, [*command, "--apply"])
    assert "planned again: 1 job running, new plans for 1 of the others\n" in done.stdout
    assert (site / "state" / "7.map").read_text() == "n1 0\nn2 0\nn3 2\nn4 2\n"
    assert CliRunner().invoke(commands, command).stdout == ""


def test_a_busy_metadata_server_is_said_once_for_all(site):
    machine(site, "ok", "ok", mds={"cpu": 0.8, "memory": None})
    assert looked(site) == [
        Suggestion(None, "wait", "the metadata server uses 80 % of its processors and an unknown share of its memory: allot no OSTs now")
    ]


def test_free_io_nodes_are_for_jobs_that_got_fewer(site):
    state = State(site / "state")
    for number in ("8", "9"):
        state.register({"SLURM_JOB_ID": number, "SLURM_JOB_NODELIST": "n[1-4]", "SLURM_JOB_NUM_NODES": "4"})
        plan_running_jobs(state, rules(site), number, now_s=0.0, say=print)
    assert looked(site) == []
    machine(site, "ok", "ok", "ok")
    (suggestion,) = looked(site)
    assert str(suggestion) == "all jobs: plan again: 1 I/O node without a job, and 1 job with fewer than the policy gives"


def test_jobs_without_a_plan_are_left_alone(site):
    State(site / "state").register({"SLURM_JOB_ID": "8"})
    (site / "state" / "7.yaml").write_text("{")
    assert looked(site, **log(site, 0, 20)) == []
