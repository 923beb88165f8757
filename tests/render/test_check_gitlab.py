"""The verdict of a check as a code quality report of GitLab."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from check_documents import check, checks, judgement, mixed
from hypothesis import given, settings
from invented import examples

from vani.render.code_hosts import to_gitlab as render
from vani.schema.check import PolicyPlace

DATA = Path(__file__).resolve().parents[1] / "data"
# GitLab's own check of each entry; invalid ones are silently dropped.
DROPPED_UNLESS = jsonschema.Draft202012Validator(json.loads((DATA / "gitlab-codeclimate.json").read_text()))
# The requirements in its documentation ("Code Quality report format", doc/ci/testing/code_quality.md).
DOCUMENTED = jsonschema.Draft202012Validator({
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "check_name": {"type": "string", "minLength": 1},
            "description": {"type": "string", "minLength": 1, "pattern": "^[^\\n]*$"},
            "fingerprint": {"type": "string", "minLength": 1},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "minLength": 1, "not": {"pattern": "^(/|\\./|\\.\\./)"}},
                    "lines": {"required": ["begin"], "properties": {"begin": {"type": "integer", "minimum": 1}}},
                },
            },
        },
    },
})  # fmt: skip


def entries(document) -> list[dict]:
    text = render(document, version="1.2.3")
    # Its parser accepts no byte order mark.
    assert text.startswith("[")
    report = json.loads(text)
    DOCUMENTED.validate(report)
    for entry in report:
        DROPPED_UNLESS.validate(entry)
    return report


@pytest.mark.parametrize("left_out", ["description", "fingerprint", "severity", "location", "check_name"])
def test_schemas_refuse_an_entry_without_keys_gitlab_requires(left_out):
    entry = entries(mixed())[0]
    del entry[left_out]
    assert not DOCUMENTED.is_valid([entry])
    # GitLab's own check ignores the name of the check.
    assert DROPPED_UNLESS.is_valid(entry) == (left_out == "check_name")


def test_only_failures_become_entries():
    found = entries(mixed())
    # printf 'vani.check/1\0<id>' | sha256sum
    assert [entry.pop("fingerprint") for entry in found] == [
        "6e43f0243c93ecbcd7a4f934c3596414",
        "6394ff24f2ae408a9155be278ac95e5a",
    ]
    assert found == [
        {
            "description": "4,097 metadata operations; at most 100 are allowed; open the file once",
            "check_name": "metadata-ops",
            "severity": "major",
            "location": {"path": "vani.toml", "lines": {"begin": 7}},
        },
        {
            "description": "half as fast as the baseline",
            "check_name": "bandwidth-drop",
            "severity": "minor",
            "location": {"path": "vani.toml", "lines": {"begin": 12}},
        },
    ]


@pytest.mark.parametrize(("level", "severity"), [("error", "major"), ("warning", "minor"), ("note", "info")])
def test_a_level_is_a_severity(level, severity):
    assert entries(check(judgement(level=level)))[0]["severity"] == severity


def test_nothing_failed_is_an_empty_report():
    assert render(check(), version="1.2.3") == "[]\n"


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ("./ci/vani.toml", "ci/vani.toml"),
        ("ci//vani.toml", "ci/vani.toml"),
        ("../vani.toml", "vani.toml"),
        ("/builds/group/app/vani.toml", "builds/group/app/vani.toml"),
    ],
)
def test_path_never_leaves_the_repository(path, written):
    found = entries(check(judgement(place=PolicyPlace(path=path, line=3))))
    assert found[0]["location"] == {"path": written, "lines": {"begin": 3}}


def test_fingerprint_depends_only_on_the_id():
    one, other = (
        judgement(id="a"),
        judgement(id="a", message="b", value=3, place=PolicyPlace(path="c", line=1)),
    )
    assert entries(check(one))[0]["fingerprint"] == entries(check(other))[0]["fingerprint"]


@settings(max_examples=examples(100), deadline=None)
@given(checks())
@pytest.mark.slow
def test_any_document_has_all_that_gitlab_requires(document):
    text = render(document, version="1.2.3")
    assert text == render(document, version="1.2.3")
    found = entries(document)
    assert len(found) == sum(one.status == "fail" for one in document.judgements)
    assert len({entry["fingerprint"] for entry in found}) == len(found)
    for entry in found:
        assert entry.keys() == {"description", "check_name", "fingerprint", "severity", "location"}
        assert entry["description"].isprintable()
        assert entry["check_name"].isprintable() and entry["check_name"]
        path = entry["location"]["path"]
        assert path and not path.startswith(("/", "./", "../")) and ".." not in path.split("/")
        assert path.isprintable()
