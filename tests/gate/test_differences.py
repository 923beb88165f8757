"""Changes between two profiles: their size, and whether they matter."""

from __future__ import annotations

import re
from copy import deepcopy

import pytest
from gate_cases import figures, put, tree

from vani.gate.baselines import baseline_of, run_of, runs_of
from vani.gate.difference import Side, compare
from vani.render.diff import to_markdown as as_markdown
from vani.render.diff import to_text as as_text
from vani.schema.check import Source
from vani.schema.diff import Diff

SOURCE = Source(path="x.yaml", sha256="")


def side(*trees: dict) -> Side:
    return Side(SOURCE, tuple(figures(one).tree for one in trees), True)


def differences(a: dict, b: dict, **options: object) -> Diff:
    return compare(side(a), side(b), version="0", **options)


def test_a_profile_does_not_differ_from_itself():
    diff = differences(tree(), tree())
    assert diff.differences == []
    assert diff.counts.compared > 300
    lines = as_text(diff).splitlines()
    assert lines[:2] == ["A  x.yaml", "B  x.yaml"]
    assert lines[-1] == f"No difference in {diff.counts.compared:,} attributes."


@pytest.mark.parametrize(
    ("keys", "value", "status", "change"),
    [
        ("workflow.io.ops.write", 15600, "worse", 1.0),
        ("workflow.io.ops.write", 3900, "better", -0.5),
        ("workflow.runtime_s", 35.0, "within", 0.111),
        ("workflow.runtime_s", 63.0, "worse", 1.0),
        ("workflow.io.access_pattern.random", 0.04, "within", None),
        ("workflow.io.access_pattern.random", 0.06, "worse", None),
        ("apps.0.interface", "mpiio", "changed", None),
        ("workflow.processes", 8, "changed", -0.5),
        ("job.nodes", 4, "unknown", None),
    ],
)
def test_a_difference_has_a_size_and_a_direction(keys, value, status, change):
    (one,) = differences(tree(), put(tree(), keys, value)).differences
    assert (one.status, one.after) == (status, value)
    assert one.change == pytest.approx(change, abs=1e-3) if change is not None else one.change is None


def test_calls_that_take_little_time_do_not_matter():
    # The file has 12.9 ms of 34.4 ms of I/O; then 0.1 ms.
    slow = put(tree(), "files.0.io.ops.write", 5000)
    assert [(one.status, one.matters) for one in differences(tree(), slow).differences] == [("worse", True)]
    quick = [put(one, "files.0.io.time_s", dict.fromkeys(("read", "write", "metadata", "total"), 1e-4)) for one in (tree(), slow)]
    assert [(one.status, one.matters) for one in differences(*quick).differences] == [("worse", False)]


def test_most_important_difference_comes_first():
    b = put(put(put(tree(), "files.5.opens", 500), "workflow.io.ops.write", 8000), "workflow.runtime_s", 32.0)
    b = put(b, "workflow.io.ops.read", 100)
    shown = [(one.matters, one.status, one.attribute) for one in differences(tree(), b).differences]
    assert shown[0] == (True, "worse", "workflow.io.ops.write")
    assert shown[-1] == (False, "within", "workflow.runtime_s")
    assert [one[0] for one in shown] == sorted((one[0] for one in shown), reverse=True)


def test_entities_are_matched_by_name():
    a, b = tree(), tree()
    b["files"] = b["files"][::-1]
    assert differences(a, b).differences == []
    b["files"][0]["path"] = "/new"
    status = {one.attribute: one.status for one in differences(a, b).differences}
    assert status == {'files[path="/new"]': "new", f'files[path="{a["files"][-1]["path"]}"]': "gone"}


def test_unlisted_files_are_neither_new_nor_removed():
    a = put(tree(), "files", tree()["files"][:3])
    assert compare(Side(SOURCE, (figures(a).tree,), False), side(tree()), version="0").differences == []


def test_folders_of_jobs_are_stripped():
    a, b = (put(tree(), "files.0.path", f"/s/job{n}/x") for n in (1, 2))
    assert {one.status for one in differences(a, b).differences} == {"new", "gone"}
    assert differences(a, b, strip=("/s/job*",)).differences == []


def test_figures_that_an_app_shares_with_the_workflow_are_marked():
    b = put(put(tree(), "workflow.io.ops.write", 9000), "apps.0.io.ops.write", 9000)
    diff = differences(tree(), b)
    assert [(one.attribute.partition("[")[0], one.same_as) for one in diff.differences] == [
        ("apps", "workflow.io.ops.write"),
        ("workflow.io.ops.write", None),
    ]
    assert diff.counts.worse == 1
    assert "apps[" not in as_text(diff)
    assert "apps[" in as_text(diff, everything=True)


def test_alias_is_not_a_change():
    """A single app is the same under any name, also in its phases and interfaces."""
    b = tree()
    for keys in ("apps.0.name", "phases.0.app", "interfaces.0.app", "interfaces.1.app"):
        put(b, keys, "cm1")
    assert differences(tree(), b).differences == []


def test_rank_number_is_not_a_figure():
    b = put(put(tree(), "apps.0.balance.slowest_rank", 7), "apps.0.balance.busiest_rank", 3)
    assert differences(tree(), b).differences == []


def test_phases_of_another_kind_are_not_compared():
    b = tree()
    b["phases"][0] |= {"kind": "mixed", "runtime_s": 1.0}
    b["phases"][0]["io"]["ops"]["write"] = 0
    assert [one.attribute for one in differences(tree(), b).differences] == ['phases[app="v3-cm1like-16r", index=0].kind']


def test_attribute_unknown_on_one_side_did_not_change():
    b = put(tree(), "workflow.io_time_share", None)
    diff = differences(tree(), b)
    assert [(one.status, one.matters) for one in diff.differences] == [("unknown", False)]
    assert (diff.counts.unknown, diff.counts.changed) == (1, 0)
    text = as_text(diff)
    assert "1 known in one only; none matters." in text
    assert "io_time_share" not in text
    assert "io_time_share" in as_text(diff, everything=True)


def test_profile_without_times_lacks_no_phases():
    b = put(put(tree(), "phases", []), "workflow.runtime_s", None)
    assert {one.status for one in differences(tree(), b).differences} == {"unknown"}
    b = put(tree(), "phases", [])
    assert {one.status for one in differences(tree(), b).differences} == {"gone"}


def test_equally_changed_quantiles_are_one_row():
    b = tree()
    for name in ("min", "p50", "p90", "max"):
        put(b, f"workflow.io.transfer_size.write.{name}", 16)
    diff = differences(tree(), b)
    assert diff.counts.worse == 4
    rows = [line for line in as_text(diff).splitlines() if "transfer_size" in line]
    assert rows == ["* worse  workflow.io.transfer_size.write.p50 (and min, p90, max)"]
    put(b, "workflow.io.transfer_size.write.max", 1 << 20)
    rows = [line.split(maxsplit=2)[2] for line in as_text(differences(tree(), b)).splitlines() if "transfer_size" in line]
    assert rows == ["workflow.io.transfer_size.write.p50 (and min, p90)", "workflow.io.transfer_size.write.max"]


def test_footprint_equal_to_the_bytes_is_redundant():
    b = tree()
    for part in ("bytes", "footprint"):
        put(b, f"workflow.io.{part}.written", 99_000_000)
    assert [(one.attribute, one.same_as) for one in differences(tree(), b).differences] == [
        ("workflow.io.bytes.written", None),
        ("workflow.io.footprint.written", "workflow.io.bytes.written"),
    ]


class TestTheRunInAFewLines:
    def test_unchanged_attributes_are_included(self):
        one = put(tree(), "workflow.io.ops.sync", 0)
        lines = as_text(differences(one, put(deepcopy(one), "workflow.runtime_s", 63.0))).splitlines()
        assert lines[3].split() == ["A", "B"]
        assert [re.split(r"\s{2,}", line) for line in lines[4 : lines.index("", 4)] if "slowest" not in line] == [
            ["processes", "16", "16"],
            ["run time", "31.5 s", "63 s", "+100 %"],
            ["I/O time, all processes", "34.4 ms", "34.4 ms"],
            ["I/O share of run time", "0.11 %", "0.11 %"],
            ["read", "1.12 MB", "1.12 MB"],
            ["written", "31.5 MB", "31.5 MB"],
            ["reads", "272", "272"],
            ["writes", "7,800", "7,800"],
            ["flushes", "0", "0"],
            ["metadata operations", "76", "76"],
            ["files", "6", "6"],
        ]
        shares = [line for line in lines if "0.11 %" in line and "at most" not in line]
        assert len({line.index("0.11 %") for line in shares}) == 1
        rows = as_markdown(differences(tree(), put(tree(), "workflow.runtime_s", 63.0))).splitlines()
        assert "| run time | 31.5 s | 63 s | +100 % |" in rows

    @pytest.mark.parametrize(
        ("calls_s", "told"),
        [
            ((0.3, 0.02), "at most 0.95 % of the run time"),
            ((0.3, 0.32), None),  # 1 % of the run of 31.5 s.
            ((0.3, None), None),  # A document without time in libraries: the run may wait there.
        ],
    )
    def test_waiting_is_stated_if_time_in_libraries_is_known(self, calls_s, told):
        diff = differences(*(put(tree(), "apps.0.balance.slowest_call_time_s", seconds) for seconds in calls_s))
        for text in (as_text(diff), as_markdown(diff)):
            assert (told in text) if told else ("hardly matter" not in text)
        short = [line for line in as_text(diff).splitlines() if line.startswith("I/O calls, slowest process")]
        assert len(short) == 1 and "300 ms" in short[0]

    @pytest.mark.parametrize("key", ["io_time_share", "io_time_share_slowest"])
    def test_share_of_the_run_suffices_to_make_io_noticeable(self, key):
        both = [put(tree(), "apps.0.balance.slowest_call_time_s", 0.01) for _ in range(2)]
        assert "hardly matter" in as_text(differences(*both))
        assert "hardly matter" not in as_text(differences(both[0], put(both[1], f"workflow.{key}", 0.2)))

    def test_runs_of_a_baseline_are_their_median(self):
        runs = [put(tree(), "workflow.runtime_s", seconds) for seconds in (20.0, 40.0, 60.0)]
        (figure,) = [one for one in compare(side(*runs), side(tree()), version="0").figures if one.unit == "seconds"][:1]
        assert (figure.attribute, figure.before) == ("workflow.runtime_s", 40.0)


def test_histograms_are_shown_in_one_line():
    path = "workflow.io.transfer_size.write.histogram"
    (one,) = differences(tree(), put(tree(), path, {"0-1K": 120, "1M-4M": 7680})).differences
    assert (one.attribute, one.before, one.after) == (path, "4K-16K: 7,680", "1M-4M: 7,680")
    (one,) = differences(tree(), put(tree(), path, {"0-1K": 121, "4K-16K": 7679})).differences
    assert one.status == "within"


def test_several_runs_are_their_median_and_their_noise():
    runs = [put(tree(), "workflow.runtime_s", seconds) for seconds in (20.0, 40.0, 60.0)]
    diff = compare(side(*runs), side(put(tree(), "workflow.runtime_s", 59.0)), version="0")
    (one,) = diff.differences
    assert (one.before, one.after, one.status) == (40.0, 59.0, "within")


def test_attributes_missing_in_a_saved_baseline_are_no_difference():
    saved = baseline_of([run_of(figures(tree()))])
    a = Side(SOURCE, tuple(runs_of(saved, "x")), True, is_saved=True)
    assert compare(a, side(tree()), version="0").differences == []
    assert compare(side(tree()), a, version="0").differences == []


def test_many_new_entities_share_one_row():
    b = tree()
    b["files"] += [dict(b["files"][0], path=f"/new/{i}") for i in range(50)]
    b["dataset"]["files"] += 50
    text = as_text(differences(tree(), b))
    assert 'files[path="/new/0"] and 49 more' in text
    assert text.count("/new/") == 1


def test_markdown_is_a_table_that_names_cannot_leave():
    b = put(tree(), "files.0.path", "a|b`c\n::error::<x>")
    lines = as_markdown(differences(tree(), b)).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    rows = rows[next(i for i, row in enumerate(rows) if "attribute" in row) :]
    assert len(rows) == 4
    assert all(line.isprintable() for line in lines)
    assert all(row.replace("\\|", "").count("|") == 7 for row in rows)
