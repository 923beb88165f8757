"""The verdict of a check as SARIF: the alerts of code scanning, and how they are recognised again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from check_documents import check, checks, excepted, judgement, mixed, passed, unknown
from hypothesis import given, settings
from invented import examples

from vani.render import code_hosts
from vani.render.code_hosts import to_sarif as render
from vani.schema.check import PolicyPlace

SCHEMA = Path(__file__).resolve().parents[1] / "data" / "sarif-schema-2.1.0.json"


@pytest.fixture(scope="module")
def valid():
    jsonschema = pytest.importorskip("jsonschema")
    return jsonschema.Draft4Validator(json.loads(SCHEMA.read_text())).validate


def run_of(document, **settings) -> dict:
    return json.loads(render(document, version="1.2.3", **settings))["runs"][0]


def test_a_document_is_valid_against_the_schema(valid):
    valid(json.loads(render(mixed(), version="1.2.3")))
    valid(json.loads(render(check(), version="1.2.3")))


@settings(max_examples=examples(60), deadline=None)
@given(checks())
@pytest.mark.slow
def test_any_document_is_valid_for_upload(valid, document):
    text = render(document, version="1.2.3")
    assert text == render(document, version="1.2.3")
    whole = json.loads(text)
    valid(whole)
    run = whole["runs"][0]
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(set(ids)) == len(ids) == len({one.check for one in document.judgements})
    assert all(0 < len(id_) <= 255 for id_ in ids)
    assert all(ids[one["ruleIndex"]] == one["ruleId"] for one in run["results"])
    # No lone surrogate, no NaN, nothing that a terminal interprets.
    json.dumps(whole, ensure_ascii=False, allow_nan=False).encode()
    for result in run["results"]:
        assert result["message"]["text"].replace("\n\n", "").isprintable()
        assert "](" not in result["message"]["text"]
        assert result["locations"][0]["physicalLocation"]["region"]["startLine"] >= 1


def test_failure_is_a_result_at_its_line_of_the_policy():
    result = run_of(mixed())["results"][0]
    mark = result["partialFingerprints"]["vaniJudgement/v1"]
    assert result == {
        "ruleId": "metadata-ops",
        "ruleIndex": 2,
        "kind": "fail",
        "level": "error",
        "message": {"text": "4,097 metadata operations; at most 100 are allowed; open the file once"},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": "vani.toml"}, "region": {"startLine": 7}},
                "logicalLocations": [{"fullyQualifiedName": "workflow.io.ops.metadata", "kind": "member"}],
            }
        ],
        "partialFingerprints": {"primaryLocationLineHash": f"{mark}:1", "vaniJudgement/v1": mark},
        "properties": {
            "id": "metadata-ops: workflow.io.ops.metadata",
            "kind": "budget",
            "level": "error",
            "attribute": "workflow.io.ops.metadata",
            "target": None,
            "value": 4097,
            "limit": "<= 100",
            "baseline": None,
            "change": None,
            "reason": "the metadata server is shared",
            "todo": "open the file once",
        },
    }


def test_passed_checks_are_not_results_since_code_hosts_show_all():
    run = run_of(mixed())
    assert [result["ruleId"] for result in run["results"]] == ["metadata-ops", "bandwidth-drop", "random"]
    assert {result["kind"] for result in run["results"]} == {"fail"}
    assert run["properties"]["counts"] == {
        "error": 1, "warning": 1, "note": 0, "passed": 1, "excepted": 1, "unknown": 1,
    }  # fmt: skip
    assert run["properties"]["verdict"] == "fail"


def test_exception_becomes_a_suppression():
    result = run_of(check(excepted()))["results"][0]
    assert result["suppressions"] == [
        {
            "kind": "external",
            "status": "accepted",
            "justification": "until 2027-03-31: waits for the new reader",
        }
    ]
    assert (result["level"], result["properties"]["level"]) == ("note", "warning")


def test_unjudged_checks_are_notifications_of_the_run():
    run = run_of(check(unknown(level="warning"), unknown("other")))
    assert run["results"] == []
    assert run["invocations"] == [
        {
            "executionSuccessful": True,
            "toolExecutionNotifications": [
                {
                    "level": level,
                    "message": {"text": "the attribute is null: no end of a file is known"},
                    "locations": [
                        {
                            "physicalLocation": {
                                "artifactLocation": {"uri": "vani.toml"},
                                "region": {"startLine": 7},
                            },
                            "logicalLocations": [
                                {"fullyQualifiedName": "workflow.io.ops.metadata", "kind": "member"}
                            ],
                        }
                    ],
                    "associatedRule": {"id": name, "index": index},
                }
                for level, name, index in [("note", "bandwidth", 0), ("warning", "other", 1)]
            ],
        }
    ]


def test_rule_states_what_is_allowed_and_why():
    rule = run_of(check(judgement()))["tool"]["driver"]["rules"]
    assert rule == [
        {
            "id": "metadata-ops",
            "name": "metadata-ops",
            "shortDescription": {"text": "workflow.io.ops.metadata <= 100"},
            "fullDescription": {"text": "the metadata server is shared"},
            "defaultConfiguration": {"level": "error"},
            "help": {
                "text": "attribute: workflow.io.ops.metadata\nallowed: <= 100\nreason: the metadata server is shared"
            },
            "properties": {"tags": ["io", "performance", "budget"], "problem.severity": "error"},
        }
    ]


def test_alert_keeps_its_identity():
    before = judgement(id="m: a")
    after = judgement(
        id="m: a", value=9, limit="<= 3", message="other", place=PolicyPlace(path="vani.toml", line=99)
    )
    first, second = (run_of(check(one))["results"][0]["partialFingerprints"] for one in (before, after))
    assert first == second


def test_files_judged_by_one_policy_line_are_separate_alerts():
    found = run_of(check(judgement(id="m: a.h5", target="a.h5"), judgement(id="m: b.h5", target="b.h5")))[
        "results"
    ]
    assert len({result["partialFingerprints"]["primaryLocationLineHash"] for result in found}) == 2
    assert [result["locations"][0]["logicalLocations"][-1]["name"] for result in found] == ["a.h5", "b.h5"]


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("ci/my policy.toml", "ci/my%20policy.toml"),
        ("/home/me/vani.toml", "file:///home/me/vani.toml"),
        ("a:b.toml", "a%3Ab.toml"),
        ("\udc80", "%80"),
        ("\ud800", "%ED%A0%80"),
    ],
)
def test_a_path_is_a_uri(path, uri):
    place = run_of(check(judgement(place=PolicyPlace(path=path, line=3))))["results"][0]["locations"][0]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_result_without_a_policy_line_points_to_the_profile():
    place = run_of(check(judgement(place=None), policy=None))["results"][0]["locations"][0]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "runs/profile.yaml"},
        "region": {"startLine": 1},
    }


def test_results_beyond_a_hosts_limit_are_counted(monkeypatch):
    monkeypatch.setattr(code_hosts, "MAX_RESULTS", 2)
    run = run_of(check(*(judgement("m", id=f"m: {i}") for i in range(5)), passed("n")))
    assert len(run["results"]) == 2
    assert run["invocations"][0]["toolExecutionNotifications"] == [
        {"level": "warning", "message": {"text": "3 results are left out: code hosts take 2"}}
    ]
