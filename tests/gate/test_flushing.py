"""Flushing is a kind of its own, apart from metadata."""

from __future__ import annotations

import pytest
from gate_cases import TODAY, figures, made, policy, put, verdict

from vani.gate.baselines import baseline_of, runs_of
from vani.gate.difference import Side
from vani.gate.verdict import verdict_on
from vani.schema.check import Baseline, BaselineRun, Source
from vani.schema.document import dumps, loads

RUN = BaselineRun(version="0", sha256="0")


def side(tree: dict, *, is_saved: bool = False) -> Side:
    return Side(Source(path="x.yaml", sha256=""), (figures(tree).tree if not is_saved else tree,), True, is_saved)


def saved(*trees: dict) -> list[dict]:
    """The runs of a baseline, as saved and read back."""
    return runs_of(loads(dumps(baseline_of([(RUN, one) for one in trees])), Baseline), "x")


def rows(diff) -> dict[str, str]:
    return {one.attribute: one.status for one in diff.differences}


# --- what can be asked -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expect", "status"),
    [
        ("workflow.io.ops.sync <= 40", "pass"),
        ("workflow.io.ops.sync <= 39", "fail"),
        ("workflow.io.time_share.sync <= 50 %", "fail"),
        ("workflow.io.metadata_kinds.open.count == 61", "pass"),
        ("workflow.io.bandwidth.write_synced >= 1 GB/s", "fail"),
        ("workflow.io_time_share_slowest <= 20 %", "pass"),
        ('folders[path~"*Level_0"].creates <= 8', "pass"),
        ("max(folders[*].entries) < 8", "fail"),
        ('sum(files[*].io.ops.sync) == 40', "pass"),
    ],
)
@pytest.mark.sampled(4)
def test_attributes_of_flushing_and_metadata_can_be_bounded(tmp_path, expect, status):
    check = verdict(policy(tmp_path, f"[[check.budget]]\nexpect = '{expect}'\n"), made())
    assert {one.status for one in check.judgements} == {status}


def test_time_in_a_library_can_be_bounded(tmp_path):
    checks = policy(tmp_path, "[[check.budget]]\nexpect = 'workflow.library_time_s.mpiio.total <= 1 us'\n")
    assert verdict(checks, made("v3-ior-ssf-hdf5-4r")).judgements[0].status == "fail"


# --- with a baseline of today ---------------------------------------------------------------------------------------


def test_a_flush_more_is_an_error_and_metadata_is_as_before(tmp_path):
    check = verdict(policy(tmp_path, "[check]\n"), put(made(), "workflow.io.ops.sync", 41), [made()])
    assert [one.id for one in check.judgements if one.status == "fail"] == [
        "change of workflow.io.ops.*: workflow.io.ops.sync"
    ]


def test_a_saved_baseline_keeps_flushing_kinds_of_metadata_and_folders(tmp_path):
    (run,) = saved(made())
    assert run["workflow"]["io"]["ops"] == {"read": 40, "write": 165, "metadata": 132, "sync": 40}
    assert run["workflow"]["io"]["metadata_kinds"]["open"]["count"] == 61
    # Functions are a table of the twenty costliest; the number of a library's calls has the same key.
    assert "calls" not in run["workflow"]["io"]
    assert [one["calls"] for one in run["interfaces"]] == [one["calls"] for one in made()["interfaces"]]
    checks = policy(tmp_path, "[[check.change]]\nattribute = 'folders[*].creates'\n")
    more = made()
    # In another order: folders are identified by path.
    more["folders"].reverse()
    more["folders"][0]["creates"] += 1
    check = verdict_on(checks, [figures(more)], [run], [], [], today=TODAY, fail_on=None, allow_empty=False, version="0")
    assert [one.target for one in check.judgements if one.status == "fail"] == [more["folders"][0]["path"]]


def test_profile_without_times_has_no_note_about_flushing(tmp_path):
    quick = made()
    quick["workflow"]["io"]["time_s"] = dict.fromkeys(quick["workflow"]["io"]["time_s"])
    checks = policy(tmp_path, "[[check.change]]\nattribute = 'workflow.io.time_s.metadata'\n")
    (one,) = verdict(checks, made(), [quick], allow_empty=True).judgements
    assert one.message == "workflow.io.time_s.metadata is not known in the baseline"
