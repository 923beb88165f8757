"""`python -m tests.catalogue`: valid labels, correct counts, and the accuracy of the catalogue."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.catalogue.__main__ import FOLDERS, SHARED, main
from tests.catalogue.judged import (
    Finding,
    Judged,
    Pathology,
    each_program_once,
    find_traces,
    judge_advice,
    judge_traces,
    tally,
)
from tests.catalogue.labels import LABELS, Labels, read_labels
from tests.catalogue.report import as_text, hand_made_cases
from vani.advisors.catalogue import rules
from vani.errors import InputError
from vani.schema.advice import Advice, ProfileRef, Recommendation, SystemRef, Target
from vani.systems import load_system

LEAST_PRECISION, LEAST_RECALL = 0.94, 0.9
"""The catalogue's results on the shared traces, rounded down. Raise them with it; never lower them."""

with_shared = pytest.mark.skipif(
    not (SHARED / "traces" / "MANIFEST.yaml").is_file(), reason="the shared traces are not here"
)

SMALL = """
machines: [generic-lustre]
verdicts: {MAT001: states something}
kinds:
  funnel: {means: one writes, rules: [POS004]}
  small: {means: many small requests, rules: [POS002, MIO001]}
  hole: {means: nothing finds it, rules: []}
cases:
- traces: [a, b]
  pathologies:
    funnel: rank 0 writes 1 GB
    hole: nobody tells
    small: {reason: requests of 4 KiB, rules: [POS002]}
  useful: {WFL001: steps belong together}
  acceptable: {LUS002: one target is enough}
  wrong: {BB002: results}
- traces: [c]
  acceptable: {small: too few to matter}
- traces: [d]
  unreadable: killed
"""


@pytest.fixture
def small(tmp_path: Path) -> Labels:
    return labels_of(tmp_path, SMALL)


def labels_of(folder: Path, text: str) -> Labels:
    place = folder / "labels.yaml"
    place.write_text(text)
    return read_labels(place)


def advice(*ids: str, severity: str = "low") -> Advice:
    recommendations = [
        Recommendation(
            rule=id_,
            name=id_,
            severity=severity,
            confidence=1,
            target=Target(kind="job"),
            current={},
            recommended={},
            evidence=[],
            reason="",
            expected=None,
            apply=[],
            source=[],
        )
        for id_ in ids
    ]
    return Advice(
        profile=ProfileRef(path=None, sha256=""),
        system=SystemRef(name=None, sha256=""),
        recommendations=recommendations,
        no_recommendation=[],
    )


# The labels


def test_every_label_names_a_rule_or_a_kind_and_has_a_reason():
    labels = read_labels()
    known = {rule.id for rule in rules()}
    for kind in labels.kinds.values():
        assert set(kind.rules) <= known
        assert kind.means.endswith(".")
    for case in labels.cases:
        named = {key for part in (case.useful, case.acceptable, case.wrong) for key in part}
        assert named <= known | labels.kinds.keys()
        assert case.pathologies.keys() <= labels.kinds.keys()
        assert case.unreadable or case.program
        for name, reason in case.reasons():
            assert reason.endswith("."), (case.traces[0], name)
            assert len(reason.split()) >= 5, (case.traces[0], name)


def test_every_kind_is_somewhere():
    labels = read_labels()
    assert {name for case in labels.cases for name in case.pathologies} == labels.kinds.keys()


@with_shared
def test_every_shared_trace_has_a_label_and_every_label_a_trace():
    manifest = yaml.safe_load((SHARED / "traces" / "MANIFEST.yaml").read_text())
    there = {place.name for place in find_traces(SHARED / name for name in FOLDERS)}
    assert {one["name"] for one in manifest} <= there
    assert read_labels().by_trace.keys() == there


@with_shared
def test_traces_of_one_command_share_one_judgement():
    manifest = yaml.safe_load((SHARED / "traces" / "MANIFEST.yaml").read_text())
    labels = read_labels()
    judgement: dict[str, str] = {}
    for one in manifest:
        # Without recorded MPI-IO, the same command is a different trace to judge.
        if one["command"].startswith("ior") and not one["name"].startswith("v3-posixonly"):
            first = labels.by_trace[one["name"]].traces[0]
            assert judgement.setdefault(one["command"], first) == first


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("rules: [POS004]", "rules: [POS04]"), "kind funnel names POS04, which is no rule"),
        (("MAT001", "MAT01"), "verdicts name MAT01, which is no rule"),
        (("WFL001", "WFL01"), "a: WFL01 is neither a rule nor a kind"),
        (("hole: nobody", "whole: nobody"), "a: the pathology whole is none of the kinds"),
        (("{LUS002: one", "{WFL001: one"), "a: WFL001 has two labels"),
        (("{BB002: results", "{POS004: results"), "a: POS004 finds a pathology of it, and is not right"),
        (("KiB, rules: [POS002]", "KiB, rules: [POS005]"), "a: small names POS005, which the kind does not"),
        (("traces: [c]", "traces: [b]"), "trace b is labelled twice"),
        (("BB002: results", "BB002: ''"), "a: BB002 has no reason"),
        (
            ("means: one writes", "mean: one writes"),
            "unknown key 'mean' in kinds.funnel; did you mean 'means'?",
        ),
    ],
)
def test_impossible_label_is_reported(tmp_path, change, said):
    assert change[0] in SMALL
    with pytest.raises(InputError) as error:
        labels_of(tmp_path, SMALL.replace(*change))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


# Counting


def test_worth_of_a_named_rule_precedes_that_of_its_kind(small):
    a, _, c = (small.by_trace[name] for name in "abc")
    worth = {id_: small.worth(a, id_) for id_ in ("POS004", "POS002", "MIO001", "WFL001", "LUS002", "BB002")}
    # MIO001 finds the kind, but not this pathology of it.
    assert worth == {
        "POS004": "right",
        "POS002": "right",
        "MIO001": "wrong",
        "WFL001": "right",
        "LUS002": "neither",
        "BB002": "wrong",
    }
    assert small.worth(c, "MIO001") == "neither"
    assert small.worth(c, "POS004") == "wrong"


def test_a_rule_counts_once_for_a_trace_and_verdicts_do_not_count(small):
    judged = judge_advice(
        small, small.by_trace["a"], "a", "m", advice("MAT001", "BB002", "POS004", "BB002", "LUS002")
    )
    assert [(one.rule, one.worth, one.recommendations, one.first) for one in judged.findings] == [
        ("BB002", "wrong", 2, True),
        ("POS004", "right", 1, False),
        ("LUS002", "neither", 1, False),
    ]
    assert [(one.kind, one.found_by) for one in judged.pathologies] == [
        ("funnel", ("POS004",)),
        ("hole", ()),
        ("small", ()),
    ]
    counts = tally(judged.findings, judged.pathologies)
    assert (counts.precision, counts.recall) == (1 / 2, 1 / 3)


def test_precision_is_undefined_without_recommendations():
    assert tally((), ()).precision is None
    assert tally((), ()).recall is None


def test_traces_of_one_program_count_once(small):
    judged = Judged(machines=["m"], traces=["a", "b", "c"])
    for trace, ids in (("a", ("POS004",)), ("b", ("POS004", "BB002")), ("c", ("BB002",))):
        judged.add(judge_advice(small, small.by_trace[trace], trace, "m", advice(*ids)))
    # For a and b one half each: 1 right, 0.5 wrong; for c 1 wrong. One of three pathologies in both.
    precision, recall = each_program_once(small, judged)
    assert precision == pytest.approx(1 / 2.5)
    assert recall == pytest.approx(1 / 3)


@pytest.mark.slow
def test_rules_that_never_spoke_are_named_with_the_cases_that_make_them(small):
    judged = Judged(
        machines=["m"],
        findings=[Finding("POS004", "a", "m", "right", "low", 1, True)],
        pathologies=[Pathology("funnel", "a", "m", ("POS004",), ("POS004",))],
        traces=["a"],
    )
    text = as_text(small, judged, Path("nowhere"))
    never = text.split("Never fired")[1].split("\n\n")[0]
    assert "POS004" not in never
    assert "MAT001" not in never
    assert f"\n  LUS001 stripe-alignment{' ' * 15}" in never
    assert all(hand_made_cases(rule.id) for rule in rules())


# The command


def run(capsys, *arguments: str | Path) -> tuple[int, str, str]:
    status = main([str(one) for one in arguments])
    done = capsys.readouterr()
    return status, done.out, done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--traces", "{tmp}/none"), "{tmp}/none: is not a folder of traces"),
        (("--traces", "{tmp}"), "none of the traces is labelled"),
        (("--machine", "nowhere"), "no machine and no file is called 'nowhere'"),
        (("--labels", "{tmp}/none.yaml"), "{tmp}/none.yaml: "),
    ],
)
def test_unjudgeable_trace_gives_one_line(capsys, tmp_path, arguments, said):
    status, out, err = run(capsys, *(one.format(tmp=tmp_path) for one in arguments))
    assert (status, out) == (2, "")
    assert said.format(tmp=tmp_path) in err
    assert err.count("\n") == 1


def test_missing_shared_traces_are_reported_in_one_line(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("tests.catalogue.__main__.SHARED", tmp_path)
    status, out, err = run(capsys)
    assert (status, out) == (2, "")
    assert err == (
        "tests.catalogue: there are no shared traces beside the repository; name a folder of labelled ones by"
        " --traces\n"
    )


@with_shared
@pytest.mark.slow
def test_some_traces_are_judged_and_every_finding_is_written(capsys, tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    for name in ("v3-cm1like-16r", "v3-killed-2r", "v2-ior-fpp-posix-8r"):
        (folder / name).symlink_to(SHARED / "traces" / name, target_is_directory=True)
    (folder / "of nobody").mkdir()
    found = tmp_path / "found.json"
    status, out, err = run(capsys, "--traces", folder, "--machine", "generic-lustre", "--json", found)
    assert (status, err) == (0, "")
    assert out.startswith("2 traces, each as on generic-lustre\n")
    assert "refused, as they should be: v3-killed-2r\n" in out
    assert "without labels, left out: of nobody\n" in out
    tree = json.loads(found.read_text())
    assert tree["traces"] == ["v2-ior-fpp-posix-8r", "v3-cm1like-16r"]
    assert {one["kind"] for one in tree["pathologies"]} == {
        "rank-zero-funnel",
        "small-sequential",
        "read-by-all",
    }
    labels = read_labels()
    for one in tree["findings"]:
        assert one["worth"] == labels.worth(labels.by_trace[one["trace"]], one["rule"])
    assert tree["total"]["right"] == sum(one["worth"] == "right" for one in tree["findings"])


def test_trace_that_should_be_unreadable_but_is_read_is_reported(small, tmp_path, monkeypatch):
    monkeypatch.setattr("tests.catalogue.judged.profile", lambda *_, **__: None)
    judged = judge_traces(small, [tmp_path / "d"], [("m", load_system("generic-lustre"))], tmp_path)
    assert judged.unexpected == ["d was read, but should not be: killed"]


@pytest.mark.slow
@with_shared
def test_catalogue_accuracy_does_not_fall(tmp_path):
    labels = read_labels(LABELS)
    machines = [(name, load_system(name)) for name in labels.machines]
    traces = list(find_traces(SHARED / name for name in FOLDERS))
    judged = judge_traces(labels, traces, machines, tmp_path)
    assert judged.unexpected == []
    assert judged.unlabelled == []
    counts = tally(judged.findings, judged.pathologies)
    assert counts.precision >= LEAST_PRECISION
    assert counts.recall >= LEAST_RECALL
