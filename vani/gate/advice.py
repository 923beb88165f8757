"""Rules that must not fire: what `vani advise` recommends, held against `[check.rules]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from vani.gate.asked import RulesCheck
from vani.gate.entities import IDENTITIES, label, stripped
from vani.gate.outcome import Outcome, judgement
from vani.schema.advice import Advice, Recommendation
from vani.schema.check import Level
from vani.schema.profile import Profile
from vani.units import counted

__all__ = ["AskedRules", "judge_advice"]

_POSITION: Final = re.compile(r"(files|apps|phases|interfaces)\[(\d{1,9})\]")
_ORDER: Final = ("info", "low", "medium", "high")


@dataclass(frozen=True)
class AskedRules:
    """What the rules said, and which of them the words of the policy stand for."""

    advice: Advice
    forbidden: frozenset[str]
    levels: Mapping[str, Level]


def judge_advice(
    check: RulesCheck, asked: AskedRules, strip: tuple[str, ...], profile: Profile
) -> list[Outcome]:
    """One outcome for each recommendation that is not accepted; else one that says that there is none."""
    table = check.table
    outcomes = [
        _fired(check, one, asked, strip, profile)
        for one in asked.advice.recommendations
        if one.rule in asked.forbidden or _is_too_severe(one, table.fail_on_severity)
    ]
    if outcomes:
        return outcomes
    names = {one.rule for one in asked.advice.recommendations}
    names |= {one.rule for one in asked.advice.no_recommendation}
    highest = max((one.severity for one in asked.advice.recommendations), key=_ORDER.index, default=None)
    found = f"the most severe advice is {highest}" if highest else "there is no advice"
    return [
        Outcome(
            judgement(
                "rules",
                "rule",
                "pass",
                table.level,
                f"{counted(len(names), 'rule', 'was', 'were')} asked; {found}; allowed is {_limit(check)}",
                against="rules",
                value=highest,
                limit=_limit(check),
                reason=table.reason,
                place=check.place,
            )
        )
    ]


def _is_too_severe(one: Recommendation, least: str | None) -> bool:
    return least is not None and _ORDER.index(one.severity) >= _ORDER.index(least)


def _limit(check: RulesCheck, rule: str | None = None) -> str:
    least = check.table.fail_on_severity
    if least is None:
        return f"nothing from {rule or 'forbidden rules'}"
    return f"below {least}" if least != "info" else "no advice"


def _fired(
    check: RulesCheck, one: Recommendation, asked: AskedRules, strip: tuple[str, ...], profile: Profile
) -> Outcome:
    target = one.target.path or one.target.app
    short = stripped(one.target.path, strip) if one.target.path else target
    forbidden = one.rule in asked.forbidden
    limit = f"nothing from {one.rule}" if forbidden else _limit(check)
    return Outcome(
        judgement(
            f"rules.{one.rule}",
            "rule",
            "fail",
            asked.levels.get(one.rule, check.table.level),
            f"{one.rule} ({one.name}), {one.severity}: {one.reason}",
            against=f"{one.name} {short or one.target.kind}",
            attribute=_named(one.evidence[0].attribute, profile) if one.evidence else None,
            target=target,
            value=one.severity,
            limit=limit,
            reason=check.table.reason,
            todo=_todo(one),
            place=check.place,
        ),
        rule=(one.rule, one.name),
        stripped=short,
    )


def _named(attribute: str, profile: Profile) -> str:
    """`files[3].size` with the file's path for its position, which is another in every run."""
    match = _POSITION.match(attribute)
    if match is None:
        return attribute
    key, position = match[1], int(match[2])
    entities = getattr(profile, key)
    if position >= len(entities):
        return attribute
    identity = tuple(getattr(entities[position], name) for name in IDENTITIES[key])
    return f"{key}{label(key, identity)}{attribute[match.end() :]}"


def _todo(one: Recommendation) -> str:
    command = next((line for line in one.apply if not line.lstrip().startswith("#")), None)
    return f"{command} (vani explain {one.rule})" if command else f"vani explain {one.rule}"
