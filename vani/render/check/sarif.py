"""The verdict of a check as SARIF 2.1.0, for code scanning and editors.

Code hosts show every result as an alert, whatever its `kind` (GitHub documents none, and shows `pass` as a
problem). So there is a result for each failure and each exception, but none for passed checks, whose number is a
property of the run. Anything that could not be judged is a notification of the run.

An exception is a suppression. GitHub keeps suppressed results open, so they are written as notes, which block
nothing there. The policy's level is a property.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from vani.errors import one_line
from vani.render.check.judgement import cut, details, findings, fingerprint, place
from vani.render.sarif_document import document, uri

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vani.schema.check import Check, Judgement, Source

MOST_RESULTS: Final = 25_000
"""GitHub refuses an upload with more results or rules in a run (it shows 5,000, worst first)."""

# GitHub's limits for a rule's name and its descriptions.
_NAME: Final = 255
_TEXT: Final = 1024
_PROBLEM: Final = {"error": "error", "warning": "warning", "note": "recommendation"}


def render(check: Check, *, version: str) -> str:
    """Write one run: a rule per check of the policy, and a result per cause, uncaused failure and exception.

    A result points to the policy's line that requires it, or to the profile. Its fingerprints depend only on its
    id, so that an alert remains the same when values, limits and lines change.
    """
    results = [
        *findings(check),
        *(judgement for judgement in check.judgements if judgement.status == "excepted"),
    ]
    rules = _rules([*check.judgements, *results])
    notes = [
        _unknown(check, judgement, rules) for judgement in check.judgements if judgement.status == "unknown"
    ]
    if len(results) > MOST_RESULTS:
        text = f"{len(results) - MOST_RESULTS} results are left out: code hosts take {MOST_RESULTS}"
        notes.append({"level": "warning", "message": {"text": text}})
    if check.damage is not None:
        notes.insert(0, {"level": "warning", "message": {"text": one_line(check.damage)}})
    invocation: dict[str, Any] = {"executionSuccessful": True}
    if notes:
        invocation["toolExecutionNotifications"] = notes
    return document(
        [_result(check, judgement, rules) for judgement in results[:MOST_RESULTS]],
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
    return {
        name: (i, _rule(_rule_id(name), first[name])) for i, name in enumerate(sorted(first)[:MOST_RESULTS])
    }


def _rule_id(name: str) -> str:
    """The name, made unique again if control characters were escaped or it was cut."""
    text = cut(name, _NAME) or "check"
    if text == name:
        return text
    # Only another team's policy gets here; readable names are unchanged.
    import hashlib  # noqa: PLC0415

    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{text[: _NAME - 9]}-{mark}"


def _rule(id_: str, judgement: Judgement) -> dict[str, Any]:
    what = one_line(judgement.attribute or judgement.kind)
    title = f"{what} {one_line(judgement.limit)}" if judgement.limit else what
    help_ = [
        f"{name}: {text}" for name, text in details(judgement) if name in ("attribute", "allowed", "reason")
    ]
    return {
        "id": id_,
        "name": id_,
        "shortDescription": {"text": cut(title, _TEXT)},
        "fullDescription": {"text": cut(judgement.reason or title, _TEXT)},
        "defaultConfiguration": {"level": judgement.level},
        "help": {"text": "\n".join(help_) or title},
        "properties": {
            "tags": ["io", "performance", judgement.kind],
            "problem.severity": _PROBLEM[judgement.level],
        },
    }


def _result(check: Check, judgement: Judgement, rules: Rules) -> dict[str, Any]:
    index, rule = rules[judgement.check]
    mark = fingerprint(judgement)
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
    text = one_line(judgement.message) or one_line(judgement.id)
    if judgement.todo:
        text += "\n\n" + one_line(judgement.todo)
    # `[text](target)` is a link in SARIF messages; names from a trace must not become links.
    return text.replace("](", "] (")


def _location(check: Check, judgement: Judgement) -> dict[str, Any]:
    path, line = place(check, judgement)
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
