"""`vani diff` of many runs, one line each."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vani
from tests.gate.gate_cases import tree
from vani.cli.diff import row_of, sorted_rows
from vani.render.formats import RUNS
from vani.schema.diff import COLUMNS, RunRow
from vani.schema.profile import Profile

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = sorted((ROOT / "tests" / "golden").glob("*.yaml"))


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_every_format_has_the_same_runs(run, tmp_path):
    text = run("diff", *GOLDEN[:4]).out
    assert len(text.splitlines()) == 5
    found = rows(run("diff", *GOLDEN[:4], "--format", "csv").out)
    assert tuple(found[0]) == COLUMNS
    document = json.loads(run("diff", *GOLDEN[:4], "--format", "json").out)
    run("diff", *GOLDEN[:4], "-o", tmp_path / "runs.parquet")
    table = pq.read_table(tmp_path / "runs.parquet")
    assert table.column_names == list(COLUMNS)
    assert table.column("written").to_pylist() == [int(one["written"]) for one in found]
    assert [one["written"] for one in document["rows"]] == table.column("written").to_pylist()


def test_figures_match_the_profile():
    profile = Profile.load(GOLDEN[0])
    row = row_of(profile, "x")
    for column, path in (
        (name, field.description.split(",")[0])
        for name, field in RunRow.model_fields.items()
        if field.description.startswith(("workflow.", "job."))
    ):
        value = profile
        for key in path.split("."):
            value = getattr(value, key, None)
        assert getattr(row, column) == value, path
    assert (row.matters, row.io_share, row.verdict) == (
        profile.verdict.matters, profile.verdict.share, profile.verdict.sentence
    )
    assert (row.run, row.start, row.costliest) == ("x", "2026-11-21T02:26:35Z", "open")


@pytest.mark.slow
def test_runs_are_sorted_by_a_column_largest_first(run):
    for column in ("io_s", "written", "processes"):
        found = [
            float(one[column]) for one in rows(run("diff", *GOLDEN, "--sort", column, "--format", "csv").out)
        ]
        assert found == sorted(found, reverse=True)
    names = [one["apps"] for one in rows(run("diff", *GOLDEN, "--sort", "apps", "--format", "csv").out)]
    assert names == sorted(names)
    back = [
        one["apps"]
        for one in rows(run("diff", *GOLDEN, "--sort", "apps", "--reverse", "--format", "csv").out)
    ]
    assert back == names[::-1]


@given(st.lists(st.none() | st.floats(0, 1e9), max_size=12), st.booleans())
def test_unknown_values_sort_last(values, reverse):
    whole = row_of(Profile.model_validate(tree()), "x")
    made = [whole.model_copy(update={"io_s": value}) for value in values]
    found = [one.io_s for one in sorted_rows(made, "io_s", reverse=reverse)]
    known = sorted((value for value in values if value is not None), reverse=not reverse)
    assert found == known + [None] * (len(values) - len(known))


def test_unreadable_runs_are_reported_and_the_rest_written(run, tmp_path):
    (tmp_path / "torn.yaml").write_bytes(GOLDEN[0].read_bytes()[:500])
    done = run("diff", GOLDEN[0], tmp_path / "torn.yaml", tmp_path / "none.yaml")
    assert len(done.out.splitlines()) == 2
    assert done.err.count("vani: left out: ") == 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["none.yaml"], "none of 1 runs can be read"),
        ([GOLDEN[0], "--sort", "nope"], "no column 'nope'; there are run, apps"),
        ([], "Missing argument 'RUN [RUN ...]'"),
    ],
)
def test_bad_usage_is_reported_in_one_line(run, options, told):
    done = run("diff", *options)
    assert done.status == 2
    assert told in done.err
    assert len(done.err.splitlines()) == 1
    assert done.out == ""


def test_names_from_traces_stay_in_their_cell(tmp_path):
    profile = tree()
    profile["apps"][0]["name"] = "=1+1\n\x1b[2J"
    hostile = Profile.model_validate(profile)
    hostile.save(tmp_path / "=a\tb.yaml")
    found = vani.table(tmp_path / "=a\tb.yaml")

    for kind in ("text", "csv", "json"):
        assert "\x1b" not in RUNS.render(kind, found)
    assert rows(RUNS.render("csv", found))[0]["apps"].startswith("'=1+1")


def test_folder_stands_for_its_profiles(run, tmp_path):
    for one in GOLDEN[:3]:
        (tmp_path / one.name).write_bytes(one.read_bytes())
    # Neither is a run, since a trace's folder may contain documents.
    (tmp_path / "job.yaml").write_text("schema: vani.job/1\nnodes: 4\n")
    (tmp_path / "notes.txt").write_text("vani.profile/4")
    assert len(rows(run("diff", tmp_path, "--format", "csv").out)) == 3


def test_traces_are_profiled_first(run, tmp_path):
    trace = ROOT / "vani" / "demo" / "ior-shared-file-8r"
    found = rows(run("diff", trace, "--format", "csv", "--store", tmp_path / "store").out)
    assert (found[0]["processes"], found[0]["written"]) == ("8", str(128 << 20))
