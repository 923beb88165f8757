"""Slower runs, by slowdown and number of runs in a baseline: the table in docs/check.md."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from gate_cases import changed, policy, put, tree, verdict

PAGE = Path(__file__).resolve().parents[2] / "docs" / "check.md"
HEAD = "| times as long | 1 run of a baseline | 3 runs | 5 runs |"
FACTORS = (1.2, 1.5, 2.0, 5.0)
BASELINES = {1: (1.0,), 3: (0.9, 1.0, 1.1), 5: (0.9, 0.95, 1.0, 1.05, 1.1)}
"""Run times by the number of runs, all within 10 %."""
SECONDS = 31.5


def slower(times: float):
    return changed(workflow__runtime_s=SECONDS * times)


def checked(tmp_path, times: float, runs: int, **options):
    return verdict(
        policy(tmp_path, "[check]\n"), slower(times), [slower(one) for one in BASELINES[runs]], **options
    )


@pytest.mark.slow
def test_the_page_has_the_verdicts_on_slower_runs(tmp_path):
    rows = [
        f"| {times:g} | {' | '.join(checked(tmp_path, times, runs).verdict for runs in BASELINES)} |"
        for times in FACTORS
    ]
    table = "\n".join([HEAD, "| --- | --- | --- | --- |", *rows]) + "\n"
    text = PAGE.read_text()
    if os.environ.get("UPDATE_DOCS"):
        begin = text.index(HEAD)
        PAGE.write_text(text[:begin] + table + text[text.index("\n\n", begin) + 1 :])
    assert table in PAGE.read_text()


@pytest.mark.parametrize(("times", "runs", "words"), [
    (1.2, 1, "pass"), (5.0, 1, "pass with warnings"), (1.2, 5, "pass"), (1.5, 3, "fail"), (1.5, 5, "fail"), (5.0, 3, "fail"),
])  # fmt: skip
def test_run_slower_beyond_the_noise_of_several_runs_fails(tmp_path, times, runs, words):
    assert checked(tmp_path, times, runs).verdict == words


def test_single_run_is_reported_as_insufficient(tmp_path):
    check = checked(tmp_path, 5.0, 1)
    assert "1 run of a baseline cannot judge a time: save 3 or more" in check.judgements[0].message
    assert checked(tmp_path, 5.0, 1, fail_on="warning").verdict == "fail"
    assert "cannot judge" not in checked(tmp_path, 5.0, 3).judgements[0].message


def test_a_policy_sets_how_much_slower_is_an_error(tmp_path):
    text = '[[check.change]]\nattribute = "workflow.runtime_s"\nslower = 3\n'
    runs = [slower(one) for one in BASELINES[5]]
    assert verdict(policy(tmp_path, text), slower(2.0), runs).verdict == "pass with warnings"
    assert verdict(policy(tmp_path, text), slower(3.0), runs).verdict == "fail"


@pytest.mark.parametrize(
    ("kind", "todo"), [("seek", "pread and pwrite"), ("open", "open once"), ("stat", "attributes once")]
)
def test_remedy_follows_the_most_common_metadata_call(tmp_path, kind, todo):
    now = tree()
    kinds = now["files"][0]["io"]["metadata_kinds"] or {}
    if not kinds:
        pytest.skip("the golden profile has no kinds")
    more = 4096
    put(now, "files.0.io.ops.metadata", now["files"][0]["io"]["ops"]["metadata"] + more)
    put(now, f"files.0.io.metadata_kinds.{kind}.count", kinds[kind]["count"] + more)
    put(now, "workflow.io.ops.metadata", now["workflow"]["io"]["ops"]["metadata"] + more)
    check = verdict(policy(tmp_path, "[check]\n"), now, [tree()])
    (cause,) = [cause for cause in check.causes if cause.kind == "metadata"]
    assert todo in cause.todo
