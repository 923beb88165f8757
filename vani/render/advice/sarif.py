"""Advice as SARIF 2.1.0, which code hosts and editors show next to the files it concerns.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from vani.errors import one_line
from vani.render.sarif_document import document, uri
from vani.render.wording import measured_gain

if TYPE_CHECKING:
    from vani.schema.advice import Advice, Recommendation

# Advice is never an error: the program works without it.
_LEVELS: Final = {"high": "warning", "medium": "warning", "low": "note", "info": "note"}


def render(advice: Advice, *, version: str, pages: Mapping[str, str]) -> str:
    """Write one run with a result per recommendation, and a `notApplicable` result per rule without one.

    Parameters
    ----------
    pages
        Documentation of each rule by id, as text with the finding in its third line.
    """
    names = {recommendation.rule: recommendation.name for recommendation in advice.recommendations}
    ids = sorted({*names, *(silent.rule for silent in advice.no_recommendation)})
    rules = [_rule(id_, names.get(id_), pages.get(id_)) for id_ in ids]
    results = [
        _result(recommendation, ids.index(recommendation.rule), advice)
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
    properties: dict[str, Any] = {
        "profile": advice.profile.model_dump(),
        "system": advice.system.model_dump(),
    }
    invocation = None
    if advice.damage is not None:
        properties["damage"] = one_line(advice.damage)
        said = {"level": "warning", "message": {"text": one_line(advice.damage)}}
        invocation = {"executionSuccessful": True, "toolExecutionNotifications": [said]}
    return document(results, rules=rules, version=version, properties=properties, invocation=invocation)


def _rule(id_: str, name: str | None, page: str | None) -> dict[str, Any]:
    rule: dict[str, Any] = {"id": id_}
    if page is not None:
        head, _, finding = page.partition("\n\n")
        name = name or head.partition(" ")[2]
        rule["shortDescription"] = {"text": finding.partition("\n")[0]}
        rule["help"] = {"text": page}
    return rule | ({"name": name} if name else {})


def _result(recommendation: Recommendation, index: int, advice: Advice) -> dict[str, Any]:
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
    result: dict[str, Any] = {
        "ruleId": recommendation.rule,
        "ruleIndex": index,
        "kind": "fail",
        "level": _LEVELS[recommendation.severity],
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
    return result
