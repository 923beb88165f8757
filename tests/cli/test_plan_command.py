"""`vani plan forward` from a user's view."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import click
import pytest

from vani.centre.commands import plan as plan_commands
from vani.centre.plan.schema.plans import ForwardPlan, Plan, ReplayPlan

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "plan"
SIX = EXAMPLES / "six-jobs.yaml"
GOLDEN = EXAMPLES.parents[1] / "tests" / "golden"
UNKNOWN = EXAMPLES / "no-curves.yaml"


def test_plan_prints_as_text_and_its_file_has_the_format_of_its_suffix(run, desk):
    shown = run("plan", "forward", SIX, "--io-nodes", 12)
    assert (shown.status, shown.err) == (0, "")
    assert shown.out.startswith(
        "mckp: 11 of 12 I/O nodes for 6 jobs, 6.79 GB/s: 4.60 times as much as static"
    )
    for name in ("plan.yaml", "plan.json"):
        assert run("plan", "forward", SIX, "--io-nodes", 12, "-o", name).status == 0
    assert ForwardPlan.load(desk / "plan.json").to_yaml() == (desk / "plan.yaml").read_text()
    assert json.loads((desk / "plan.json").read_text())["inputs"][0]["kind"] == "jobs"


def test_omissions_are_in_the_first_line_and_strict_ends_with_1(run):
    done = run("plan", "forward", UNKNOWN, "--io-nodes", 12)
    assert (done.status, done.out.partition("\n")[0]) == (
        0,
        "Incomplete: figures of 3 jobs missing or estimated.",
    )
    assert run("plan", "forward", UNKNOWN, "--io-nodes", 12, "--strict").status == 1
    assert run("plan", "forward", SIX, "--io-nodes", 12, "--strict").status == 0
    other = run("plan", "forward", UNKNOWN, "--io-nodes", 12, "--format", "yaml")
    assert (other.status, other.line) == (0, "Incomplete: figures of 3 jobs missing or estimated.")


def test_unknown_bandwidth_is_omitted_from_the_first_line_and_the_value_of_a_node(run, desk):
    (desk / "jobs.yaml").write_text("schema: vani.jobs/1\njobs: [{name: a, nodes: 4}]\n")
    done = run("plan", "forward", "jobs.yaml", "--io-nodes", 4)
    assert done.out.splitlines()[2] == "mckp: 4 of 4 I/O nodes for 1 job; no bandwidth is known."
    assert "0 B/s" not in done.out


def test_current_plan_is_changed_if_that_pays(run):
    assert run("plan", "forward", SIX, "--io-nodes", 12, "--policy", "static", "-o", "now.yaml").status == 0
    free = run("plan", "forward", SIX, "--io-nodes", 12, "--current", "now.yaml")
    assert "times as much as current" in free.out
    assert "1 -> 8" in free.out


def test_the_inputs_are_named_by_their_sha256(run, desk):
    (desk / "jobs.yaml").write_bytes(SIX.read_bytes())
    run("plan", "forward", "jobs.yaml", "--io-nodes", 12, "-o", "plan.yaml")
    only = ForwardPlan.load(desk / "plan.yaml").inputs[0]
    assert (only.path, only.sha256) == ("jobs.yaml", hashlib.sha256(SIX.read_bytes()).hexdigest())


def test_profile_of_an_earlier_run_gives_the_pattern(run, desk):
    (desk / "p.yaml").write_bytes((GOLDEN / "v2-cm1like-8r.yaml").read_bytes())
    (desk / "jobs.yaml").write_text("schema: vani.jobs/1\njobs: [{name: cm1, nodes: 8, profile: p.yaml}]\n")
    assert (
        run(
            "plan", "forward", "jobs.yaml", "--io-nodes", 8, "--estimate", "nearest", "-o", "plan.yaml"
        ).status
        == 0
    )
    plan = ForwardPlan.load(desk / "plan.yaml")
    assert [one.kind for one in plan.inputs] == ["jobs", "profile"]
    assert plan.jobs[0].source == "estimated"
    done = run("plan", "forward", "jobs.yaml", "--io-nodes", 8, "-o", "p.yaml")
    assert (done.status, "is an input of this command" in done.line) == (2, True)
    (desk / "p.yaml").unlink()
    done = run("plan", "forward", "jobs.yaml", "--io-nodes", 8)
    assert (done.status, done.line) == (2, "p.yaml: no such file")


def test_an_input_is_not_written_over(run, desk):
    (desk / "jobs.yaml").write_bytes(SIX.read_bytes())
    done = run("plan", "forward", "jobs.yaml", "--io-nodes", 12, "-o", "jobs.yaml")
    assert (done.status, done.out) == (2, "")
    assert "is an input of this command" in done.line
    assert (desk / "jobs.yaml").read_bytes() == SIX.read_bytes()


def test_a_queue_is_replayed_on_the_nodes_of_the_machine(run, desk):
    shown = run(
        "plan", "forward", SIX, "--io-nodes", 12, "--replay", "--nodes", 96, "--poll", 10, "--compare"
    )
    assert (shown.status, shown.err) == (0, "")
    assert shown.out.startswith(
        "mckp: 6 jobs on 96 nodes with 12 I/O nodes take 9 min 56 s, 8.34 GB/s in sum:"
    )
    assert "zero cannot run this queue: job BT-D" in shown.out
    done = run("plan", "forward", SIX, "--io-nodes", 12, "--replay", "--system", "lassen", "-o", "plan.yaml")
    assert done.status == 0
    plan = ReplayPlan.load(desk / "plan.yaml")
    assert (plan.kind, plan.nodes, plan.poll_s) == ("replay", 795, 0.0)
    assert Plan.load(desk / "plan.yaml") == plan
    refused = run("plan", "forward", SIX, "--io-nodes", 12, "--current", "plan.yaml")
    assert "kind is 'replay'; this takes a plan of kind forward" in refused.line


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "--nodes: is needed to replay a queue; give the number of compute nodes of the machine"),
        (["--system", "generic-lustre"], "--nodes: is not known of generic-lustre"),
        (["--nodes", "0"], "--nodes: is 0; give a whole number, 1 to 10,000,000"),
        (
            ["--nodes", "4"],
            "job a: has 8 nodes, the machine 4: it would never start; give a larger --nodes",
        ),
        (["--nodes", "8", "--poll", "nan"], "--poll: is nan"),
        (["--nodes", "8", "--poll", "1e-9"], "--poll: is 1e-09"),
        (["--nodes", "8", "--current", str(SIX)], "--current cannot be used with --replay"),
        (
            ["--nodes", "8"],
            "job a: has no bytes, so its end is not known; give what it reads and writes",
        ),
        (["--nodes", "8", "--no-direct", "--policy", "zero"], "job a: has no bytes"),
    ],
)
def test_bad_replays_give_one_line_and_status_2(run, desk, options, said):
    (desk / "jobs.yaml").write_text(f"schema: vani.jobs/1\njobs: [{JOB}]\n")
    done = run("plan", "forward", "jobs.yaml", "--io-nodes", 4, "--replay", *options, "-o", "plan.yaml")
    assert (done.status, done.out) == (2, "")
    assert done.line.startswith(said)
    assert not (desk / "plan.yaml").exists()


@pytest.mark.parametrize("option", ["--nodes", "--poll"])
def test_replay_options_are_refused_without_a_replay(run, option):
    done = run("plan", "forward", SIX, "--io-nodes", 12, option, 10)
    assert (done.status, done.out) == (2, "")
    assert done.line.startswith(f"{option} is for --replay; see")


JOB = "{name: a, nodes: 8, curve: [{io_nodes: 1, bandwidth: 1.0}]}"


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ("[]", "jobs is an empty list; accepted: at least 1 entry"),
        (f"[{JOB}, {JOB}]", "two jobs are named 'a'"),
        ("[{name: a, nodes: 0}]", "accepted: 1 or more"),
        ("[{name: a, nodes: .nan}]", "jobs[0].nodes is"),
        ("[{name: a, nodes: 8, bytes: -1}]", "0 or more"),
        ("[{name: a, nodes: 8, bytes: .inf}]", "jobs[0].bytes is"),
        ("[{name: a, nodes: 8, curve: [{io_nodes: 1, bandwidth: .nan}]}]", "bandwidth is"),
        ("[{name: a, nodes: 8, curve: [{io_nodes: 1, bandwidth: 0}]}]", "accepted: 1.0 or more"),
        (
            "[{name: a, nodes: 8, curve: [{io_nodes: 3, bandwidth: 1}]}]",
            "none of the numbers of I/O nodes that it can have",
        ),
        ("[{name: a, nodes: 8, curve: []}]", "at least 1 entry"),
        (
            "[{name: a, nodes: 8, curve: [{io_nodes: 1, bandwidth: 1}, {io_nodes: 1, bandwidth: 2}]}]",
            "two bandwidths for 1 I/O nodes",
        ),
        (
            "[{name: a, nodes: 8, curve: [{io_nodes: 1, bandwidth: 1.0, deviation: 11.0}]}]",
            "job a: its curve has a deviation of 11 B/s for 1 I/O nodes",
        ),
        ("[{name: a, nodes: 8, curve: [{io_nodes: 1, bandwidth: 1, deviation: -.inf}]}]", "deviation is"),
        ("[{name: a, nodes: 8, submit_s: -1}]", "jobs[0].submit_s is -1; accepted: 0.0 or more"),
        ("[{name: a, nodes: 8, processes: 0}]", "jobs[0].processes is 0; accepted: 1 or more"),
        ("[{name: a, nodes: 8, pattern: {layout: shared, request: 1.0e400}}]", "jobs[0].pattern.request is"),
        ("[{name: a, nodes: 8, demand: {iops: .nan}}]", "jobs[0].demand.iops is nan"),
        ('[{name: "a\\nb", nodes: 8}]', "printable characters without quotes"),
        ('[{name: "a\'b", nodes: 8}]', "printable characters without quotes"),
        ("[{name: a, nodes: 8, crve: []}]", "did you mean 'curve'?"),
        ("[" + "{name: a, nodes: 1}, " * 10_001 + "]", "at most 10,000 entries"),
    ],
    ids=range(21),
)
def test_bad_jobs_give_one_line_and_status_2(run, desk, jobs, said):
    (desk / "jobs.yaml").write_text(f"schema: vani.jobs/1\njobs: {jobs}\n")
    done = run("plan", "forward", "jobs.yaml", "--io-nodes", 4)
    assert (done.status, done.out) == (2, "")
    assert said in done.line.replace("10000", "10,000")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--io-nodes", "-1"], "--io-nodes: is -1"),
        (["--io-nodes", "4", "--floor", "nan"], "--floor: is nan"),
        (["--io-nodes", "4", "--floor", "1.5"], "--floor: is 1.5"),
        (["--io-nodes", "4", "--nodes-per-io-node", "0"], "--nodes-per-io-node: is 0"),
        (["--io-nodes", "1", "--no-direct"], "the smallest pool that works has"),
        (["--io-nodes", "4", "--current", str(SIX)], "schema is 'vani.jobs/1'"),
        ([], "Missing option '--io-nodes'"),
    ],
)
def test_bad_options_give_one_line_and_status_2(run, desk, options, said):
    (desk / "jobs.yaml").write_text(
        "schema: vani.jobs/1\njobs: [{name: a, nodes: 8, curve: [{io_nodes: 2, bandwidth: 1.0}]}]\n"
    )
    done = run("plan", "forward", "jobs.yaml", *options)
    assert (done.status, done.out) == (2, "")
    assert said in done.line


MACHINE = """schema: vani.system/2
name: mine
forwarding:
  io_nodes: 12
  curves:
  - {operation: write, layout: file_per_process, request: 1048576, nodes: 8, processes_per_node: 1, points: POINTS}
"""


@pytest.mark.parametrize("figure", [".inf", ".nan", "1.0e+300"])
def test_invalid_curves_of_a_machine_give_one_line_and_status_2(run, desk, figure):
    (desk / "jobs.yaml").write_text(
        "schema: vani.jobs/1\njobs:\n"
        "- {name: a, nodes: 8, processes: 8, pattern: {layout: file_per_process, request: 1048576}}\n"
    )
    plan = ["plan", "forward", "jobs.yaml", "--io-nodes", 4, "--system", "mine.yaml", "-o", "plan.yaml"]
    for point in (f"bandwidth: {figure}", f"bandwidth: 1, deviation: {figure}"):
        (desk / "mine.yaml").write_text(MACHINE.replace("POINTS", f"[{{io_nodes: 1, {point}}}]"))
        done = run(*plan)
        assert (done.status, done.out) == (2, "")
        assert done.line.startswith("mine.yaml:6: forwarding.curves[0].points[0].")
    # Values that scatter extremely have a meaningless range, which is still a number.
    (desk / "mine.yaml").write_text(
        MACHINE.replace("POINTS", "[{io_nodes: 1, bandwidth: 1, deviation: 1e14}]")
    )
    assert run(*plan).status == 0


def test_plan_of_an_unknown_kind_is_refused(run, desk):
    (desk / "odd.yaml").write_text("schema: vani.plan/1\nkind: teleport\n")
    done = run("plan", "forward", SIX, "--io-nodes", 12, "--current", "odd.yaml")
    assert (done.status, done.line) == (
        2,
        "odd.yaml:2: kind is 'teleport'; this takes a plan of kind forward",
    )


def test_commands_of_plans_are_listed_in_order_of_use(run):
    order = [
        "snapshot", "forward", "place", "path", "simulate", "check", "store", "interactions",
    ]  # fmt: skip
    listed = run("plan", "--help").out.partition("Commands:\n")[2]
    assert [line.split()[0] for line in listed.splitlines() if line.startswith("  ")] == order


def test_an_option_about_the_snapshot_has_the_same_words_in_all_commands():

    with click.Context(plan_commands) as context:
        commands = [plan_commands.get_command(context, name) for name in ("place", "path", "check")]
    for name in ("snapshot", "max_age"):
        assert len({option.help for one in commands for option in one.params if option.name == name}) == 1
