"""Outcomes of the checks that need no baseline: budgets, rules, complete traces, and exceptions for failures."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final, Literal, NamedTuple

from vani.gate import matching
from vani.gate.attribute import COMPARISONS, Where
from vani.gate.policy import BudgetCheck, ChangeCheck, ExceptionCheck, RulesCheck
from vani.gate.tolerance import Dimension, shown
from vani.schema.advice import Advice, Recommendation
from vani.schema.check import Excepted, Judgement, Level
from vani.schema.profile import Profile
from vani.units import counted, first_of

Kind = Literal["budget", "change", "rule", "missing", "exception", "tuned"]
Status = Literal["pass", "fail", "excepted", "unknown"]

LISTED: Final = 100
"""Most passing judgements of a check that are listed one by one; the same limit applies to unknown ones."""


@dataclass(frozen=True)
class Outcome:
    """A judgement, with details for exceptions and summaries."""

    judgement: Judgement
    rule: tuple[str, ...] = ()
    """Id and name of the rule that fired."""
    stripped: str | None = None
    """The target without the parts that differ from run to run."""


def outcome(
    check: str,
    kind: Kind,
    status: Status,
    level: Level,
    message: str,
    *,
    against: str,
    value: int | float | str | bool | None = None,
    rule: tuple[str, ...] = (),
    stripped: str | None = None,
    **more: Any,
) -> Outcome:
    """Build an outcome.

    Parameters
    ----------
    against
        Name of the thing that was checked, which makes the id unique.
    more
        Other fields of `Judgement`; by default null.
    """
    judgement = Judgement(
        id=check if against == check else f"{check}: {against}",
        check=check,
        kind=kind,
        level=level,
        status=status,
        message=message,
        value=("false", "true")[value] if isinstance(value, bool) else value,
        **more,
    )
    return Outcome(judgement, rule, stripped)


def outcome_at(
    check: BudgetCheck | ChangeCheck,
    match: matching.Match | None,
    kind: Kind,
    status: Status,
    level: Level,
    what: str,
    **more: Any,
) -> Outcome:
    """The outcome of a check of the policy for a place or, without a match, an aggregate; `what` follows its name."""
    attribute = str(check.attribute) if match is None else match.attribute
    return outcome(
        check.name,
        kind,
        status,
        level,
        f"{attribute} {what}",
        against=attribute if match is None else match.against,
        attribute=attribute,
        target=None if match is None else match.target,
        stripped=None if match is None else _stripped_target(match),
        reason=check.reason,
        place=check.place,
        **more,
    )


def _stripped_target(match: matching.Match) -> str | None:
    """The stripped path of the file that a match belongs to, or another target as it is."""
    identities = [step for step in match.trail if isinstance(step, tuple)]
    return str(identities[-1][0]) if identities and isinstance(identities[-1][0], str) else match.target


class Pending(NamedTuple):
    """An outcome whose text is written only if it is listed, because 10,000 passing files become one sentence."""

    status: Status
    trail: matching.Trail
    closeness: float
    write: Callable[[], Outcome]


def folded(outcomes: Sequence[Pending]) -> list[Outcome]:
    """The outcomes of one check. More than `LISTED` passing or unknown ones are merged into one."""
    listed = [outcome.write() for outcome in outcomes if outcome.status == "fail"]
    for status in ("pass", "unknown"):
        same = [outcome for outcome in outcomes if outcome.status == status]
        listed += [outcome.write() for outcome in same] if len(same) <= LISTED else [_summary(same)]
    return listed


def _summary(same: Sequence[Pending]) -> Outcome:
    closest = max(outcome.closeness for outcome in same)
    first = min(
        (outcome for outcome in same if outcome.closeness == closest), key=lambda outcome: repr(outcome.trail)
    )
    example = first.write().judgement
    summary = "pass; closest to the limit" if example.status == "pass" else "are unknown; one of them"
    texts = {
        "id": f"{example.check}: all that {example.status}",
        "message": f"{len(same):,} {summary}: {example.message}",
    }
    return Outcome(example.model_copy(update=texts))


_NAMED: Final = 5


def judge_budget(check: BudgetCheck, figures: matching.Figures, names: matching.Names) -> list[Outcome]:
    """One outcome for each place that the attribute matches, or an unknown one if it matches nothing."""
    matched = [match for leaf in check.leaves for match in matching.matches(leaf, figures.tree, names, figures.path)]
    if check.attribute.aggregate is not None:
        return [_aggregate(check, matched)]
    if not matched:
        return [_unknown(check, None, _why_nothing(check, figures))]
    return folded([_pending(check, match, figures) for match in matched])


def _pending(check: BudgetCheck, match: matching.Match, figures: matching.Figures) -> Pending:
    if match.value is None:
        status: Status = "fail" if check.required else "unknown"
        why = f"is not known ({matching.why_null(match.leaf, figures.model.provenance)})"
        return Pending(status, match.trail, 0.0, partial(_unknown, check, match, why))
    is_met = _compare(match.value, check.operator, check.limit)
    write = partial(_budget_outcome, check, match, match.value, match.leaf.dimension, is_met=is_met)
    closeness = _closeness(match.value, check.operator, check.limit)
    return Pending("pass" if is_met else "fail", match.trail, closeness, write)


def _aggregate(check: BudgetCheck, matched: list[matching.Match]) -> Outcome:
    value, dimension = matching.aggregated(check.attribute, matched)
    if value is None:
        why = "matches nothing: all its values are null" if matched else "matches nothing: no entity fits"
        return _unknown(check, None, why)
    return _budget_outcome(check, None, value, dimension, is_met=_compare(value, check.operator, check.limit))


def _why_nothing(check: BudgetCheck, figures: matching.Figures) -> str:
    why = "matches nothing in this profile"
    total = figures.model.dataset.files
    if check.leaves[0].dotted.startswith("files.") and total is not None and figures.listed < total:
        why += f", which lists {figures.listed:,} of {total:,} files (`vani profile --files all` lists all)"
    if check.leaves[0].dotted.startswith("phases.") and figures.model.workflow.runtime_s is None:
        return f"{why}: without times (--quick) there are no phases"
    return why + _apps_there(check, figures)


def _apps_there(check: BudgetCheck, figures: matching.Figures) -> str:
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
    return f": its apps are {first_of(app_names, _NAMED)}"


def _unknown(check: BudgetCheck, match: matching.Match | None, why: str) -> Outcome:
    kind: Kind = "missing" if check.required else "budget"
    todo = "make a profile that has it, or drop `required`" if check.required else None
    status: Status = "fail" if check.required else "unknown"
    return outcome_at(check, match, kind, status, check.level, why, limit=check.limit_text, todo=todo)


def _budget_outcome(
    check: BudgetCheck, match: matching.Match | None, value: matching.Value, dimension: Dimension, *, is_met: bool
) -> Outcome:
    text = shown(value, dimension)
    if not is_met and not isinstance(check.limit, str) and text == shown(check.limit, dimension):
        text = shown(value, dimension, exact=True)
    todo = None if is_met else "`vani advise` recommends changes; if the change is intended, change the limit"
    what = f"is {text}; allowed is {check.limit_text}"
    status: Status = "pass" if is_met else "fail"
    return outcome_at(
        check, match, "budget", status, check.level, what, value=value, limit=check.limit_text, todo=todo
    )


def _compare(value: matching.Value, operator: str, limit: float | str | bool) -> bool:
    if isinstance(limit, (str, bool)):
        return (value == limit) is (operator == "==")
    return isinstance(value, (int, float)) and COMPARISONS[operator](value, limit)


def _closeness(value: matching.Value, operator: str, limit: float | str | bool) -> float:
    """A figure that is larger for values closer to the limit."""
    if isinstance(value, (str, bool)) or isinstance(limit, (str, bool)) or value is None:
        return 0.0
    if operator in ("<", "<="):
        return float(value)
    return -float(value) if operator in (">", ">=") else -math.fabs(value - limit)


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
    least = table.fail_on_severity
    severe = () if least is None else _ORDER[_ORDER.index(least) :]
    outcomes = [
        _fired(check, recommendation, verdicts, strip, profile)
        for recommendation in verdicts.advice.recommendations
        if recommendation.rule in verdicts.forbidden or recommendation.severity in severe
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
        outcome(
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
    ]


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
    short = matching.stripped(recommendation.target.path, strip) if recommendation.target.path else target
    forbidden = recommendation.rule in verdicts.forbidden
    limit = f"nothing from {recommendation.rule}" if forbidden else _limit(check)
    return outcome(
        f"rules.{recommendation.rule}",
        "rule",
        "fail",
        verdicts.levels.get(recommendation.rule, check.table.level),
        f"{recommendation.rule} ({recommendation.name}), {recommendation.severity}: {recommendation.reason}",
        against=f"{recommendation.name} {short or recommendation.target.kind}",
        attribute=_named(recommendation.evidence[0].attribute, profile) if recommendation.evidence else None,
        target=target,
        value=recommendation.severity,
        limit=limit,
        reason=check.table.reason,
        todo=_todo(recommendation),
        place=check.place,
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
    identity = tuple(getattr(entities[position], name) for name in matching.IDENTITIES[key])
    return f"{key}{matching.label(key, identity)}{attribute[match.end() :]}"


def _todo(recommendation: Recommendation) -> str:
    command = next((line for line in recommendation.apply if not line.lstrip().startswith("#")), None)
    explained = f"vani explain {recommendation.rule}"
    return f"{command} ({explained})" if command else explained


CHECK: Final = "traces"
_LEFT_OUT: Final = "traces["
_TODO: Final = f'trace the run again, or accept it for a while: [[check.except]] with check = "{CHECK}"'


def judge_completeness(profile: Profile, strip: Sequence[str]) -> list[Outcome]:
    """One outcome for each trace that is damaged or could not be read."""
    outcomes = [
        _trace_outcome(trace.path, "is damaged", trace.problems, strip)
        for trace in profile.traces
        # A quick profile may know of damage, but cannot rule it out.
        if trace.complete is False or trace.problems
    ]
    for key, why in profile.provenance.items():
        if key.startswith(_LEFT_OUT) and key.endswith("]"):
            path = key.removeprefix(_LEFT_OUT)[:-1]
            outcomes.append(_trace_outcome(path, "is not in the profile", [why.removeprefix("left out: ")], strip))
    return outcomes


def judge_run_sizes(runs: Sequence[matching.Tree]) -> list[Outcome]:
    """An outcome if runs of a baseline differ in processes, because all differences that follow count as noise."""

    process_counts = {run.get("workflow", {}).get("processes") for run in runs}
    sizes = sorted(count for count in process_counts if isinstance(count, int))
    if len(sizes) < 2:
        return []
    listed = ", ".join(f"{size:,}" for size in sizes[:5]) + (", ..." if len(sizes) > 5 else "")
    return [
        outcome(
            "baseline",
            "change",
            "fail",
            "warning",
            f"the baseline has runs of {listed} processes: their differences count as noise",
            against="baseline",
            attribute="workflow.processes",
            todo="save runs of one size: vani check PROFILE ... --save",
        )
    ]


def _trace_outcome(path: str, problem: str, problems: Sequence[str], strip: Sequence[str]) -> Outcome:
    why = f": {problems[0]}" if problems else ""
    more = f" (and {len(problems) - 1:,} more)" if len(problems) > 1 else ""
    short = matching.stripped(path, strip)
    return outcome(
        CHECK,
        "missing",
        "fail",
        "warning",
        f"{path} {problem}, so figures may be too small{why}{more}",
        against=short,
        target=path,
        todo=_TODO,
        stripped=short,
    )


def apply_exceptions(
    outcomes: Sequence[Outcome],
    exceptions: Sequence[ExceptionCheck],
    today: date,
    figures: matching.Figures,
    names: matching.Names,
) -> list[Outcome]:
    """Mark covered failures as excepted, and append a note for each expired or unused exception.

    If several exceptions cover an outcome, the one with the latest end applies, or the first of those.
    """
    reaches = [_reach(exception, figures, names) for exception in exceptions]
    covering = [
        [number for number, exception in enumerate(exceptions) if _covers(exception, reaches[number], outcome)]
        for outcome in outcomes
    ]
    valid = [[number for number in some if today <= exceptions[number].table.until] for some in covering]
    result = [
        _excepted(outcome, max((exceptions[number] for number in some), key=lambda exception: exception.table.until))
        if some
        else outcome
        for outcome, some in zip(outcomes, valid, strict=True)
    ]
    needed, used = ({number for some in each for number in some} for each in (covering, valid))
    for number, exception in enumerate(exceptions):
        until = exception.table.until
        if today > until:
            fails = "; what it covered fails again" if number in needed else "; it covers no failure"
            result.append(_note(exception, number, f"expired on {until.isoformat()}{fails}", "expired"))
        elif number not in used:
            result.append(_note(exception, number, "covers nothing that fails", "unused"))
    return result


def _reach(exception: ExceptionCheck, figures: matching.Figures, names: matching.Names) -> frozenset[str] | None:
    """The attributes of this profile that an exception names; None if it names none."""
    if exception.attribute is None:
        return None
    attributes = {
        match.attribute
        for leaf in exception.leaves
        for match in matching.matches(leaf, figures.tree, names, figures.path)
    }
    return frozenset({str(exception.attribute), *attributes})


def _covers(exception: ExceptionCheck, reach: frozenset[str] | None, outcome: Outcome) -> bool:
    judged, table = outcome.judgement, exception.table
    if judged.status != "fail":
        return False
    if table.check is not None and not (table.check == judged.check or fnmatchcase(judged.check, table.check)):
        return False
    if reach is not None and judged.attribute not in reach:
        return False
    if table.target is not None:
        targets = [name for name in (judged.target, outcome.stripped) if name is not None]
        if not any(name == table.target or fnmatchcase(name, table.target) for name in targets):
            return False
    return table.rule is None or table.rule.lower() in map(str.lower, outcome.rule)


def _excepted(outcome: Outcome, exception: ExceptionCheck) -> Outcome:
    excepted = Excepted(until=exception.table.until.isoformat(), reason=exception.table.reason)
    return replace(outcome, judgement=outcome.judgement.model_copy(update={"status": "excepted", "excepted": excepted}))


def _note(exception: ExceptionCheck, number: int, problem: str, kind: str) -> Outcome:
    table = exception.table
    words = {"check": table.check, "attribute": table.attribute, "target": table.target, "rule": table.rule}
    about = ", ".join(f"{key} {value}" for key, value in words.items() if value is not None)
    return outcome(
        "exceptions",
        "exception",
        "fail",
        "note",
        f"the exception for {about} {problem}",
        against=f"{number + 1} {about} {kind}",
        value=kind,
        reason=table.reason,
        todo="delete it, or give it a later date" if kind == "expired" else "delete it",
        place=exception.place,
    )
