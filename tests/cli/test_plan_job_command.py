"""`vani plan job` as run by Slurm's prologs: it ends with 0, whatever happens."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vani.centre.plan.schema.plans import JobPlan

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "plan"
GOLDEN = EXAMPLES.parents[1] / "tests" / "golden"
BUDGET = "30s"
"""Generous, because other tests run at the same time."""


def slurm(number, nodes=4, **more):
    return {
        "SLURM_JOB_ID": str(number), "SLURM_JOB_NAME": "bt", "SLURM_JOB_USER": "ada",
        "SLURM_JOB_NODELIST": f"n[1-{nodes}]", "SLURM_JOB_NUM_NODES": str(nodes),
    } | more  # fmt: skip


@pytest.fixture
def prolog(desk):
    """Run the command in a separate process, with only the environment that Slurm gives."""

    def vani(environment, *options, state="state", pool=("--io-nodes", "4"), budget=BUDGET, **more):
        command = [
            sys.executable,
            "-m",
            "vani",
            "plan",
            "job",
            "--state",
            state,
            "--budget",
            budget,
            *pool,
            *options,
        ]
        paths = {"PYTHONPATH": os.environ["PYTHONPATH"]}
        return subprocess.run(
            [*map(str, command)],
            env=paths | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            **more,
        )

    return vani


def plan_of(number, folder="state"):
    return JobPlan.load(Path(folder) / f"{number}.yaml")


def curve_of(name, nodes=4, **curve):
    rates = [{"io_nodes": int(n[1:]), "bandwidth": rate} for n, rate in curve.items()]
    return json.dumps(
        {
            "schema": "vani.jobs/1",
            "jobs": [{"name": name, "nodes": nodes, "processes": nodes, "curve": rates}],
        }
    )


def test_job_gets_a_plan_a_map_and_variables_for_its_tasks(prolog, desk):
    (desk / "known").mkdir()
    (desk / "known" / "bt.yaml").write_text(curve_of("bt", _0=1e8, _1=2e8, _2=9e8, _4=8e8))
    done = prolog(slurm(7), "--known", "known", "--log", "log")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "vani: job 7: gets 2 of 4 I/O nodes, 1 job running\n"
    plan = plan_of(7)
    assert (plan.access, plan.io_nodes, plan.running) == ("own", ["0", "1"], 1)
    assert plan.allotment is not None
    assert plan.allotment.bandwidth == 9e8
    assert [one.kind for one in plan.inputs] == ["jobs"]
    assert plan.is_whole
    state = desk / "state"
    assert (state / "7.map").read_text() == "n1 0\nn2 0\nn3 1\nn4 1\n"
    assert (state / "7.env").read_text().splitlines() == [
        f"export VANI_PLAN={state}/7.yaml",
        "export VANI_FORWARDING=own",
        "export VANI_IO_NODES=0,1",
        f"export VANI_FORWARDING_MAP={state}/7.map",
        f"export LIBGKFS_FORWARDING_MAP_FILE={state}/7.map",
    ]
    assert (desk / "log").read_text().endswith("Z job 7: gets 2 of 4 I/O nodes, 1 job running\n")


@pytest.mark.slow
def test_the_epilog_frees_for_those_that_run(prolog, desk):
    for number in (1, 2):
        assert prolog(slurm(number), "--no-direct").returncode == 0
    assert len(plan_of(1).io_nodes) == 2
    done = prolog(slurm(2), "--end", "--no-direct")
    assert done.stderr == "vani: job 2: ended; 1 job running, new plans for 1 of the others\n"
    assert len(plan_of(1).io_nodes) == 4
    assert sorted(one.name for one in (desk / "state").iterdir()) == [
        "1.env", "1.map", "1.yaml", "jobs", "lock", "state.json",
    ]  # fmt: skip
    prolog(slurm(1), "--end")
    assert json.loads((desk / "state" / "state.json").read_text())["jobs"] == {}
    assert prolog(slurm(3), "--end").returncode == 0, "a job that nobody registered"


def test_pool_contains_the_working_nodes_of_the_snapshot(prolog, desk):
    nodes = [
        ("bad", "offline", 0.0),
        ("busy", "ok", 0.9),
        ("idle", "ok", 0.1),
        ("slow", "degraded", 0.0),
        ("new", "ok", None),
    ]
    forwarding = [{"name": name, "state": state, "load": load} for name, state, load in nodes]
    (desk / "now.yaml").write_text(json.dumps({"schema": "vani.snapshot/1", "forwarding": forwarding}))
    prolog(slurm(1, nodes=3), "--no-direct", pool=("--snapshot", "now.yaml"))
    assert plan_of(1).io_nodes == ["idle", "busy", "new"]
    assert (desk / "state" / "1.map").read_text() == "n1 2\nn2 1\nn3 4\n"
    assert [one.kind for one in plan_of(1).inputs] == ["snapshot"]


def test_maps_are_numbered_as_the_file_of_hosts_is(prolog, desk):
    (desk / "hosts").write_text(
        "f3 ofi+tcp://10.0.0.3:1\nf1 ofi+tcp://10.0.0.1:1\n\nf2 ofi+tcp://10.0.0.2:1\n"
    )
    prolog(slurm(1, nodes=3), "--no-direct", pool=("--hosts-file", "hosts"))
    assert plan_of(1).io_nodes == ["f3", "f1", "f2"]
    assert (desk / "state" / "1.map").read_text() == "n1 0\nn2 1\nn3 2\n"
    nodes = [{"name": name, "state": "ok"} for name in ("f1", "f9", "f3")]
    (desk / "now.yaml").write_text(json.dumps({"schema": "vani.snapshot/1", "forwarding": nodes}))
    prolog(
        slurm(2, nodes=2),
        "--no-direct",
        state="other",
        pool=("--hosts-file", "hosts", "--snapshot", "now.yaml"),
    )
    assert plan_of(2, "other").io_nodes == ["f1", "f3"]
    assert (desk / "other" / "2.map").read_text() == "n1 1\nn2 0\n"


def test_profile_of_an_earlier_run_gives_the_pattern(prolog, desk):
    (desk / "known" / "ada").mkdir(parents=True)
    (desk / "known" / "bt.yaml").write_text(curve_of("bt", _1=1e8))
    (desk / "known" / "ada" / "bt.yaml").write_bytes((GOLDEN / "v2-cm1like-8r.yaml").read_bytes())
    done = prolog(slurm(1, nodes=8), "--known", "known", "--estimate", "nearest")
    assert "NOT" not in done.stderr
    plan = plan_of(1)
    assert [(one.kind, one.path) for one in plan.inputs] == [("profile", "known/ada/bt.yaml")]
    assert plan.allotment is not None
    assert plan.allotment.source == "estimated"


def test_knowledge_about_other_numbers_of_nodes_is_mentioned(prolog, desk):
    (desk / "known").mkdir()
    (desk / "known" / "bt.yaml").write_text(curve_of("bt", nodes=64, _0=1e8, _3=9e8, _4=5e8))
    prolog(slurm(1), "--known", "known")
    plan = plan_of(1)
    assert len(plan.io_nodes) == 4
    assert plan.no_data[0].reason == "its known figures are from 64 nodes, not 4"


@pytest.mark.parametrize("name", ["../secret", "a\nb", "", "x" * 500, "a'b\"c$(touch x)`y`;|", "\udcff"])
@pytest.mark.slow
def test_names_of_any_kind_are_harmless(prolog, desk, name):
    (desk / "known").mkdir()
    (desk / "secret.yaml").write_text(curve_of("bt", _1=1e8))
    done = prolog(slurm(1, SLURM_JOB_NAME=name), "--known", "known")
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert "gets 4 of 4" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    plan = plan_of(1)
    assert plan.inputs == []
    assert {line.partition("=")[0] for line in (desk / "state" / "1.env").read_text().splitlines()} <= {
        "export VANI_PLAN", "export VANI_FORWARDING", "export VANI_IO_NODES", "export VANI_FORWARDING_MAP",
        "export LIBGKFS_FORWARDING_MAP_FILE",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["schema: vani.jobs/1\n", "{", "\0", "schema: vani.jobs/1\njobs: [{name: bt, nodes: 4, curve: [{io_nodes: 3, bandwidth: 1}]}]\n"],
                         ids=["short", "cut", "bytes", "no legal number"])  # fmt: skip
@pytest.mark.slow
def test_unusable_document_about_a_job_is_reported_in_its_plan(prolog, desk, text):
    (desk / "known").mkdir()
    (desk / "known" / "bt.yaml").write_text(text)
    done = prolog(slurm(1), "--known", "known")
    assert "gets 4 of 4" in done.stderr
    assert plan_of(1).no_data


UNUSABLE = {
    "no environment": ({}, {}, "SLURM_JOB_ID: is not set"),
    "no number": (slurm("x"), {}, "SLURM_JOB_ID: is 'x'"),
    "no folder above": (slurm(1), {"state": "no/such"}, "No such file"),
    "a file, no folder": (slurm(1), {"state": "file"}, "cannot be used"),
    "no pool": (slurm(1), {"pool": ()}, "--io-nodes: is not given"),
    "a pool below 0": (slurm(1), {"pool": ("--io-nodes", "-5")}, "--io-nodes"),
    "no snapshot": (slurm(1), {"pool": ("--snapshot", "none.yaml")}, "none.yaml: no such file"),
    "no hosts": (slurm(1), {"pool": ("--hosts-file", "file")}, "file: names no host"),
    "a floor that is none": (slurm(1), {"pool": ("--io-nodes", "4", "--floor", "nan")}, "--floor"),
    "a ratio that is none": (slurm(1), {"pool": ("--io-nodes", "4", "--nodes-per-io-node", "-1")}, "--nodes-per-io-node"),
    "neither nodes nor hosts": ({"SLURM_JOB_ID": "1"}, {}, "its number of nodes and its"),
}  # fmt: skip


@pytest.mark.parametrize("environment, options, said", UNUSABLE.values(), ids=UNUSABLE)
@pytest.mark.sampled(4)
def test_missing_plan_is_explained_with_status_0(prolog, desk, environment, options, said):
    (desk / "file").write_text("")
    done = prolog(environment, "--log", "log", **options)
    assert (done.returncode, done.stdout) == (0, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert said in (desk / "log").read_text()


def test_strict_prolog_ends_with_2(prolog):
    assert prolog(slurm("x"), "--strict").returncode == 2
    assert prolog(slurm(1), "--nonsense", "--strict").returncode == 2


@pytest.mark.parametrize(
    "wrong", [["--nonsense"], ["--budget", "nan"], ["extra"]],
    ids=" ".join,
)  # fmt: skip
def test_unparsable_command_line_ends_with_0_too(prolog, wrong):
    done = prolog(slurm(1), *wrong)
    assert done.returncode == 0
    assert done.stderr.startswith("vani: ")
    assert done.stderr.endswith("; nothing was planned\n")


@pytest.mark.slow
def test_damaged_state_is_set_aside_and_planned_again(prolog, desk):
    prolog(slurm(1))
    (desk / "state" / "state.json").write_text('{"jobs": {"1": ')
    done = prolog(slurm(2))
    assert done.returncode == 0
    assert "state.json cannot be used and was set aside" in done.stderr
    assert sorted(json.loads((desk / "state" / "state.json").read_text())["jobs"]) == ["1", "2"]


@pytest.mark.parametrize("entry", [7, {"has": {"access": "own"}}])
@pytest.mark.slow
def test_wrongly_recorded_job_is_looked_up_again(prolog, desk, entry):
    prolog(slurm(1))
    place = desk / "state" / "state.json"
    saved = json.loads(place.read_text())
    saved["jobs"]["1"] = saved["jobs"]["1"] | entry if isinstance(entry, dict) else entry
    place.write_text(json.dumps(saved))
    assert "NOT" not in prolog(slurm(2)).stderr
    assert plan_of(1).io_nodes


def test_a_disk_without_room_ends_with_0(prolog, desk):
    prolog(slurm(1))
    before = {one.name: one.read_bytes() for one in (desk / "state").iterdir() if one.is_file()}
    done = prolog(slurm(2), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    assert done.returncode == 0
    assert before == {one.name: one.read_bytes() for one in (desk / "state").iterdir() if one.is_file()}
    assert not list((desk / "state").rglob("*.partial"))


@pytest.mark.slow
def test_lock_that_is_never_released_costs_only_the_budget(prolog, desk):
    prolog(slurm(1))
    code = "import fcntl, sys, time\nf = open('state/lock', 'r+')\nfcntl.lockf(f, fcntl.LOCK_EX)\nprint(flush=True)\ntime.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=desk) as holder:
        try:
            assert holder.stdout is not None
            holder.stdout.readline()
            begin = time.monotonic()
            done = prolog(slurm(2), budget="1.5s")
            took = time.monotonic() - begin
        finally:
            holder.kill()
    assert done.returncode == 0
    assert "NOT PLANNED" in done.stderr
    assert took < 4
    # Nothing is lost: the next one plans for both.
    prolog(slurm(3))
    assert plan_of(2).running == 3


def test_a_document_that_takes_longer_than_the_budget_is_given_up_after_three_times(prolog, desk):
    (desk / "known").mkdir()
    os.mkfifo(desk / "known" / "slow")
    (desk / "known" / "bt.yaml").write_text("")
    for number in (1, 2, 3):
        (desk / "state").mkdir(exist_ok=True)
        place = desk / "state" / "state.json"
        saved = json.loads(place.read_text()) if place.exists() else {}
        place.write_text(json.dumps(saved | {"slow": {"known/bt.yaml": number}}))
    done = prolog(slurm(4), "--known", "known")
    assert "gets 4 of 4" in done.stderr
    assert plan_of(4).no_data[0].reason == "known/bt.yaml exceeds the budget"


@pytest.mark.slow
def test_many_prologs_at_once_lose_no_job(prolog, desk):
    command = [
        sys.executable,
        "-m",
        "vani",
        "plan",
        "job",
        "--state",
        "state",
        "--io-nodes",
        "8",
        "--budget",
        "60s",
    ]
    paths = {"PYTHONPATH": os.environ["PYTHONPATH"]}
    begun = [
        subprocess.Popen(command, env=paths | slurm(number), stderr=subprocess.PIPE, text=True)
        for number in range(1, 13)
    ]
    said = [one.communicate(timeout=120)[1] for one in begun]
    assert {one.returncode for one in begun} == {0}
    assert not [line for line in said if "NOT" in line]
    saved = json.loads((desk / "state" / "state.json").read_text())["jobs"]
    assert sorted(map(int, saved)) == list(range(1, 13))
    held = [name for one in saved.values() for name in one["has"]["io_nodes"]]
    assert len(held) == len(set(held)) <= 8
    for number in range(1, 13):
        assert plan_of(number).job.id == str(number)


@pytest.mark.slow
def test_check_prints_a_line_each_and_ends_with_0_or_2(prolog, desk):
    prolog(slurm(7))
    done = prolog({}, "--check", "--known", "gone")
    assert (done.returncode, done.stderr) == (2, "")
    assert [line[:10].strip() for line in done.stdout.splitlines()] == ["ok", "ok", "ok", "FAULT", "not tried"]
    assert prolog({}, "--check").returncode == 0
    assert prolog({}, "--check", "--no-such-option").returncode == 2
