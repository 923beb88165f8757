"""The verdict of a check as JUnit XML, for reporters of Jenkins, GitLab and GitHub."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from check_documents import check, checks, excepted, judgement, mixed, passed, unknown
from hypothesis import given, settings
from invented import examples

from vani.render.code_hosts import to_junit as render

# Attributes (`!` if required) and children of each element in `junit-10.xsd` (Jenkins' xUnit plug-in 3, which
# validates), without elements that only reruns of tests have.
ALLOWED = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name!", "tests!", "failures!", "errors!", "group", "time", "skipped", "timestamp", "hostname", "id",
         "package", "file", "log", "url"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), {"property"}),
    "property": ({"name!", "value!"}, set()),
    "testcase": ({"name!", "time", "classname", "group"}, {"skipped", "error", "failure", "system-out", "system-err"}),
    "failure": ({"type", "message"}, set()),
    "skipped": ({"type", "message"}, set()),
    "system-out": (set(), set()),
}  # fmt: skip
# XML 1.0, fifth edition, production 2.
ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def root_of(document) -> ET.Element:
    return ET.fromstring(render(document, version="1.2.3").encode())


def problems(element: ET.Element) -> list[str]:
    attributes, children = ALLOWED[element.tag]
    found = [
        f"{element.tag}@{name}" for name in set(element.keys()) - {name.rstrip("!") for name in attributes}
    ]
    found += [
        f"{element.tag} lacks {name}"
        for name in attributes
        if name[-1] == "!" and name[:-1] not in element.attrib
    ]
    for child in element:
        found += problems(child) if child.tag in children else [f"{element.tag}/{child.tag}"]
    return found


def test_a_document_as_a_whole():
    document = check(judgement(), passed(), excepted("metadata-ops", id="metadata-ops: old.h5", todo=None))
    assert (
        render(document, version="1.2.3")
        == """\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="vani check" tests="3" failures="1" errors="0" time="0">
  <testsuite name="metadata-ops" tests="2" failures="1" errors="0" skipped="1" time="0" file="vani.toml">
    <properties>
      <property name="vani" value="1.2.3" />
      <property name="profile" value="runs/profile.yaml" />
      <property name="verdict" value="fail" />
      <property name="fail_on" value="error" />
    </properties>
    <testcase name="metadata-ops: workflow.io.ops.metadata" classname="vani.metadata-ops" time="0">
      <failure type="error" message="4,097 metadata operations; at most 100 are allowed; open the file once">4,097 metadata operations; at most 100 are allowed; open the file once
attribute: workflow.io.ops.metadata
value: 4097
allowed: &lt;= 100
reason: the metadata server is shared
what to do: open the file once
place: vani.toml:7</failure>
    </testcase>
    <testcase name="metadata-ops: old.h5" classname="vani.metadata-ops" time="0">
      <skipped type="excepted" message="excepted until 2027-03-31: 4,097 metadata operations; at most 100 are allowed">excepted until 2027-03-31: 4,097 metadata operations; at most 100 are allowed</skipped>
      <system-out>4,097 metadata operations; at most 100 are allowed
attribute: workflow.io.ops.metadata
value: 4097
allowed: &lt;= 100
reason: the metadata server is shared
excepted until: 2027-03-31
exception: waits for the new reader
place: vani.toml:7</system-out>
    </testcase>
  </testsuite>
  <testsuite name="share" tests="1" failures="0" errors="0" skipped="0" time="0" file="vani.toml">
    <properties>
      <property name="vani" value="1.2.3" />
      <property name="profile" value="runs/profile.yaml" />
      <property name="verdict" value="fail" />
      <property name="fail_on" value="error" />
    </properties>
    <testcase name="share: workflow.io.ops.metadata" classname="vani.share" time="0">
      <system-out>a share of 0.25
attribute: workflow.io.ops.metadata
value: 0.25
allowed: &lt;= 0.5
reason: the metadata server is shared
place: vani.toml:7</system-out>
    </testcase>
  </testsuite>
</testsuites>
"""
    )


@settings(max_examples=examples(100), deadline=None)
@given(checks())
@pytest.mark.slow
def test_every_document_is_accepted_by_other_readers(document):
    text = render(document, version="1.2.3")
    assert text == render(document, version="1.2.3")
    assert not ILLEGAL.search(text)
    root = ET.fromstring(text.encode())
    assert problems(root) == []
    cases = list(root.iter("testcase"))
    assert len({case.get("name") for case in cases}) == len(cases) == len(document.judgements)
    assert not any("[[" in (element.text or "") for element in root.iter())
    for suite in root:
        assert int(suite.get("tests")) == len(suite.findall("testcase"))
        assert int(suite.get("failures")) == len(suite.findall("testcase/failure"))
        assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped"))
    assert int(root.get("failures")) == len(list(root.iter("failure")))


@pytest.mark.parametrize("fail_on", ["error", "warning", "note"])
def test_there_are_failures_exactly_if_the_check_fails(fail_on):
    for level in ("error", "warning", "note"):
        rank = ("error", "warning", "note").index
        fails = rank(level) <= rank(fail_on)
        root = root_of(check(judgement(level=level), passed(), unknown(), fail_on=fail_on))
        assert root.get("failures") == str(int(fails))


def test_failure_below_the_threshold_is_skipped_with_a_reason():
    skipped = [case.find("skipped") for case in root_of(mixed()).iter("testcase")]
    assert [None if one is None else one.get("message") for one in skipped] == [
        None,
        "warning, below --fail-on error: half as fast as the baseline",
        "excepted until 2027-03-31: 4,097 metadata operations; at most 100 are allowed",
        "could not be judged: the attribute is null: no end of a file is known",
        None,
    ]


def test_nothing_to_check_gives_no_suite():
    assert root_of(check()).attrib == {
        "name": "vani check",
        "tests": "0",
        "failures": "0",
        "errors": "0",
        "time": "0",
    }
    assert list(root_of(check())) == []


def test_characters_that_xml_forbids_are_escaped():
    case = root_of(check(judgement(id="a\0b", message="\x1b[31m\ufffe\udc80"))).find("testsuite/testcase")
    assert re.fullmatch(r"a\\x00b #[0-9a-f]{8}", case.get("name"))
    assert case.find("failure").get("message") == "\\x1b[31m\\ufffe\\udc80; open the file once"
