"""`vani plan path` from a user's view."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from vani import centre
from vani.centre.plan.schema.plans import PathPlan
from vani.centre.plan.schema.snapshot import Snapshot
from vani.errors import InputError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "plan"
JOBS, NOW = EXAMPLES / "table-3-jobs.yaml", EXAMPLES / "table-3-now.yaml"
GOLDEN = EXAMPLES.parents[1] / "tests" / "golden"


@pytest.fixture
def plan(run):
    return lambda *more: run("plan", "path", JOBS, "--snapshot", NOW, *more)


def test_a_plan_of_paths_is_text_a_document_or_a_map(plan, desk):
    shown = plan("--pack")
    assert (shown.status, shown.err) == (0, "")
    assert shown.out.startswith("Algorithm 1, packed: the demand of 5 of 5 jobs is met.")
    assert "  WRF: comp[1281-1536] -> fwd4" in shown.out
    assert plan("-o", "plan.yaml").status == 0
    assert plan("-o", "plan.json").status == 0
    assert PathPlan.load(desk / "plan.json").to_yaml() == (desk / "plan.yaml").read_text()
    kinds = [(one.kind, one.sha256) for one in PathPlan.load(desk / "plan.yaml").inputs]
    assert kinds == [
        (kind, hashlib.sha256(path.read_bytes()).hexdigest())
        for kind, path in (("jobs", JOBS), ("snapshot", NOW))
    ]


def test_maps_name_each_host_once_with_its_forwarding_node_or_its_number(plan, desk):
    assert plan("--pack", "-o", "nodes.map").status == 0
    by_name = [line.split() for line in (desk / "nodes.map").read_text().splitlines()]
    assert [host for host, _ in by_name] == [f"comp{n}" for n in range(1, 2049)]
    assert by_name[0] == ["comp1", "fwd1"]
    # As GekkoFS documents it: a host name and the ID of an I/O node.
    numbered = [line.split() for line in plan("--pack", "--format", "gekkofwd").out.splitlines()]
    assert numbered == [[host, str(int(name.removeprefix("fwd")) - 1)] for host, name in by_name]


def test_map_without_host_names_is_refused_without_output(run, desk):
    (desk / "jobs.yaml").write_text("schema: vani.jobs/1\njobs: [{name: a, nodes: 2, demand: {iobw: 1.0}}]\n")
    done = run("plan", "path", "jobs.yaml", "--snapshot", NOW, "-o", "nodes.map")
    assert (done.status, done.out, (desk / "nodes.map").exists()) == (2, "", False)
    assert done.line == (
        "job a: its hosts are not known, and a map lists each host; add `hosts` in jobs.yaml, or write the plan with "
        "--format yaml"
    )


def test_omissions_of_a_path_plan_are_in_its_first_line(run, desk):
    (desk / "jobs.yaml").write_text(
        "schema: vani.jobs/1\njobs: [{name: a, nodes: 2, demand: {iobw: 4.0e10, iops: 0, mdops: 0}}, {name: b, nodes: 1}]\n"
    )
    asked = ("plan", "path", "jobs.yaml", "--snapshot", NOW)
    done = run(*asked)
    first, _, rest = done.out.partition("\n")
    assert (done.status, first) == (0, "Incomplete: demand of 1 job not met, figures of 1 part missing.")
    assert "  a: 13 % of its demand is carried: storage nodes and their OSTs have room for 25 %" in rest or (
        "of its demand is carried" in rest
    )
    assert run(*asked, "--strict").status == 1
    assert run(*asked, "--format", "yaml").line == first


def test_a_profile_gives_the_demand_and_is_an_input(run, desk):
    (desk / "p.yaml").write_bytes((GOLDEN / "v3-ior-ssf-hdf5-4r.yaml").read_bytes())
    (desk / "jobs.yaml").write_text("schema: vani.jobs/1\njobs: [{name: ior, nodes: 4, profile: p.yaml}]\n")
    asked = ("plan", "path", "jobs.yaml", "--snapshot", NOW)
    assert run(*asked, "-o", "plan.yaml").status == 0
    found = PathPlan.load(desk / "plan.yaml")
    assert [one.kind for one in found.inputs] == ["jobs", "snapshot", "profile"]
    assert found.jobs[0].iobw > 0
    done = run(*asked, "-o", "p.yaml")
    assert (done.status, "is an input of this command" in done.line) == (2, True)
    (desk / "p.yaml").unlink()
    assert run(*asked).line == "p.yaml: no such file"


def test_the_snapshot_is_not_written_over(run, desk):
    (desk / "now.yaml").write_bytes(NOW.read_bytes())
    done = run("plan", "path", JOBS, "--snapshot", "now.yaml", "-o", "now.yaml")
    assert (done.status, "is an input of this command" in done.line) == (2, True)
    assert (desk / "now.yaml").read_bytes() == NOW.read_bytes()


@pytest.mark.parametrize(
    ("snapshot", "said"),
    [
        ({"ost": "+used"}, "OST 1 uses 40,000,000,000,001 of 40,000,000,000,000 bytes"),
        ({"forwarding": "twin"}, "forwarding node 'fwd1' appears twice"),
        ({"reach": {"fwd9": ["sn1"]}}, "reach names the forwarding node 'fwd9', which is not there"),
        ({"reach": {"fwd1": []}}, "no forwarding node reaches a storage node"),
        ({"forwarding": []}, "names no forwarding node"),
        ({"forwarding": [{"name": "f\nx"}]}, "printable characters without quotes"),
        ({"forwarding": [{"name": "f", "load": float("nan")}]}, "load is"),
        ({"forwarding": [{"name": "f", "peak": {"iobw": -1}}]}, "0 or more"),
        ({"forwarding": [{"name": "f", "peak": {"mdops": float("inf")}}]}, "mdops is"),
    ],
    ids=range(9),
)
def test_bad_snapshots_give_one_line_and_status_2(run, desk, snapshot, said):
    tree = yaml.safe_load(NOW.read_text())
    for key, value in snapshot.items():
        if value == "+used":
            tree["ost"][0]["used"] = tree["ost"][0]["size"] + 1
        elif value == "twin":
            tree["forwarding"].append(dict(tree["forwarding"][0], peak=None))
        else:
            tree[key] = value
    (desk / "now.yaml").write_text(yaml.safe_dump(tree))
    done = run("plan", "path", JOBS, "--snapshot", "now.yaml", "-o", "plan.yaml")
    assert (done.status, done.out, (desk / "plan.yaml").exists()) == (2, "", False)
    assert said in done.line


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        (
            "{name: a, nodes: 2, hosts: 'n[1-'}",
            "jobs.yaml:2: jobs[0].hosts is 'n[1-'; accepted: a list of hosts",
        ),
        (
            "{name: a, nodes: 2, hosts: 'n[1-3]'}",
            "job a: its `hosts` are 3, its `nodes` 2; make the two numbers equal",
        ),
        ("{name: a, nodes: 2, hosts: 'n1,n1'}", "each host once, not 'n1' again"),
        ('{name: a, nodes: 2, hosts: "n1,n\\n2"}', "names of letters, digits, dots and dashes"),
        ("{name: a, nodes: 2, demand: {iobw: .nan}}", "jobs[0].demand.iobw is"),
        ("{name: a, nodes: 2, demand: {iops: -1}}", "0 or more"),
        ("{name: a, nodes: 2, demand: {mdops: .inf}}", "jobs[0].demand.mdops is"),
        ("{name: a, nodes: 0}", "1 or more"),
        ("{name: a, nodes: 1}, {name: a, nodes: 1}", "two jobs are named 'a'"),
        (
            "{name: a, nodes: 1, hosts: x}, {name: b, nodes: 1, hosts: x}",
            "host 'x' is in the jobs 'a' and 'b'",
        ),
    ],
    ids=range(10),
)
def test_bad_jobs_of_paths_give_one_line_and_status_2(run, desk, jobs, said):
    (desk / "jobs.yaml").write_text(f"schema: vani.jobs/1\njobs: [{jobs}]\n")
    done = run("plan", "path", "jobs.yaml", "--snapshot", NOW, "-o", "plan.yaml")
    assert (done.status, done.out, (desk / "plan.yaml").exists()) == (2, "", False)
    assert said in done.line


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--metadata-share", "nan"], "--metadata-share: is nan; give a number, 0 to 1"),
        (["--metadata-share", "2"], "--metadata-share: is 2; give a number, 0 to 1"),
        (["--max-age", "-1"], "--max-age: is -1; give seconds, 0 or more"),
        (["--max-age", "60"], "but --max-age allows 60 s; take a new one"),
        (["--capacity", "eq2"], "--capacity: is eq2; give one of binding, eq1"),
        (["--format", "csv"], "'csv' is not one of"),
    ],
)
def test_bad_options_of_paths_give_one_line_and_status_2(plan, options, said):
    done = plan(*options)
    assert (done.status, done.out) == (2, "")
    assert said in done.line


def test_snapshot_age_is_measured_by_the_clock():
    snapshot = Snapshot.load(NOW)
    taken = datetime(2022, 1, 1, tzinfo=UTC)
    for age in (0, 59, 60, -60):
        assert centre.plan_path(JOBS, snapshot, max_age=60, now=taken + timedelta(seconds=age)).jobs
    with pytest.raises(InputError, match=r"snapshot: is 61 s old, but --max-age allows 60 s"):
        centre.plan_path(JOBS, snapshot, max_age=60, now=taken + timedelta(seconds=61))
    with pytest.raises(InputError, match="is from 61 s ahead of this clock"):
        centre.plan_path(JOBS, snapshot, max_age=60, now=taken - timedelta(seconds=61))
    timeless = snapshot.model_copy(update={"time": None})
    assert centre.plan_path(JOBS, timeless).jobs
    with pytest.raises(InputError, match="contains no time"):
        centre.plan_path(JOBS, timeless, max_age=60)
