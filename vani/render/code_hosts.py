"""The verdict of a check for code hosts and CI servers: GitHub, GitLab, JUnit and SARIF; and advice as SARIF.

Sources: GitHub documentation, "Workflow commands for GitHub Actions" (commands, escapes, 10 annotations of a type in a
step, 50 in a job; 1 MiB of summary in a step); the runner's `ActionCommand`, which reads the commands. GitLab
documentation, "Code Quality report format": an array of objects with description, check_name, fingerprint, severity,
location.path (relative to the repository, not starting with ./) and location.lines.begin; GitLab silently drops an
entry that its own schema (`app/validators/json_schemas/codeclimate.json`) refuses. `junit-10.xsd` of Jenkins' xUnit
plug-in, which is strict and refuses a file or line attribute of a test case, so both are in the text.

In SARIF, code hosts show every result as an alert, whatever its `kind` (GitHub documents none, and shows `pass` as a
problem). So there is a result for each failure and each exception, but none for passed checks, whose number is a
property of the run. Anything that could not be judged is a notification of the run. An exception is a suppression.
GitHub keeps suppressed results open, so they are written as notes, which block nothing there. The policy's level is a
property.
"""

import hashlib
import math
import posixpath
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from vani.errors import one_line
from vani.render import check as checks
from vani.render.table import escaped, markdown_table
from vani.render.wording import measured_gain
from vani.schema.advice import Advice, Recommendation
from vani.schema.check import Check, Judgement, Source
from vani.schema.syntax.json_text import json_text

# --- GitHub: annotations of a pull request, and the page of the job ---------------------------------

MAX_ANNOTATIONS: Final = 10
"""GitHub silently drops further annotations of a type in a step."""
MAX_SUMMARY_BYTES: Final = 1024 * 1024
"""GitHub drops a larger step summary completely."""

_COMMANDS: Final = {"error": "error", "warning": "warning", "note": "notice"}
_STATUSES: Final = {"fail": "failed", "excepted": "excepted", "unknown": "unknown", "pass": "passed"}
_MAX_TITLE: Final = 200
_MAX_TEXT: Final = 2000
# A cell is for people; other formats contain the whole text.
_MAX_CELL: Final = 500
# Reserved for the line about omitted rows.
_ROOM_AT_THE_END: Final = 1000


def to_github(check: Check, **_: object) -> str:
    """Write workflow commands for a step's stdout: the ten worst failures, then one line about the rest.

    That line appears if failures are left out or could not be judged. Nothing is written if everything passes.
    """
    failed = _of_each_check_first(checks.findings(check))
    shown = failed[:MAX_ANNOTATIONS]
    # The line about the rest is also a notice, and would be the eleventh.
    if all(judgement.level == "note" for judgement in shown):
        shown = shown[: MAX_ANNOTATIONS - 1]
    lines = [_annotation(judgement) for judgement in shown]
    left = failed[len(shown) :]
    unknown = check.counts.unknown
    if left or unknown:
        levels: Counter[str] = Counter(judgement.level for judgement in left)
        rest = checks.counted({level: levels[level] for level in checks.RANKS})
        text = f"{len(left)} more: {rest}" if left else ""
        if unknown:
            text += f"{'; ' if text else ''}{unknown} could not be judged"
        lines.append(_command("notice", {"title": "vani check"}, f"{text}. The job's summary has all of them."))
    return "".join(line + "\n" for line in lines)


def _of_each_check_first(failed: Iterable[Judgement]) -> list[Judgement]:
    """Worst first; within a level, the first failure of each check before any second, so that no check is hidden."""
    seen: Counter[tuple[str, str]] = Counter()
    turns = []
    for judgement in failed:
        turns.append((checks.RANKS[judgement.level], seen[judgement.level, judgement.check], judgement))
        seen[judgement.level, judgement.check] += 1
    return [judgement for _, _, judgement in sorted(turns, key=lambda turn: turn[:2])]


def _annotation(judgement: Judgement) -> str:
    # A judgement without a line in the policy has no line in the repository, and GitHub shows it without one.
    position = {} if judgement.place is None or not judgement.place.path else {
        "file": one_line(judgement.place.path),
        "line": str(max(1, judgement.place.line)),
    }  # fmt: skip
    properties = position | {
        "title": checks.cut(f"{judgement.check or 'vani check'} ({judgement.level})", _MAX_TITLE),
    }
    return _command(_COMMANDS[judgement.level], properties, checks.cut(judgement.message, _MAX_TEXT))


def _command(name: str, properties: dict[str, str], message: str) -> str:
    escapes = str.maketrans({":": "%3A", ",": "%2C"})
    pairs = ",".join(f"{key}={_data(value).translate(escapes)}" for key, value in properties.items())
    return f"::{name} {pairs}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def summary(check: Check) -> str:
    """Write as much of the table as fits into the job's summary, in GitHub's Markdown.

    Text from the policy and from traces cannot be markup, a link or HTML there, or end a cell.
    """
    badge = {"pass": ":white_check_mark:", "fail": ":x:"}.get(check.verdict, ":warning:")
    head = [
        f"## {badge} vani check",
        "",
        *([] if check.damage is None else [_escaped(check.damage), ""]),
        *(f"- {_escaped(checks.cut(each.message, _MAX_TEXT))}" for each in checks.findings(check)[:MAX_ANNOTATIONS]),
        *([""] if check.counts.error + check.counts.warning + check.counts.note else []),
        f"{checks.verdict_line(check)} (fails on: {check.fail_on})",
        "",
        *([] if check.times is None else [_escaped(check.times.sentence), ""]),
        f"Profile {', '.join(_code(run.path) for run in check.runs or [check.profile])}"
        + ("" if check.policy is None else f", policy {_code(check.policy.path)}")
        + "".join(f", baseline {_code(baseline.path)}" for baseline in check.baselines[:10])
        + ("" if check.tuned is None else f", tuned {_code(check.tuned.path)}"),
        "",
    ]
    if not check.judgements:
        return "\n".join(head)
    columns = ("", "level", "check", "of", "value", "allowed", "baseline", "change", "found")
    head += markdown_table(columns, [], right=(4, 6, 7))
    size = sum(len(line.encode()) + 1 for line in head)
    rows: list[str] = []
    for judgement in check.judgements:
        row = _row(judgement)
        size += len(row.encode()) + 1
        if size > MAX_SUMMARY_BYTES - _ROOM_AT_THE_END:
            break
        rows.append(row)
    tail = []
    left = check.judgements[len(rows) :]
    if left:
        counts = Counter(_STATUSES[judgement.status] for judgement in left)
        by_status = checks.counted({name: counts[name] for name in _STATUSES.values()})
        tail = ["", f"{len(left)} rows are left out ({by_status}): the summary of a step is limited to 1 MiB."]
    return "\n".join([*head, *rows, *tail]) + "\n"


def _row(judgement: Judgement) -> str:
    text = checks.text_of(judgement) if judgement.status == "fail" else judgement.message
    if judgement.excepted is not None:
        text += f" (until {judgement.excepted.until}: {judgement.excepted.reason})"
    cells = [
        _STATUSES[judgement.status],
        judgement.level,
        _code(judgement.check),
        _code(judgement.target or judgement.attribute or ""),
        _code("" if judgement.value is None else checks.number(judgement.value)),
        _code(judgement.limit or ""),
        _code("" if judgement.baseline is None else checks.number(judgement.baseline)),
        "" if judgement.change is None else _escaped(f"{judgement.change:+.1%}"),
        _escaped(checks.cut(text, _MAX_CELL)),
    ]
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """Text that Markdown shows unchanged, also in a table."""
    # GitHub turns these into links without any markup.
    return re.sub(r"(?i)\b(www)\.", r"\1\\.", escaped(text))


def _code(text: str) -> str:
    """Text in a code font. Backticks cannot be used: within them no escape keeps a backslash before a bar."""
    return f"<code>{_escaped(checks.cut(text, _MAX_CELL))}</code>" if text else ""


# --- GitLab: a code quality report ------------------------------------------------------------------

# GitLab knows info, minor, major, critical and blocker.
_GITLAB_SEVERITIES: Final = {"error": "major", "warning": "minor", "note": "info"}
# A line in a widget, where longer text is cut off anyway.
_MAX_LINE: Final = 1024


def to_gitlab(check: Check, **_: object) -> str:
    """Write an entry per cause and per uncaused failure, worst first; exceptions and unknowns are not defects."""
    entries = []
    for finding in checks.findings(check):
        path, line = checks.place(check, finding)
        entries.append(
            {
                "description": checks.cut(finding.message, _MAX_LINE) or "a check failed",
                "check_name": checks.cut(finding.check, 255) or "check",
                "fingerprint": checks.fingerprint(finding),
                "severity": _GITLAB_SEVERITIES[finding.level],
                "location": {"path": _in_repository(path), "lines": {"begin": line}},
            }
        )
    return json_text(entries, ascii_only=True)


def _in_repository(path: str) -> str:
    """A path in the repository.

    GitLab drops entries with absolute or outside paths, so of these only the end is kept.
    """
    text = posixpath.normpath("/" + one_line(path)).lstrip("/")
    return text or "."


# --- JUnit: for Jenkins, GitLab and reporters on GitHub ---------------------------------------------


def to_junit(check: Check, *, version: str) -> str:
    """Write a suite per check of the policy, a case per judgement.

    Only judgements that make `vani check` fail are failures, so that the report and the exit status agree. Failures
    below `fail_on`, exceptions and unknown results are skipped, with the reason. Characters that XML 1.0 does not
    allow are escaped as in Python.
    """
    suites: dict[str, list[Judgement]] = {}
    for judgement in check.judgements:
        suites.setdefault(judgement.check, []).append(judgement)
    failures = sum(checks.blocks(check, judgement) for judgement in check.judgements)
    total = {"tests": str(len(check.judgements)), "failures": str(failures), "errors": "0", "time": "0"}
    root = ET.Element("testsuites", {"name": "vani check", **total})
    for name, judgements in suites.items():
        suite = ET.SubElement(
            root,
            "testsuite",
            name=one_line(name) or "check",
            tests=str(len(judgements)),
            failures=str(sum(checks.blocks(check, judgement) for judgement in judgements)),
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
    known = {"vani": version, "profile": check.profile.path, "verdict": check.verdict, "fail_on": check.fail_on}
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
        name=_case_name(judgement),
        classname=f"vani.{one_line(judgement.check) or 'check'}",
        time="0",
    )
    cause = next((cause for cause in check.causes if judgement.id in cause.judgements), None)
    text = checks.text_of(judgement) if judgement.status == "fail" else one_line(judgement.message)
    message = text if cause is None else f"{checks.cause_line(check, cause)} ({one_line(judgement.message)})"
    message = message or _case_name(judgement)
    reason = _skipped(check, judgement)
    if reason is not None:
        skipped = ET.SubElement(case, "skipped", type=judgement.status, message=f"{reason}: {message}")
        skipped.text = _without_attachments(f"{reason}: {message}")
    elif judgement.status == "fail":
        failure = ET.SubElement(case, "failure", type=judgement.level, message=message)
        failure.text = _case_text(check, judgement, message)
        return
    ET.SubElement(case, "system-out").text = _case_text(check, judgement, message)


def _case_name(judgement: Judgement) -> str:
    """The id. It is unique, and is made unique again if characters had to be escaped."""
    text = one_line(judgement.id)
    return text if text and text == judgement.id else f"{text} #{checks.fingerprint(judgement)[:8]}".lstrip()


def _skipped(check: Check, judgement: Judgement) -> str | None:
    """Why a case counts neither as passed nor as failed; None if it does."""
    if judgement.status == "excepted":
        return "excepted" + (f" until {one_line(judgement.excepted.until)}" if judgement.excepted else "")
    if judgement.status == "unknown":
        return "could not be judged"
    if judgement.status == "fail" and not checks.blocks(check, judgement):
        return f"{judgement.level}, below --fail-on {check.fail_on}"
    return None


def _case_text(check: Check, judgement: Judgement, message: str) -> str:
    path, line = checks.place(check, judgement)
    lines = [
        message,
        *(f"{name}: {text}" for name, text in checks.details(judgement)),
        f"place: {one_line(path)}:{line}",
    ]
    return _without_attachments("\n".join(lines))


def _without_attachments(text: str) -> str:
    """Break up `[[ATTACHMENT|file]]`, for which GitLab, and Jenkins with a plug-in, would show the file."""
    while "[[" in text:
        text = text.replace("[[", "[ [")
    return text


# --- SARIF 2.1.0: code scanning and editors ---------------------------------------------------------

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_HOME: Final = "https://pypi.org/project/vani-io/"


def sarif(
    results: Sequence[Mapping[str, Any]],
    *,
    rules: Sequence[Mapping[str, Any]],
    version: str,
    properties: Mapping[str, Any],
    invocation: Mapping[str, Any] | None = None,
) -> str:
    """Write one run of Vani as JSON in ASCII.

    Parameters
    ----------
    version
        Vani's version.
    invocation
        How the run ended, if that is worth stating.
    """
    driver = {"name": "Vani", "version": version, "informationUri": _HOME, "rules": rules}
    run: dict[str, Any] = {"tool": {"driver": driver}}
    if invocation is not None:
        run["invocations"] = [invocation]
    run |= {"columnKind": "unicodeCodePoints", "results": results, "properties": properties}
    whole = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json_text(whole, ascii_only=True, allow_nan=True)


def uri(path: str) -> str:
    """An absolute path as a file URI, any other as a relative reference; bytes that are not text are preserved."""
    try:
        raw = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # A lone surrogate cannot be in a path of this system, but a document may contain one.
        raw = path.encode("utf-8", "surrogatepass")
    quoted = quote(raw, safe="/")
    if path.startswith("/"):
        return f"file://{quoted}" if not path.startswith("//") else f"file:///{quoted.lstrip('/')}"
    # A first part with a colon would be a scheme, but quote() has escaped the colon.
    return quoted


# --- SARIF of a check -------------------------------------------------------------------------------

MAX_RESULTS: Final = 25_000
"""GitHub refuses an upload with more results or rules in a run (it shows 5,000, worst first)."""

# GitHub's limits for a rule's name and its descriptions.
_MAX_NAME: Final = 255
_MAX_DESCRIPTION: Final = 1024
_PROBLEMS: Final = {"error": "error", "warning": "warning", "note": "recommendation"}


def to_sarif(check: Check, *, version: str) -> str:
    """Write one run: a rule per check of the policy, and a result per cause, uncaused failure and exception.

    A result points to the policy's line that requires it, or to the profile. Its fingerprints depend only on its
    id, so that an alert remains the same when values, limits and lines change.
    """
    results = [
        *checks.findings(check),
        *(judgement for judgement in check.judgements if judgement.status == "excepted"),
    ]
    rules = _rules([*check.judgements, *results])
    notes = [_unknown(check, judgement, rules) for judgement in check.judgements if judgement.status == "unknown"]
    if len(results) > MAX_RESULTS:
        text = f"{len(results) - MAX_RESULTS} results are left out: code hosts take {MAX_RESULTS}"
        notes.append({"level": "warning", "message": {"text": text}})
    if check.damage is not None:
        notes.insert(0, {"level": "warning", "message": {"text": one_line(check.damage)}})
    invocation: dict[str, Any] = {"executionSuccessful": True}
    if notes:
        invocation["toolExecutionNotifications"] = notes
    return sarif(
        [_result(check, judgement, rules) for judgement in results[:MAX_RESULTS]],
        rules=[rule for _, rule in rules.values()],
        version=version,
        invocation=invocation,
        properties={
            "verdict": check.verdict,
            "failOn": check.fail_on,
            "counts": check.counts.model_dump(),
            "profile": _source(check.profile),
            "damage": _text(check.damage),
            "policy": None if check.policy is None else _source(check.policy),
            "baselines": [_source(baseline) for baseline in check.baselines],
            **({} if check.tuned is None else {"tuned": _source(check.tuned)}),
        },
    )


Rules = dict[str, tuple[int, dict[str, Any]]]


def _rules(judgements: Iterable[Judgement]) -> Rules:
    """Index and descriptor of each check's rule, by the check's name."""
    first: dict[str, Judgement] = {}
    for judgement in judgements:
        first.setdefault(judgement.check, judgement)
    return {name: (i, _rule(_rule_id(name), first[name])) for i, name in enumerate(sorted(first)[:MAX_RESULTS])}


def _rule_id(name: str) -> str:
    """The name, made unique again if control characters were escaped or it was cut."""
    text = checks.cut(name, _MAX_NAME) or "check"
    if text == name:
        return text
    # Only another team's policy gets here; readable names are unchanged.
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{text[: _MAX_NAME - 9]}-{mark}"


def _rule(id_: str, judgement: Judgement) -> dict[str, Any]:
    what = one_line(judgement.attribute or judgement.kind)
    title = f"{what} {one_line(judgement.limit)}" if judgement.limit else what
    help_ = [
        f"{name}: {text}" for name, text in checks.details(judgement) if name in ("attribute", "allowed", "reason")
    ]
    return {
        "id": id_,
        "name": id_,
        "shortDescription": {"text": checks.cut(title, _MAX_DESCRIPTION)},
        "fullDescription": {"text": checks.cut(judgement.reason or title, _MAX_DESCRIPTION)},
        "defaultConfiguration": {"level": judgement.level},
        "help": {"text": "\n".join(help_) or title},
        "properties": {
            "tags": ["io", "performance", judgement.kind],
            "problem.severity": _PROBLEMS[judgement.level],
        },
    }


def _result(check: Check, judgement: Judgement, rules: Rules) -> dict[str, Any]:
    index, rule = rules[judgement.check]
    mark = checks.fingerprint(judgement)
    result: dict[str, Any] = {
        "ruleId": rule["id"],
        "ruleIndex": index,
        "kind": "fail",
        "level": judgement.level,
        "message": {"text": _message(judgement)},
        "locations": [_location(check, judgement)],
        # GitHub looks only at the first. Without it, GitHub's uploader would derive one from the policy's
        # line, which all files that a check judges share, and show them as a single alert.
        "partialFingerprints": {"primaryLocationLineHash": f"{mark}:1", "vaniJudgement/v1": mark},
        "properties": {
            "id": one_line(judgement.id),
            "kind": judgement.kind,
            "level": judgement.level,
            "attribute": _text(judgement.attribute),
            "target": _text(judgement.target),
            "value": _text(judgement.value) if isinstance(judgement.value, str) else _finite(judgement.value),
            "limit": _text(judgement.limit),
            "baseline": _finite(judgement.baseline),
            "change": _finite(judgement.change),
            "reason": _text(judgement.reason),
            "todo": _text(judgement.todo),
        },
    }
    if judgement.status == "excepted":
        result["level"] = "note"
        why = "excepted by the policy"
        if judgement.excepted is not None:
            why = f"until {one_line(judgement.excepted.until)}: {one_line(judgement.excepted.reason)}"
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": why}]
    return result


def _unknown(check: Check, judgement: Judgement, rules: Rules) -> dict[str, Any]:
    index, rule = rules[judgement.check]
    return {
        "level": "warning" if judgement.level == "error" else "note",
        "message": {"text": _message(judgement)},
        "locations": [_location(check, judgement)],
        "associatedRule": {"id": rule["id"], "index": index},
    }


def _message(judgement: Judgement) -> str:
    text = judgement.message if judgement.status == "fail" else checks.text_of(judgement)
    # `[text](target)` is a link in SARIF messages; names from a trace must not become links.
    return text.replace("](", "] (")


def _location(check: Check, judgement: Judgement) -> dict[str, Any]:
    path, line = checks.place(check, judgement)
    location: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": {"uri": uri(path)}, "region": {"startLine": line}}
    }
    logical = []
    if judgement.attribute:
        logical.append({"fullyQualifiedName": one_line(judgement.attribute), "kind": "member"})
    if judgement.target:
        logical.append({"name": one_line(judgement.target), "kind": "resource"})
    return location | ({"logicalLocations": logical} if logical else {})


def _source(source: Source) -> dict[str, str]:
    return {"path": one_line(source.path), "sha256": one_line(source.sha256)}


def _text(text: str | None) -> str | None:
    return None if text is None else one_line(text)


def _finite(value: float | str | None) -> float | str | None:
    """A value without infinity and NaN, which JSON does not have."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


# --- SARIF of advice --------------------------------------------------------------------------------

# Advice is never an error: the program works without it.
_ADVICE_LEVELS: Final = {"high": "warning", "medium": "warning", "low": "note", "info": "note"}


def advice_to_sarif(advice: Advice, *, version: str, pages: Mapping[str, str]) -> str:
    """Write one run with a result per recommendation, and a `notApplicable` result per rule without one.

    Parameters
    ----------
    pages
        Documentation of each rule by id, as text with the finding in its third line.
    """
    names = {recommendation.rule: recommendation.name for recommendation in advice.recommendations}
    ids = sorted({*names, *(silent.rule for silent in advice.no_recommendation)})
    rules = [_advice_rule(id_, names.get(id_), pages.get(id_)) for id_ in ids]
    results = [
        _advice_result(recommendation, ids.index(recommendation.rule), advice)
        for recommendation in advice.recommendations
    ]
    results += [
        {
            "ruleId": silent.rule,
            "ruleIndex": ids.index(silent.rule),
            "kind": "notApplicable",
            "level": "none",
            "message": {"text": one_line(silent.why) or "nothing to recommend"},
        }
        for silent in advice.no_recommendation
    ]
    properties: dict[str, Any] = {"profile": advice.profile.model_dump(), "system": advice.system.model_dump()}
    invocation = None
    if advice.damage is not None:
        properties["damage"] = one_line(advice.damage)
        said = {"level": "warning", "message": {"text": one_line(advice.damage)}}
        invocation = {"executionSuccessful": True, "toolExecutionNotifications": [said]}
    return sarif(results, rules=rules, version=version, properties=properties, invocation=invocation)


def _advice_rule(id_: str, name: str | None, page: str | None) -> dict[str, Any]:
    rule: dict[str, Any] = {"id": id_}
    if page is not None:
        head, _, finding = page.partition("\n\n")
        name = name or head.partition(" ")[2]
        rule["shortDescription"] = {"text": finding.partition("\n")[0]}
        rule["help"] = {"text": page}
    return rule | ({"name": name} if name else {})


def _advice_result(recommendation: Recommendation, index: int, advice: Advice) -> dict[str, Any]:
    text = one_line(recommendation.reason)
    if recommendation.measured is not None:
        text += f" {measured_gain(recommendation.measured)}."
    if recommendation.apply:
        text += "\n\n" + "\n".join(one_line(line) for line in recommendation.apply)
    place: dict[str, Any] = {}
    path = recommendation.target.path or advice.profile.path
    if path:
        place["physicalLocation"] = {"artifactLocation": {"uri": uri(path)}}
    if recommendation.target.app:
        place["logicalLocations"] = [{"name": one_line(recommendation.target.app), "kind": "module"}]
    expected, measured = recommendation.expected, recommendation.measured
    return {
        "ruleId": recommendation.rule,
        "ruleIndex": index,
        "kind": "fail",
        "level": _ADVICE_LEVELS[recommendation.severity],
        "message": {"text": text},
        "locations": [place] if place else [],
        "properties": {
            "severity": recommendation.severity,
            "confidence": recommendation.confidence,
            "current": recommendation.current,
            "recommended": recommendation.recommended,
            "evidence": [item.model_dump() for item in recommendation.evidence],
            "expected": None if expected is None else expected.model_dump(),
            **({} if measured is None else {"measured": measured.model_dump()}),
            "apply": recommendation.apply,
            "source": recommendation.source,
        },
    }
