"""Why a check fails: failures with one cause are one finding, with its file, its phase and a remedy."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.gate.gate_cases import made, policy, tree, verdict
from vani.advisors.catalogue import find
from vani.gate.causes import FileChange, file_changes, remedy
from vani.gate.matching import Names
from vani.render.check import to_text
from vani.render.code_hosts import to_github, to_gitlab, to_sarif
from vani.schema.check import Check

SMALL = 4096
LARGE = 1 << 20


def checked(tmp_path: Path, now: dict[str, Any], before: dict[str, Any], checks: str = "") -> Check:
    return verdict(policy(tmp_path, checks), now, [before])


def smaller(profile: dict[str, Any]) -> dict[str, Any]:
    """The same with a hundred times as many accesses to the most written file, for the same bytes."""
    one = copy.deepcopy(profile)
    written = max(one["files"], key=lambda file: file["io"]["bytes"]["written"])
    app = written["apps"][0]
    more = 99 * written["io"]["ops"]["write"]
    phase = next(p for p in one["phases"] if p["kind"] == "write" and p["app"] == app)
    owners = [written, one["workflow"], one["dataset"], phase, *(a for a in one["apps"] if a["name"] == app)]
    for owner in owners:
        owner["io"]["ops"]["write"] += more
        size = owner["io"]["transfer_size"]["write"]
        if size is not None:
            size["p50"] = size["min"]
    for layer in one["interfaces"]:
        if layer["app"] == app and layer["layer"] == "posix":
            layer["calls"] += more
    return one


def test_smaller_accesses_are_one_finding_with_file_phase_and_remedy(tmp_path):
    before = made()
    check = checked(tmp_path, smaller(before), before)
    (cause,) = check.causes
    name = Path(max(before["files"], key=lambda file: file["io"]["bytes"]["written"])["path"]).name
    assert cause.kind == "smaller_accesses"
    assert cause.message.startswith(f"writes to {name} shrank from ")
    assert "write phase" in cause.message
    assert {"POS002"} <= set(cause.rules)
    failed = [one.id for one in check.judgements if one.status == "fail"]
    assert sorted(cause.judgements) == sorted(failed)
    assert "workflow.io.ops.write" in " ".join(failed)
    assert "interfaces" in " ".join(failed)


def test_first_line_states_cause_and_remedy(tmp_path):
    before = made()
    check = checked(tmp_path, smaller(before), before)
    first = to_text(check, version="0").split("\n", 3)
    assert first[0].startswith("fail: writes to ")
    assert f"vani explain {check.causes[0].rules[0]}" in " ".join(first[:3])


def test_code_hosts_get_one_finding_per_cause(tmp_path):
    before = made()
    check = checked(tmp_path, smaller(before), before)
    assert len(check.causes[0].judgements) > 2
    assert to_github(check, version="0").count("::error ") == 1
    assert to_gitlab(check, version="0").count('"fingerprint"') == 1
    assert to_sarif(check, version="0").count('"ruleIndex"') == 1


def test_finding_keeps_its_fingerprint_if_more_files_fail(tmp_path):
    before = made()
    now = smaller(before)
    all_of_it = checked(tmp_path, now, before)
    checks = "[[check.change]]\nattribute = 'workflow.io.ops.write'\n"
    some = checked(tmp_path, now, before, checks)
    assert len(some.causes[0].judgements) != len(all_of_it.causes[0].judgements)
    marks = [
        line
        for check in (all_of_it, some)
        for line in to_gitlab(check, version="0").splitlines()
        if "fingerprint" in line
    ]
    assert len(set(marks)) == 1


def test_no_line_is_named_without_a_policy(tmp_path):
    before = made()
    now = smaller(before)
    assert "file=" not in to_github(checked(tmp_path, now, before), version="0")
    checks = "[[check.change]]\nattribute = 'workflow.io.ops.write'\n"
    assert "vani.toml,line=2" in to_github(checked(tmp_path, now, before, checks), version="0")


def test_small_share_of_the_run_is_said_not_to_matter(tmp_path):
    before = tree()  # I/O is 0.11 % of this run.
    now = copy.deepcopy(before)
    now["workflow"]["io"]["ops"]["write"] *= 2
    check = checked(tmp_path, now, before)
    assert check.io_share.endswith("storage is not what this run waits for; the changes hardly matter")
    assert checked(tmp_path, before, before).io_share is None


def test_another_number_of_processes_is_the_cause_of_more_of_everything(tmp_path):
    before = tree()
    now = copy.deepcopy(before)
    now["workflow"]["processes"] *= 2
    now["apps"][0]["processes"] *= 2
    for io in (now["workflow"]["io"], now["apps"][0]["io"], now["dataset"]["io"]):
        io["ops"]["metadata"] *= 2
    check = checked(tmp_path, now, before)
    assert [one.kind for one in check.causes] == ["processes"]
    assert check.causes[0].message.startswith("this run has 32 processes and the baseline 16")


def test_differing_times_are_no_fault_of_the_program(tmp_path):
    before = made()
    now = copy.deepcopy(before)
    for one in (now["workflow"], now["apps"][0]):
        one["io"]["time_s"]["total"] += 10
    check = checked(tmp_path, now, before)
    assert [one.kind for one in check.causes] == ["slower"]
    assert "run it again" in check.causes[0].todo


def test_failures_without_a_cause_are_separate_findings(tmp_path):
    before = made()
    now = copy.deepcopy(before)
    now["dataset"]["files"] += 1
    check = checked(tmp_path, now, before, "[[check.budget]]\nname = 'one'\nexpect = 'workflow.apps <= 0'\n")
    assert check.causes == []
    assert "error one" in to_text(check, version="0")


def test_cause_needs_a_baseline(tmp_path):
    checks = policy(tmp_path, "[[check.budget]]\nname = 'one'\nexpect = 'workflow.io.ops.write <= 1'\n")
    check = verdict(checks, made())
    assert check.causes == []
    assert check.verdict == "fail"


def file(path: str, write: tuple[int, int], **other: Any) -> dict[str, Any]:
    """A file's `write`: operations and bytes."""
    io = {
        "ops": {"read": 0, "write": write[0], "metadata": 2, "sync": 0},
        "bytes": {"read": 0, "written": write[1]},
        "time_s": {"read": 0.0, "write": 1.0, "metadata": 0.0, "sync": 0.0, "total": 1.0},
        "access_pattern": {"consecutive": 1.0, "sequential": 0.0, "strided": 0.0, "random": 0.0},
    }
    io |= other.pop("io", {})
    return {"path": path, "role": "output", "access": "shared", "apps": ["a"], "io": io} | other


def changes(now: list[dict[str, Any]], before: list[dict[str, Any]]) -> list[FileChange]:
    return file_changes(now, [{"files": before, "dataset": {"files": len(before)}}], Names())


def test_files_differing_only_in_their_number_are_one_change():
    before = [file(f"/out/part.{i}", (4, 4 * LARGE)) for i in range(8)]
    now = [file(f"/out/part.{i}", (1024, 4 * LARGE)) for i in range(8)]
    (change,) = changes(now, before)
    assert (change.name, change.before, change.after, change.time_s) == ("part.*", LARGE, SMALL, 8.0)


def test_renamed_file_replaces_the_vanished_one():
    (change,) = changes([file("/b.h5", (1024, 4 * LARGE))], [file("/a.h5", (4, 4 * LARGE))])
    assert (change.kind, change.name) == ("smaller_accesses", "b.h5")


@pytest.mark.parametrize(
    ("now", "kind"),
    [
        (file("/x", (4, 8 * LARGE)), "more_data"),
        (file("/x", (4, 4 * LARGE), io={"access_pattern": {"strided": 0.5, "random": 0.5}}), "order"),
        (
            file("/x", (4, 4 * LARGE), io={"ops": {"read": 0, "write": 4, "metadata": 40, "sync": 0}}),
            "metadata",
        ),
        (
            file("/x", (4, 4 * LARGE), io={"ops": {"read": 0, "write": 4, "metadata": 2, "sync": 4}}),
            "flushing",
        ),
        (file("/x", (4, 4 * LARGE)), None),
        (file("/x", (2, 4 * LARGE)), None),
        (file("/x", (0, 0)), None),
    ],
)
def test_kinds_of_changes(now, kind):
    assert [one.kind for one in changes([now], [file("/x", (4, 4 * LARGE))])] == ([kind] if kind else [])


def test_new_files_are_reported_only_if_the_baseline_lists_all():
    now = [file("/x", (4, 4 * LARGE)), file("/y", (4, 4 * LARGE))]
    assert [one.kind for one in changes(now, now[:1])] == ["new_files"]
    assert file_changes(now, [{"files": now[:1], "dataset": {"files": 7}}], Names()) == []


@pytest.mark.parametrize(
    "kind", ["smaller_accesses", "order", "metadata", "flushing", "more_data", "new_files"]
)
@pytest.mark.parametrize("layer", ["posix", "mpiio", "hdf5", None])
@pytest.mark.parametrize("is_collective", [False, True])
def test_rules_named_in_a_remedy_exist(kind, layer, is_collective):
    change = FileChange(kind, "write", 1, 2, None, (file("/x", (1, 1), interface=layer),))
    todo, rules = remedy(change, is_collective=is_collective)
    assert todo
    assert [find(rule).id for rule in rules] == list(rules)
