"""`vani plan place` and `vani plan snapshot` from a user's view."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from vani.centre import plan_place
from vani.centre.plan.schema.plans import PlacePlan
from vani.centre.plan.schema.snapshot import Snapshot
from vani.errors import InputError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "plan"
FILES, EMPTY = EXAMPLES / "ior-files.yaml", EXAMPLES / "testbed-empty.yaml"
FIGURES = EXAMPLES / "figures"


@pytest.mark.slow
def test_plan_names_its_layouts_as_well_as_its_jobs_and_snapshot(run, desk):
    assert run("plan", "place", FILES, "--snapshot", EMPTY, "-o", "plan.yaml").status == 0
    plan = PlacePlan.load(desk / "plan.yaml")
    assert [one.kind for one in plan.inputs] == ["jobs", "snapshot", "layout"]
    assert plan.after.ost_cost == pytest.approx(1.0938, abs=1e-4)
    assert not plan.pin


def test_text_states_the_balance_and_whether_to_pin(run):
    done = run("plan", "place", FILES, "--snapshot", EMPTY)
    first, second = done.out.splitlines()[:2]
    assert (done.status, done.err) == (0, "")
    assert first == "fast: 16 files, 34.4 GB on 35 of 35 OSTs: OST Cost 1.094 (the minimum is 1.025)."
    assert second.startswith("Better left to Lustre: simulated time 1.24 (1.24 to 1.24) of the minimum by Lustre's own")


@pytest.mark.slow
def test_a_script_is_written_by_its_name(run, desk):
    assert run("plan", "place", FILES, "--snapshot", EMPTY, "-o", "place.sh").status == 0
    text = (desk / "place.sh").read_text()
    assert text.startswith("#!/usr/bin/env bash\n")
    assert text.count("\nplace ") == 16
    assert (
        run("plan", "forward", EXAMPLES / "six-jobs.yaml", "--io-nodes", 4, "--format", "script").status == 2
    )


def test_inputs_are_not_overwritten(run, desk):
    for name in ("ior-files.yaml", "testbed-empty.yaml", "pfl-1.ini"):
        shutil.copy(EXAMPLES / name, desk / name)
    for name in ("ior-files.yaml", "testbed-empty.yaml", "pfl-1.ini"):
        done = run("plan", "place", "ior-files.yaml", "--snapshot", "testbed-empty.yaml", "-o", name)
        assert (done.status, "is an input of this command" in done.line) == (2, True)
        assert (desk / name).read_bytes() == (EXAMPLES / name).read_bytes()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--size-weight", "past=2"], "give a number, 0 to 1"),
        (["--size-weight", "past=nan"], "give a number, 0 to 1"),
        (["--size-weight", "now=1"], "is not a weight; give past=0 to past=1"),
        (["--ceiling", "nan"], "above 0, at most 1"),
        (["--ceiling", "1.5"], "above 0, at most 1"),
        (["--window", "-1"], "give a number, 0 to 1"),
        (["--cpu-weight", "inf"], "give a number, 0 to 1e+06"),
        (["--seeds", "0"], "1 to 10,000"),
        (["--seed", "-1"], "give a whole number, 0 or more, below 4,294,967,296"),
        (["--max-age", "nan"], "give seconds"),
        (["--max-age", "60"], "--max-age allows"),
    ],
)
def test_invalid_figures_give_one_line_and_status_2(run, options, said):
    done = run("plan", "place", FILES, "--snapshot", EMPTY, *options)
    assert (done.status, done.out) == (2, "")
    assert said in done.line


@pytest.mark.parametrize(
    ("snapshot", "said"),
    [
        ("ost: [{index: 0, size: 10, used: 11}]", "uses 11 of 10 bytes"),
        ("ost: [{index: 0, oss: a, size: 10, used: 1}]", "names the OSS 'a', which is not there"),
        ("ost: [{index: 0, size: .inf, used: 1}]", "ost[0].size is"),
        ("ost: [{index: 0, size: 9, used: 1}, {index: 0, size: 9, used: 1}]", "appears twice"),
        ("ost: [{index: 70000, size: 9, used: 1}]", "ost[0].index is 70000"),
        ("ost: []", "has no usable OST"),
    ],
    ids=range(6),
)
def test_impossible_snapshots_give_one_line_and_status_2(run, desk, snapshot, said):
    (desk / "now.yaml").write_text(f"schema: vani.snapshot/1\n{snapshot}\n")
    done = run("plan", "place", FILES, "--snapshot", "now.yaml")
    assert (done.status, done.out) == (2, "")
    assert done.line.startswith("now.yaml")
    assert said in done.line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a configuration of Tarazu"),
        ("[Client]\nBuckets = 0\n", "has 0 buckets"),
        ("[Client]\nBuckets = 1\n[Bucket_1]\nExtent = 1G\nStripe = 1\n", "not reach the end of the file"),
        ("[Client]\nBuckets = 1\n[Bucket_1]\nExtent = -1\nStripe = many\n", "invalid literal"),
        ("[Client]\nBuckets = 9\n[Bucket_1]\nExtent = 1%\nStripe = 1\n", "not a size"),
    ],
    ids=range(5),
)
def test_invalid_layout_file_is_refused(run, desk, text, said):
    shutil.copy(FILES, desk / "jobs.yaml")
    assert run("plan", "place", "jobs.yaml", "--snapshot", EMPTY).line == "pfl-1.ini: no such file"
    (desk / "pfl-1.ini").write_text(text)
    done = run("plan", "place", "jobs.yaml", "--snapshot", EMPTY)
    assert (done.status, done.line.startswith("pfl-1.ini"), said in done.line) == (2, True, True)


@pytest.mark.slow
def test_age_of_a_snapshot_is_judged_by_the_given_time():
    taken = datetime(2026, 1, 1, tzinfo=UTC)
    assert plan_place(FILES, EMPTY, max_age=60, now=taken.replace(second=59)).kind == "place"
    with pytest.raises(InputError, match="--max-age allows"):
        plan_place(FILES, EMPTY, max_age=60, now=taken.replace(minute=2))


def test_strict_ends_with_1_if_an_extent_is_left_to_lustre(run, desk):
    (desk / "jobs.yaml").write_text(
        "schema: vani.jobs/1\njobs: [{name: a, nodes: 1, creations: [{path: /a, size: 9, layout: '-c 2 -p flash'}]}]\n"
    )
    done = run("plan", "place", "jobs.yaml", "--snapshot", EMPTY, "--strict")
    assert (done.status, done.out.partition("\n")[0]) == (1, "Incomplete: 1 extent left to Lustre.")


def test_a_plan_that_gains_nothing_says_so_everywhere(run, desk):
    done = run("plan", "place", FILES, "--snapshot", EMPTY, "-o", "plan.yaml", "--strict")
    assert (done.status, done.line.startswith("better left to Lustre: simulated time")) == (1, True)
    assert "-o 0" not in (desk / "plan.yaml").read_text()
    assert run("plan", "store", "plan.yaml", "--database", "now.sqlite").status == 0
    first, *rows = run("plan", "interactions", "--database", "now.sqlite").out.splitlines()
    assert first.endswith(",ost_list") and len(rows) == 48 and all(row.endswith(",") for row in rows)


def test_a_snapshot_is_written_and_read_again(run, desk):
    done = run(
        "plan", "snapshot", f"oss1={FIGURES / 'oss1.txt'}", f"oss2={FIGURES / 'oss2.prom'}", FIGURES / "client.txt",
        "--time", "2026-01-01T12:00:00Z", "-o", "now.yaml",
    )  # fmt: skip
    assert done.status == 0
    assert done.err.splitlines()[0].startswith("vani: OST 4: its size")
    found = Snapshot.load(desk / "now.yaml")
    assert (found.time, len(found.ost), found.oss[1].memory) == (
        datetime(2026, 1, 1, 12, tzinfo=UTC),
        4,
        None,
    )
    plan = run("plan", "place", FILES, "--snapshot", "now.yaml", "--strict")
    # OST 4 is unknown, and 8 stripes do not find 8 OSTs.
    assert plan.status == 1


def test_snapshot_does_not_overwrite_its_inputs(run, desk):
    shutil.copy(FIGURES / "client.txt", desk / "df.txt")
    done = run("plan", "snapshot", "c=df.txt", "-o", "df.txt")
    assert (done.status, "is an input of this command" in done.line) == (2, True)
    for arguments, said in ((["no.txt"], "no such file"), (["df.txt", "--time", "noon"], "is not a time")):
        done = run("plan", "snapshot", *arguments)
        assert (done.status, said in done.line) == (2, True)


def test_snapshot_needs_a_file(run):
    done = run("plan", "snapshot")
    assert (done.status, "no file to read" in done.line) == (2, True)


def test_plan_of_osts_is_checked_against_the_present_machine(run, desk):
    assert run("plan", "place", FILES, "--snapshot", EMPTY, "-o", "plan.yaml").status == 0
    check = ("plan", "check", "plan.yaml", "--snapshot")
    assert run(*check, EMPTY).out.startswith("Valid")
    now = Snapshot.load(EMPTY)
    for change, why in (
        ({"state": "offline"}, "OST 0: it is offline"),
        ({"used": now.ost[0].size}, "are free"),
        ({"index": 999}, "OST 0: it is not in the snapshot"),
        ({"oss": now.ost[-1].oss}, "OST 0: it belongs to"),
    ):
        ost = [now.ost[0].model_copy(update=change), *now.ost[1:]]
        (desk / "now.yaml").write_text(now.model_copy(update={"ost": ost}).to_yaml())
        done = run(*check, "now.yaml")
        assert (done.status, why in done.out) == (1, True), done.out
    ost = [now.ost[0].model_copy(update={"state": "degraded"}), *now.ost[1:]]
    (desk / "now.yaml").write_text(now.model_copy(update={"ost": ost}).to_yaml())
    done = run(*check, "now.yaml")
    assert (done.status, "OST 0 is degraded since" in done.out) == (0, True)


def test_first_line_counts_placed_files_and_claims_no_optimum_for_some(run, desk):
    (desk / "jobs.yaml").write_text(
        "schema: vani.jobs/1\njobs: [{name: a, nodes: 1, creations: [{path: /a, size: 9000000, layout: '-c 2 -p flash'}, "
        "{path: /b, size: 9000000, layout: 4}]}]\n"
    )
    lines = run("plan", "place", "jobs.yaml", "--snapshot", EMPTY).out.splitlines()
    assert lines[2].startswith("fast: 1 of 2 files, 9 MB on 4 of 35 OSTs: OST Cost")
    assert "least" not in lines[2]


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (
            "size: 9000000, layout: -c 2 -p flash",
            "/a: it is in the pool flash: a snapshot does not list the OSTs of pools; Lustre chooses",
        ),
        (
            "size: 4611686018427387904, layout: 1",
            "/a: below 95 % there is no room for 1 stripe of 4.61 EB on as many OSTs; Lustre chooses",
        ),
    ],
)
def test_why_a_file_has_no_place_is_a_sentence(run, desk, file, said):
    (desk / "jobs.yaml").write_text(
        f"schema: vani.jobs/1\njobs: [{{name: a, nodes: 1, creations: [{{path: /a, {file}}}]}}]\n"
    )
    (desk / "now.yaml").write_text(
        "schema: vani.snapshot/1\nost: [{index: 0, size: 107374182400, used: 0}]\n"
    )
    done = run("plan", "place", "jobs.yaml", "--snapshot", "now.yaml")
    assert (done.status, f"  {said}" in done.out.splitlines()) == (0, True), done.out


def test_layout_beyond_any_file_size_gives_one_line_and_status_2(run, desk):
    (desk / "jobs.yaml").write_text(
        "schema: vani.jobs/1\njobs: [{name: a, nodes: 1, creations: [{path: /a, size: 9, layout: "
        f"'-E {'9' * 5000}G -c 1 -E -1 -c 2'}}]}}]\n"
    )
    done = run("plan", "place", "jobs.yaml", "--snapshot", EMPTY)
    assert (done.status, done.line.startswith("jobs.yaml: jobs[0].creations[0].layout")) == (2, True)


@pytest.mark.parametrize(
    "text",
    [
        "obdfilter.x-OST0000.kbytestotal={}",
        "UUID 1K-blocks Used Available Use% Mounted on\nx-OST0000_UUID {0} 0 {0} 0% /x[OST:0]",
        "MemTotal: {} kB",
    ],
)
def test_impossible_figure_gives_one_line_and_status_2(run, desk, text):
    # Formerly a fault of Vani itself, because Python refuses to parse a number with more than 4,300 digits.
    (desk / "dump.txt").write_text(f"x\n{text}\n".format("9" * 5000))
    done = run("plan", "snapshot", "oss0=dump.txt")
    assert (done.status, done.out) == (2, "")
    assert "a number has hundreds of digits; check its source" in done.line
    assert done.line.startswith("dump.txt:")
