"""Running jobs compared with their predictions, and with the machine."""

from __future__ import annotations

import json
import time

import pytest
from click.testing import CliRunner

from vani.centre.placement_library.database import store
from vani.centre.placement_library.interactions import Interaction
from vani.centre.plan.job_settings import SharingRules
from vani.centre.plan.running_jobs import plan_running_jobs
from vani.centre.plan.schema.plans import JobPlan
from vani.centre.plan.schema.snapshot import Target
from vani.centre.plan.watch import Moved, Suggestion, Watched, look, moved_so_far, why_slow
from vani.centre.prolog.state import State
from vani.cli.main import commands

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


def traced(site, *paths):
    """A trace of a job that creates these files."""
    lines = [
        f'11 {1790000000 + n}.000000 openat(AT_FDCWD, "{path}", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3<{path}> <0.100000>\n'
        f'11 {1790000000 + n}.200000 write(3<{path}>, "x", 1) = 1 <0.100000>\n'
        for n, path in enumerate(paths)
    ]
    (site / "7.strace").write_text("".join(lines) + "11 1790000100.0 openat(AT_FD")
    return {"traces": str(site / "%j.strace")}


def log(site, hits, misses):
    return traced(site, *FORESEEN[:hits], *(f"/scratch/new.{n}" for n in range(misses)))


def test_job_that_behaves_as_predicted_needs_no_action(site):
    assert looked(site) == []
    assert looked(site, **log(site, 20, 1)) == []


@pytest.mark.parametrize(
    ("misses", "action"), [(2, "predict again"), (7, "predict again"), (8, "retrain"), (10, "retrain"), (11, "start over")]
)
def test_misses_of_a_tenth_of_three_in_a_row_and_of_half_have_their_actions(site, misses, action):
    """Of twenty predicted files, two misses are a tenth, the fourth tenth in a row retrains, eleven are over half."""
    (suggestion,) = looked(site, **log(site, 0, misses))
    assert (suggestion.job, suggestion.action) == ("7", action)
    assert suggestion.why.startswith(f"{misses} of {misses} files were not predicted, 20 were; ")


def test_growing_trace_shows_the_bytes_of_a_running_program(tmp_path):
    lines = [f'11 {1790000000 + n}.000000 write(3</scratch/new>, "x"..., 1048576) = 1048576 <0.500000>\n' for n in range(12)]
    lines.insert(0, '11 1789999999.000000 openat(AT_FDCWD, "/scratch/new", O_WRONLY|O_CREAT, 0666) = 3</scratch/new> <0.100000>\n')
    (tmp_path / "7.strace").write_text("".join(lines) + "11 1790000100.0 write(3")
    assert moved_so_far("7", str(tmp_path / "%j.strace")) == Moved(12 << 20, pytest.approx(6.1))


def test_a_job_below_the_rate_that_its_plan_expects_is_named_once_with_its_slow_osts(site):
    plan = JobPlan.load(site / "state" / "7.yaml")
    layout = {"stripe_count": 1, "before": 1, "source": "unchanged", "files": 1, "osts": [3, 4], "osts_reason": ""}
    layout |= {"stripe_size": None, "database": None, "hints": None}
    plan = JobPlan.model_validate(
        plan.model_dump(by_alias=True)
        | {"io_s": {"seconds": 10, "low": 8, "high": 20, "bytes": 2e9, "before": 10, "method": ""}, "layout": layout}
    )
    osts = [Target(index=n, size=1 << 40, used=0, load=0.95 if n in (3, 9) else 0.2) for n in range(10)]
    before = Watched(Moved(0, 0.0), at_s=1790000040.0)
    assert why_slow(plan, Moved(10**6, 4.0), before, osts) is None, "too few seconds to judge"
    assert why_slow(plan, Moved(10**9, 10.0), before, osts) is None, "100 MB/s are in the range"
    before.at_s = 1790000040.0
    assert why_slow(plan, Moved(2 * 10**9, 30.0), before, osts) == (
        "50 MB/s in 20 s of I/O since 14:14 UTC, 200 MB/s (at least 100 MB/s) expected; OST 3 is 95 % busy"
    )
    assert why_slow(plan, Moved(3 * 10**9, 50.0), before, osts) is None, "no news"
    assert "none of its 2 OSTs is busy" in why_slow(plan, Moved(4 * 10**9, 70.0), before, osts[4:])


def test_failing_io_node_is_replaced_if_requested(site):
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


def test_busy_metadata_server_is_reported_once(site):
    machine(site, "ok", "ok", mds={"cpu": 0.8, "memory": None})
    assert looked(site) == [
        Suggestion(None, "wait", "the metadata server uses 80 % of its processors and an unknown share of its memory: do not allocate OSTs now")
    ]


def test_free_io_nodes_are_for_jobs_that_got_fewer(site):
    state = State(site / "state")
    for number in ("8", "9"):
        state.register({"SLURM_JOB_ID": number, "SLURM_JOB_NODELIST": "n[1-4]", "SLURM_JOB_NUM_NODES": "4"})
        plan_running_jobs(state, rules(site), number, now_s=0.0, say=print)
    assert looked(site) == []
    machine(site, "ok", "ok", "ok")
    (suggestion,) = looked(site)
    assert str(suggestion) == "all jobs: plan again: 1 I/O node without a job, and 1 job with fewer I/O nodes than the policy assigns"


def test_jobs_without_a_plan_are_not_changed(site):
    State(site / "state").register({"SLURM_JOB_ID": "8"})
    (site / "state" / "7.yaml").write_text("{")
    assert looked(site, **log(site, 0, 20)) == []
