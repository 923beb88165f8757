"""`vani plan check` from the view of a user and of a scheduler's script."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from vani.centre import plan_check
from vani.centre.plan.schema.plans import ForwardPlan
from vani.centre.plan.schema.snapshot import Snapshot
from vani.errors import InputError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "plan"
SIX = EXAMPLES / "six-jobs.yaml"
NOW = EXAMPLES / "io-nodes-now.yaml"


@pytest.fixture
def planned(run, desk):
    """Make plan.yaml from jobs.yaml with this number of I/O nodes, 11 of 12 by default."""

    def make(*options: str | int, io_nodes: int = 12) -> Path:
        (desk / "jobs.yaml").write_bytes(SIX.read_bytes())
        done = run("plan", "forward", "jobs.yaml", "--io-nodes", io_nodes, *options, "-o", "plan.yaml")
        assert done.status == 0
        return desk / "plan.yaml"

    return make


def snapshot(desk: Path, *states: str, time: datetime | None = None) -> Path:
    nodes = "\n".join(f"- {{name: fwd{n}, state: {state}}}" for n, state in enumerate(states))
    taken = f"time: {time.isoformat()}\n" if time else ""
    (desk / "now.yaml").write_text(f"schema: vani.snapshot/1\n{taken}forwarding:\n{nodes}\n")
    return desk / "now.yaml"


def test_plan_is_valid_while_the_pool_has_what_it_assigns(run, desk, planned):
    planned()
    snapshot(desk, *["ok"] * 11, "offline")
    done = run("plan", "check", "plan.yaml", "--snapshot", "now.yaml")
    assert (done.status, done.out, done.err) == (0, "Valid: the forward plan fits the snapshot.\n", "")
    snapshot(desk, *["ok"] * 10, "offline", "offline")
    done = run("plan", "check", "plan.yaml", "--snapshot", "now.yaml")
    assert (done.status, done.err) == (1, "")
    assert done.out == (
        "Not valid: pool: 11 I/O nodes are assigned, 10 of 12 can be used; offline: fwd10, fwd11.\n"
    )


def test_unknown_pool_invalidates_a_plan_that_uses_it(run, desk, planned):
    planned()
    (desk / "now.yaml").write_text("schema: vani.snapshot/1\n")
    done = run("plan", "check", "plan.yaml", "--snapshot", "now.yaml")
    assert (done.status, "the snapshot names no forwarding nodes" in done.out) == (1, True)
    planned("--policy", "zero")
    done = run("plan", "check", "plan.yaml", "--snapshot", "now.yaml")
    assert (done.status, done.out.partition(":")[0]) == (0, "Valid")


def test_slow_and_new_io_nodes_are_reported_without_invalidating_the_plan(run, desk, planned):
    planned()
    snapshot(desk, *["ok"] * 12, "degraded")
    done = run("plan", "check", "plan.yaml", "--snapshot", "now.yaml")
    assert done.status == 0
    assert "Note: slower than planned, because degraded: fwd12." in done.out
    assert "Note: the pool has 13 I/O nodes, the plan expects 12." in done.out


def test_replay_is_checked_against_the_pool_too(run, desk, planned):
    planned("--replay", "--nodes", 96)
    assert run("plan", "check", "plan.yaml", "--snapshot", snapshot(desk, *["ok"] * 9)).status == 0
    done = run("plan", "check", "plan.yaml", "--snapshot", snapshot(desk, *["ok"] * 8))
    assert (done.status, "9 I/O nodes are assigned, 8 of 8" in done.out) == (1, True)


def test_plan_with_changed_jobs_is_invalid(run, desk, planned):
    planned()
    snapshot(desk, *["ok"] * 12)
    (desk / "jobs.yaml").write_bytes(SIX.read_bytes() + b"\n")
    done = run("plan", "check", "plan.yaml", "--snapshot", "now.yaml")
    said = "Not valid: jobs.yaml: the jobs document has changed since the plan was made.\n"
    assert (done.status, done.out) == (1, said)
    (desk / "jobs.yaml").unlink()
    done = run("plan", "check", "plan.yaml", "--snapshot", "now.yaml")
    assert done.status == 0
    assert "Not compared:\n  jobs.yaml: the jobs document cannot be read: not compared" in done.out


def test_jobs_are_also_searched_next_to_the_plan(run, desk, planned):
    planned()
    (desk / "there").mkdir()
    for name in ("plan.yaml", "jobs.yaml"):
        (desk / name).rename(desk / "there" / name)
    done = run("plan", "check", "there/plan.yaml", "--snapshot", snapshot(desk, *["ok"] * 12))
    assert (done.status, "Not compared" in done.out) == (0, False)
    (desk / "there" / "jobs.yaml").write_text("other")
    assert run("plan", "check", "there/plan.yaml", "--snapshot", "now.yaml").status == 1


def test_endless_documents_are_not_compared(run, desk, planned):
    planned()
    text = (desk / "plan.yaml").read_text()
    os.mkfifo(desk / "pipe")
    for name in ("/dev/zero", "pipe", "."):
        (desk / "plan.yaml").write_text(text.replace("path: jobs.yaml", f"path: {name}"))
        done = run("plan", "check", "plan.yaml", "--snapshot", snapshot(desk, *["ok"] * 12))
        assert (done.status, "not compared" in done.out) == (0, True)


def test_programs_read_json(run, desk, planned):
    planned()
    done = run("plan", "check", "plan.yaml", "--snapshot", NOW, "-o", "standing.json")
    assert (done.status, done.out) == (1, "")
    found = json.loads((desk / "standing.json").read_text())
    assert (found["schema"], found["holds"], found["kind"]) == ("vani.standing/1", False, "forward")
    assert found["time"] == "2026-01-01T00:00:00Z"
    assert [one["name"] for one in found["broken"]] == ["pool"]
    assert found["plan"]["path"] == "plan.yaml"


def test_too_old_snapshot_is_refused(run, desk, planned):
    planned()
    states = ["ok"] * 12
    now = datetime.now(UTC)
    check = ["plan", "check", "plan.yaml", "--snapshot", "now.yaml", "--max-age"]
    snapshot(desk, *states, time=now - timedelta(minutes=10))
    assert run(*check, 700).status == 0
    done = run(*check, 60)
    assert (done.status, done.out) == (2, "")
    assert done.line.startswith("now.yaml: is 10 min 0 s old, but --max-age allows 60 s; take a new one")
    snapshot(desk, *states, time=now + timedelta(hours=1))
    assert "ahead of this clock" in run(*check, 60).line
    snapshot(desk, *states)
    assert run(*check, 60).line == "now.yaml: contains no time; add `time`, or leave --max-age out"
    for wrong in ("nan", "-1", "inf"):
        assert run(*check, wrong).line.startswith(f"--max-age: is {wrong}; give seconds, 0 or more")


def test_the_time_can_be_given(planned):
    plan, state = ForwardPlan.load(planned()), Snapshot.load(NOW)
    at = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
    assert not plan_check(plan, state, max_age=60, now=at).holds
    with pytest.raises(InputError, match="snapshot: is 61 s old"):
        plan_check(plan, state, max_age=60, now=at + timedelta(seconds=1))
    local = state.model_copy(update={"time": datetime(2026, 1, 1)})  # Without a zone: UTC.
    assert plan_check(plan, local, max_age=60, now=at).time == local.time


def test_inputs_of_a_check_are_not_overwritten(run, desk, planned):
    planned()
    snapshot(desk, *["ok"] * 12)
    for name in ("plan.yaml", "now.yaml", "jobs.yaml"):
        before = (desk / name).read_bytes()
        done = run("plan", "check", "plan.yaml", "--snapshot", "now.yaml", "-o", name)
        assert (done.status, "is an input of this command" in done.line) == (2, True)
        assert (desk / name).read_bytes() == before


@pytest.mark.parametrize(
    ("plan", "state", "said"),
    [
        ("nothing.yaml", str(NOW), "nothing.yaml: no such file"),
        (str(SIX), str(NOW), "schema is 'vani.jobs/1'"),
        ("plan.yaml", "nothing.yaml", "nothing.yaml: no such file"),
        ("plan.yaml", "plan.yaml", "schema is 'vani.plan/1'"),
    ],
)
def test_bad_documents_give_one_line_and_status_2(run, planned, plan, state, said):
    planned()
    done = run("plan", "check", plan, "--snapshot", state)
    assert (done.status, done.out) == (2, "")
    assert said in done.line


def test_plan_kind_without_checks_is_refused(planned, monkeypatch):
    monkeypatch.setattr("vani.centre.plan.check.CHECKS", {})
    with pytest.raises(InputError, match="plans of kind forward need nothing that a snapshot has"):
        plan_check(planned(), NOW)
