"""`vani plan simulate` from a user's view."""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from pathlib import Path

import pytest

from vani.centre.plan.schema.plans import SimulatePlan

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "plan"
TWO = EXAMPLES / "two-jobs.yaml"
FAILED = EXAMPLES / "failed-target.yaml"
TRACE = ROOT / "tests" / "data" / "traces" / "v2-posix-mix-nonmpi"

HEAD = "schema: vani.scenario/1\n"
MACHINE = "machine: {targets: 2, target: 1.0e+9}\n"
JOB = "workload: [{name: a, phases: [{operation: write, bytes: 1.0e+9}]}]\n"


@pytest.mark.slow
def test_variants_are_side_by_side_and_the_suffix_selects_the_format(run, desk):
    shown = run("plan", "simulate", TWO)
    assert (shown.status, shown.err) == (0, "")
    assert shown.out.startswith("balanced: 2 jobs end after")
    for name in ("plan.yaml", "plan.json"):
        assert run("plan", "simulate", TWO, "-o", name).status == 0
    plan = SimulatePlan.load(desk / "plan.json")
    assert plan.to_yaml() == (desk / "plan.yaml").read_text()
    assert [one.name for one in plan.outcomes] == ["as-it-is", "balanced"]
    assert plan.expected.low <= plan.expected.speedup <= plan.expected.high
    assert plan.inputs[0].kind == "scenario"


def test_flows_that_never_end_are_reported_and_strict_ends_with_1(run):
    done = run("plan", "simulate", FAILED)
    assert done.status == 0
    assert done.out.startswith("Incomplete: 1 job never ends")
    assert "target 3 stands still" in done.out
    assert run("plan", "simulate", FAILED, "--strict").status == 1


def test_plans_of_other_commands_are_followed(run, desk):
    for name in ("six-jobs.yaml", "follow-forward.yaml"):
        shutil.copy(EXAMPLES / name, desk)
    for policy in ("static", "mckp"):
        run("plan", "forward", "six-jobs.yaml", "--io-nodes", 12, "--policy", policy, "-o", f"{policy}.yaml")
    done = run("plan", "simulate", "follow-forward.yaml", "-o", "out.yaml")
    assert done.status == 0
    plan = SimulatePlan.load(desk / "out.yaml")
    assert plan.expected.speedup == pytest.approx(1.65, abs=0.01)
    assert [one.kind for one in plan.inputs] == ["scenario", "plan", "plan", "jobs"]


def test_layout_files_of_jobs_are_inputs_with_their_own_digests(run, desk):
    (desk / "wide.ini").write_text("[Client]\nBuckets = 1\n[Bucket_1]\nExtent = -1\nStripe = 2\n")
    creations = "[{path: /f, size: 1000, layout: wide.ini}]"
    (desk / "jobs.yaml").write_text(f"schema: vani.jobs/1\njobs: [{{name: a, nodes: 1, creations: {creations}}}]\n")
    (desk / "machine.yaml").write_text(f"{HEAD}{MACHINE}jobs: jobs.yaml\n")
    assert run("plan", "simulate", "machine.yaml", "-o", "out.json").status == 0
    digests = {one.kind: one.sha256 for one in SimulatePlan.load(desk / "out.json").inputs}
    assert digests["layout"] == sha256((desk / "wide.ini").read_bytes()).hexdigest()


def test_a_store_a_trace_and_a_profile_of_one_run_move_the_same_bytes(run, desk):
    assert run("convert", TRACE, "store").status == 0
    assert run("profile", TRACE, "-o", "profile.yaml").status == 0
    (desk / "s.yaml").write_text(
        HEAD + MACHINE + "workload:\n"
        f"- {{name: stored, store: store}}\n- {{name: traced, profile: {TRACE}}}\n- {{name: told, profile: profile.yaml}}\n"
    )
    done = run("plan", "simulate", "s.yaml", "-o", "plan.yaml")
    assert done.status == 0
    plan = SimulatePlan.load(desk / "plan.yaml")
    stored, traced, told = plan.outcomes[0].jobs
    assert stored.bytes == pytest.approx(traced.bytes)
    assert traced.bytes == pytest.approx(told.bytes) != 0
    assert {one.kind for one in plan.inputs} == {"scenario", "trace", "profile"}


@pytest.mark.parametrize("file", ["calls/part-00000.parquet", "manifest.json", "_files.parquet"])
def test_damaged_store_is_reported_in_one_line(run, desk, file):
    assert run("convert", TRACE, "store").status == 0
    (desk / "store" / file).write_bytes(b"nothing")
    (desk / "s.yaml").write_text(HEAD + MACHINE + "workload: [{name: a, store: store}]\n")
    done = run("plan", "simulate", "s.yaml", "-o", "plan.yaml")
    assert done.status == 2
    assert "again" in done.line
    assert not (desk / "plan.yaml").exists()


@pytest.mark.parametrize("what", ["rates", "stages"])
@pytest.mark.slow
def test_the_last_variant_is_drawn(run, desk, what):
    done = run("plan", "simulate", TWO, "--plot", "plot.json", "--plot-of", what)
    assert done.status == 0
    spec = json.loads((desk / "plot.json").read_text())
    names = {row["what"] for row in spec["data"]["values"]}
    assert names >= ({"checkpoints", "training"} if what == "rates" else {"target", "server"})


@pytest.mark.slow
def test_plot_named_svg_is_svg(run, desk):
    pytest.importorskip("vl_convert")
    assert run("plan", "simulate", TWO, "--plot", "plot.svg").status == 0
    assert (desk / "plot.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "s.yaml: is empty; start it with `schema: vani.scenario/1`"),
        (HEAD + MACHINE, "s.yaml: no job runs; give `workload` or `jobs`"),
        (HEAD + "machine: {targets: 2, target: .nan}\n" + JOB, "s.yaml:2: machine.target is nan"),
        (HEAD + "machine: {targets: 2, target: .inf}\n" + JOB, "s.yaml:2: machine.target is inf"),
        (HEAD + "machine: {targets: 2, target: -1}\n" + JOB, "s.yaml:2: machine.target is -1"),
        (HEAD + "machine: {targets: 2, target: 0}\n" + JOB, "machine.target is 0: nothing would move"),
        (HEAD + "machine: {tragets: 2}\n" + JOB, "s.yaml:2: unknown key 'tragets' in machine; did you mean 'targets'?"),
        (HEAD + "machine: {system: nowhere}\n" + JOB, "no machine and no file is called 'nowhere'"),
        (HEAD + "machine: {system: titan, file_system: no}\n" + JOB, "titan has no file system 'no'"),
        (HEAD + MACHINE + "plans: [no.yaml]\n" + JOB, "no.yaml: no such file"),
        (HEAD + MACHINE + "jobs: no.yaml\n", "no.yaml: no such file"),
        (HEAD + MACHINE + "workload: [{name: a, profile: no.yaml}]\n", "no.yaml: no such profile or trace"),
        (HEAD + MACHINE + "workload: [{name: a, store: no}]\n", "no: is not a store"),
        (HEAD + MACHINE + 'workload: [{name: "a\\n\'"}]\n', "s.yaml:3: workload[0].name is "),
        (HEAD + MACHINE + "failures: [{kind: targit, which: [0]}]\n" + JOB, "failures[0].kind is 'targit'"),
        (
            HEAD + MACHINE + "workload: [{name: a, processes: 1000000, phases: [{operation: write, bytes: 1}]}]\n",
            "there are more than 200,000 flows",
        ),
    ],
)  # fmt: skip
def test_bad_scenarios_are_reported_in_one_line(run, desk, text, line):
    (desk / "s.yaml").write_text(text)
    done = run("plan", "simulate", "s.yaml", "-o", "plan.yaml")
    assert done.status == 2
    assert line in done.line
    assert not (desk / "plan.yaml").exists()


def test_files_read_are_not_overwritten(run, desk):
    (desk / "s.yaml").write_text(HEAD + MACHINE + JOB)
    for option in ("-o", "--plot"):
        name = desk / ("s.yaml" if option == "-o" else "s.svg")
        if option == "--plot":
            name.symlink_to(desk / "s.yaml")
        done = run("plan", "simulate", "s.yaml", option, name)
        assert (done.status, "is an input of this command" in done.line) == (2, True)
    assert (desk / "s.yaml").read_text() == HEAD + MACHINE + JOB


def test_a_tolerance_is_a_share(run):
    for wrong in ("nan", "-1", "2"):
        done = run("plan", "simulate", TWO, "--tolerance", wrong)
        assert (done.status, "give a number, 0 to 0.1" in done.line) == (2, True)


JOB = "workload: [{name: a, nodes: 2, processes: 4, phases: [{operation: write, bytes: 1e9, layout: 4}]}]\n"


def test_stalled_simulation_has_no_table_of_stages(run, desk):
    (desk / "s.yaml").write_text(
        "schema: vani.scenario/1\nmachine: {node: 5.0e9, targets: 4, target: 1.0e9}\n"
        f"{JOB}failures: [{{kind: target, which: [0, 1, 2, 3], from_s: 0}}]\n"
    )
    done = run("plan", "simulate", "s.yaml")
    assert done.out.startswith("Incomplete: 1 job never ends")
    assert "target 0, target 1, target 2, target 3 stand still" in done.out
    assert "busiest" not in done.out


def test_range_of_one_figure_is_not_shown_as_a_range(run, desk):
    (desk / "s.yaml").write_text(
        "schema: vani.scenario/1\nmachine: {node: 5.0e9, targets: 4, target: 1.0e9}\n"
        f"{JOB}seeds: [1, 2]\nplacement: {{policy: random}}\nvariants: [{{name: one}}, {{name: other}}]\n"
    )
    first = next(
        line for line in run("plan", "simulate", "s.yaml").out.splitlines() if line.startswith("other:")
    )
    assert (
        first == "other: 1 job ends after 251 ms (with each of 2 seeds): 1.00 times as fast as one (251 ms)."
    )


def test_layout_with_too_many_stripes_is_reduced_with_a_note(run, desk):
    (desk / "s.yaml").write_text(
        f"schema: vani.scenario/1\nmachine: {{node: 5.0e9, targets: 1, target: 1.0e9}}\n{JOB}"
    )
    said = (
        "Note: a file has at most one object on each target: layouts with more stripes than 1 target are cut."
    )
    assert said in run("plan", "simulate", "s.yaml").out.splitlines()
