"""Checks the advice on a profile against `[check.rules]`, the rules that must not fire."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from vani.gate.entity_names import IDENTITIES, label, stripped
from vani.gate.outcome import Outcome, judgement
from vani.gate.policy_checks import RulesCheck
from vani.schema.advice import Advice, Recommendation
from vani.schema.check import Level
from vani.schema.profile import Profile
from vani.units import counted

_POSITION: Final = re.compile(r"(files|apps|phases|interfaces)\[(\d{1,9})\]")
_ORDER: Final = ("info", "low", "medium", "high")


@dataclass(frozen=True)
class RulesAdvice:
    """The advice on a profile, the ids of the rules that the policy forbids, and levels by rule id."""

    advice: Advice
    forbidden: frozenset[str]
    levels: Mapping[str, Level]


def judge_advice(
    check: RulesCheck, verdicts: RulesAdvice, strip: tuple[str, ...], profile: Profile
) -> list[Outcome]:
    """One outcome per recommendation that the policy does not accept, or a single passing one if it accepts all."""
    table = check.table
    outcomes = [
        _fired(check, recommendation, verdicts, strip, profile)
        for recommendation in verdicts.advice.recommendations
        if recommendation.rule in verdicts.forbidden or _is_too_severe(recommendation, table.fail_on_severity)
    ]
    if outcomes:
        return outcomes
    names = {recommendation.rule for recommendation in verdicts.advice.recommendations}
    names |= {silent_rule.rule for silent_rule in verdicts.advice.no_recommendation}
    highest = max(
        (recommendation.severity for recommendation in verdicts.advice.recommendations),
        key=_ORDER.index,
        default=None,
    )
    severest = f"the most severe advice is {highest}" if highest else "there is no advice"
    return [
        Outcome(
            judgement(
                "rules",
                "rule",
                "pass",
                table.level,
                f"{counted(len(names), 'rule', 'was', 'were')} evaluated; {severest}; allowed is {_limit(check)}",
                against="rules",
                value=highest,
                limit=_limit(check),
                reason=table.reason,
                place=check.place,
            )
        )
    ]


def _is_too_severe(recommendation: Recommendation, least: str | None) -> bool:
    return least is not None and _ORDER.index(recommendation.severity) >= _ORDER.index(least)


def _limit(check: RulesCheck, rule: str | None = None) -> str:
    least = check.table.fail_on_severity
    if least is None:
        return f"nothing from {rule or 'forbidden rules'}"
    return f"below {least}" if least != "info" else "no advice"


def _fired(
    check: RulesCheck,
    recommendation: Recommendation,
    verdicts: RulesAdvice,
    strip: tuple[str, ...],
    profile: Profile,
) -> Outcome:
    target = recommendation.target.path or recommendation.target.app
    short = stripped(recommendation.target.path, strip) if recommendation.target.path else target
    forbidden = recommendation.rule in verdicts.forbidden
    limit = f"nothing from {recommendation.rule}" if forbidden else _limit(check)
    return Outcome(
        judgement(
            f"rules.{recommendation.rule}",
            "rule",
            "fail",
            verdicts.levels.get(recommendation.rule, check.table.level),
            f"{recommendation.rule} ({recommendation.name}), {recommendation.severity}: {recommendation.reason}",
            against=f"{recommendation.name} {short or recommendation.target.kind}",
            attribute=_named(recommendation.evidence[0].attribute, profile)
            if recommendation.evidence
            else None,
            target=target,
            value=recommendation.severity,
            limit=limit,
            reason=check.table.reason,
            todo=_todo(recommendation),
            place=check.place,
        ),
        rule=(recommendation.rule, recommendation.name),
        stripped=short,
    )


def _named(attribute: str, profile: Profile) -> str:
    """`files[3].size` with the file's path in place of its position, which differs from run to run."""
    match = _POSITION.match(attribute)
    if match is None:
        return attribute
    key, position = match[1], int(match[2])
    entities = getattr(profile, key)
    if position >= len(entities):
        return attribute
    identity = tuple(getattr(entities[position], name) for name in IDENTITIES[key])
    return f"{key}{label(key, identity)}{attribute[match.end() :]}"


def _todo(recommendation: Recommendation) -> str:
    command = next((line for line in recommendation.apply if not line.lstrip().startswith("#")), None)
    return (
        f"{command} (vani explain {recommendation.rule})"
        if command
        else f"vani explain {recommendation.rule}"
    )
