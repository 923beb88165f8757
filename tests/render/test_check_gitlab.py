"""The verdict of a check as a code quality report of GitLab."""

from __future__ import annotations

import json

import pytest
from check_documents import check, checks, judgement, mixed
from hypothesis import given, settings
from invented import examples

from vani.render.check.gitlab import render
from vani.schema.check import PolicyPlace


def entries(document) -> list[dict]:
    return json.loads(render(document, version="1.2.3"))


def test_what_failed_is_an_entry_and_nothing_else_is():
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
def test_a_path_never_leads_out_of_the_repository(path, written):
    found = entries(check(judgement(place=PolicyPlace(path=path, line=3))))
    assert found[0]["location"] == {"path": written, "lines": {"begin": 3}}


def test_a_fingerprint_depends_on_the_id_alone():
    one, other = (
        judgement(id="a"),
        judgement(id="a", message="b", value=3, place=PolicyPlace(path="c", line=1)),
    )
    assert entries(check(one))[0]["fingerprint"] == entries(check(other))[0]["fingerprint"]


@settings(max_examples=examples(100), deadline=None)
@given(checks())
def test_any_document_has_all_that_gitlab_requires(document):
    text = render(document, version="1.2.3")
    assert text == render(document, version="1.2.3")
    found = json.loads(text)
    assert len(found) == sum(one.status == "fail" for one in document.judgements)
    assert len({entry["fingerprint"] for entry in found}) == len(found)
    for entry in found:
        assert entry.keys() == {"description", "check_name", "fingerprint", "severity", "location"}
        assert entry["description"].isprintable()
        assert entry["check_name"].isprintable() and entry["check_name"]
        path = entry["location"]["path"]
        assert path and not path.startswith(("/", "./", "../")) and ".." not in path.split("/")
        assert path.isprintable()
        assert entry["location"]["lines"]["begin"] >= 1
