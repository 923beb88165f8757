"""Budgets: limits for attributes of a profile."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

from vani.gate.attribute import COMPARISONS, Where
from vani.gate.entity_names import Names
from vani.gate.matching import Match, Value, aggregated, matches, why_null
from vani.gate.outcome import Outcome, Pending, Status, folded, judgement, stripped_target
from vani.gate.policy_checks import BudgetCheck
from vani.gate.profile_tree import Figures
from vani.gate.quantity import Dimension, shown

_NAMED: Final = 5


def judge_budget(check: BudgetCheck, figures: Figures, names: Names) -> list[Outcome]:
    """One outcome for each place that the attribute matches, or an unknown one if it matches nothing."""
    matched = [match for leaf in check.leaves for match in matches(leaf, figures.tree, names, figures.path)]
    if check.attribute.aggregate is not None:
        return [_aggregate(check, matched)]
    if not matched:
        return [_unknown(check, None, _why_nothing(check, figures))]
    return folded([_pending(check, match, figures) for match in matched])


def _pending(check: BudgetCheck, match: Match, figures: Figures) -> Pending:
    if match.value is None:
        status: Status = "fail" if check.required else "unknown"
        return Pending(status, match.trail, 0.0, partial(_null, check, match, figures))
    is_met = _compare(match.value, check.operator, check.limit)
    write = partial(_outcome, check, match, match.value, match.leaf.dimension, is_met=is_met)
    closeness = _closeness(match.value, check.operator, check.limit)
    return Pending("pass" if is_met else "fail", match.trail, closeness, write)


def _aggregate(check: BudgetCheck, matched: list[Match]) -> Outcome:
    value, dimension = aggregated(check.attribute, matched)
    if value is None:
        why = "matches nothing: all its values are null" if matched else "matches nothing: no entity fits"
        return _unknown(check, None, why)
    return _outcome(check, None, value, dimension, is_met=_compare(value, check.operator, check.limit))


def _why_nothing(check: BudgetCheck, figures: Figures) -> str:
    why = "matches nothing in this profile"
    total = figures.model.dataset.files
    if check.leaves[0].dotted.startswith("files.") and total is not None and figures.listed < total:
        why += f", which lists {figures.listed:,} of {total:,} files (`vani profile --files all` lists all)"
    if check.leaves[0].dotted.startswith("phases.") and figures.model.workflow.runtime_s is None:
        return f"{why}: without times (--quick) there are no phases"
    return why + _apps_there(check, figures)


def _apps_there(check: BudgetCheck, figures: Figures) -> str:
    """The names of the apps, if the policy names a missing one."""
    named_apps = {
        str(condition.value)
        for step in check.leaves[0].steps
        if isinstance(step, Where)
        for condition in step.conditions
        if condition.operator == "=" and condition.keys in (("name",), ("app",))
    }
    app_names = [app.name for app in figures.model.apps]
    if not named_apps or named_apps & set(app_names):
        return ""
    more = f" and {len(app_names) - _NAMED:,} more" if len(app_names) > _NAMED else ""
    return f": its apps are {', '.join(app_names[:_NAMED])}{more}"


def _null(check: BudgetCheck, match: Match, figures: Figures) -> Outcome:
    return _unknown(check, match, f"is not known ({why_null(match.leaf, figures.model.provenance)})")


def _unknown(check: BudgetCheck, match: Match | None, why: str) -> Outcome:
    attribute = str(check.attribute) if match is None else match.attribute
    return Outcome(
        judgement(
            check.name,
            "missing" if check.required else "budget",
            "fail" if check.required else "unknown",
            check.level,
            f"{attribute} {why}",
            against=attribute if match is None else match.against,
            attribute=attribute,
            target=None if match is None else match.target,
            limit=check.limit_text,
            reason=check.reason,
            todo="make a profile that has it, or drop `required`" if check.required else None,
            place=check.place,
        ),
        stripped=None if match is None else stripped_target(match),
    )


def _outcome(
    check: BudgetCheck, match: Match | None, value: Value, dimension: Dimension, *, is_met: bool
) -> Outcome:
    attribute = str(check.attribute) if match is None else match.attribute
    text = shown(value, dimension)
    if not is_met and not isinstance(check.limit, str) and text == shown(check.limit, dimension):
        text = shown(value, dimension, exact=True)
    return Outcome(
        judgement(
            check.name,
            "budget",
            "pass" if is_met else "fail",
            check.level,
            f"{attribute} is {text}; allowed is {check.limit_text}",
            against=attribute if match is None else match.against,
            attribute=attribute,
            target=None if match is None else match.target,
            value=value,
            limit=check.limit_text,
            reason=check.reason,
            todo=None if is_met else "`vani advise` recommends changes; if the change is intended, change the limit",
            place=check.place,
        ),
        stripped=None if match is None else stripped_target(match),
    )


def _compare(value: Value, operator: str, limit: float | str | bool) -> bool:
    if isinstance(limit, (str, bool)):
        return (value == limit) is (operator == "==")
    return isinstance(value, (int, float)) and COMPARISONS[operator](value, limit)


def _closeness(value: Value, operator: str, limit: float | str | bool) -> float:
    """A figure that is larger for values closer to the limit."""
    if isinstance(value, (str, bool)) or isinstance(limit, (str, bool)) or value is None:
        return 0.0
    if operator in ("<", "<="):
        return float(value)
    return -float(value) if operator in (">", ">=") else -math.fabs(value - limit)
