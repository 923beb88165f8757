"""The verdict of a check as JUnit XML, for Jenkins, GitLab and reporters on GitHub.

Elements and attributes follow `junit-10.xsd` of Jenkins' xUnit plug-in. It is strict and refuses a file or line
attribute of a test case, so both are in the text.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.render.check.judgement import blocks, details, fingerprint, place

if TYPE_CHECKING:
    from vani.schema.check import Check, Judgement

def render(check: Check, *, version: str) -> str:
    """Write a suite per check of the policy, a case per judgement.

    Only judgements that make `vani check` fail are failures, so that the report and the exit status agree. Failures
    below `fail_on`, exceptions and unknown results are skipped, with the reason. Characters that XML 1.0 does not
    allow are escaped as in Python.
    """
    suites: dict[str, list[Judgement]] = {}
    for judgement in check.judgements:
        suites.setdefault(judgement.check, []).append(judgement)
    failures = sum(blocks(check, judgement) for judgement in check.judgements)
    total = {"tests": str(len(check.judgements)), "failures": str(failures), "errors": "0", "time": "0"}
    root = ET.Element("testsuites", {"name": "vani check", **total})
    for name, judgements in suites.items():
        suite = ET.SubElement(
            root,
            "testsuite",
            name=one_line(name) or "check",
            tests=str(len(judgements)),
            failures=str(sum(blocks(check, judgement) for judgement in judgements)),
            errors="0",
            skipped=str(sum(_skipped(check, judgement) is not None for judgement in judgements)),
            time="0",
        )
        if check.policy is not None:
            suite.set("file", one_line(check.policy.path))
        _properties(suite, check, version)
        for judgement in judgements:
            _case(suite, check, judgement)
    ET.indent(root)
    # Every character that XML 1.0 forbids is not printable, so one_line() has escaped it.
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _properties(suite: ET.Element, check: Check, version: str) -> None:
    known = {
        "vani": version,
        "profile": check.profile.path,
        "verdict": check.verdict,
        "fail_on": check.fail_on,
    }
    if check.damage is not None:
        known["damage"] = check.damage
    properties = ET.SubElement(suite, "properties")
    for name, value in known.items():
        ET.SubElement(properties, "property", name=name, value=one_line(value))


def _case(suite: ET.Element, check: Check, judgement: Judgement) -> None:
    # GitLab shows the class as the suite, and drops later cases with the same name; Jenkins wants a package.
    case = ET.SubElement(
        suite,
        "testcase",
        name=_name(judgement),
        classname=f"vani.{one_line(judgement.check) or 'check'}",
        time="0",
    )
    cause = next((cause.message for cause in check.causes if judgement.id in cause.judgements), None)
    message = one_line(judgement.message if cause is None else f"{cause}: {judgement.message}") or _name(
        judgement
    )
    reason = _skipped(check, judgement)
    if reason is not None:
        skipped = ET.SubElement(case, "skipped", type=judgement.status, message=f"{reason}: {message}")
        skipped.text = _without_attachments(f"{reason}: {message}")
    elif judgement.status == "fail":
        failure = ET.SubElement(case, "failure", type=judgement.level, message=message)
        failure.text = _text(check, judgement, message)
        return
    ET.SubElement(case, "system-out").text = _text(check, judgement, message)


def _name(judgement: Judgement) -> str:
    """The id. It is unique, and is made unique again if characters had to be escaped."""
    text = one_line(judgement.id)
    return text if text and text == judgement.id else f"{text} #{fingerprint(judgement)[:8]}".lstrip()


def _skipped(check: Check, judgement: Judgement) -> str | None:
    """Why a case counts neither as passed nor as failed; None if it does."""
    if judgement.status == "excepted":
        return (
            "excepted"
            if judgement.excepted is None
            else f"excepted until {one_line(judgement.excepted.until)}"
        )
    if judgement.status == "unknown":
        return "could not be judged"
    if judgement.status == "fail" and not blocks(check, judgement):
        return f"{judgement.level}, below --fail-on {check.fail_on}"
    return None


def _text(check: Check, judgement: Judgement, message: str) -> str:
    path, line = place(check, judgement)
    lines = [
        message,
        *(f"{name}: {text}" for name, text in details(judgement)),
        f"place: {one_line(path)}:{line}",
    ]
    return _without_attachments("\n".join(lines))


def _without_attachments(text: str) -> str:
    """Break up `[[ATTACHMENT|file]]`, for which GitLab, and Jenkins with a plug-in, would show the file."""
    while "[[" in text:
        text = text.replace("[[", "[ [")
    return text
