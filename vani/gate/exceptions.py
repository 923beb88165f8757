"""Exceptions: failures that the policy accepts for some time, and notes on expired or unused exceptions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from fnmatch import fnmatchcase

from vani.gate.entity_names import Names
from vani.gate.matching import matches
from vani.gate.outcome import Outcome, judgement
from vani.gate.policy_checks import ExceptionCheck
from vani.gate.profile_tree import Figures
from vani.schema.check import Excepted


def apply_exceptions(
    outcomes: Sequence[Outcome],
    exceptions: Sequence[ExceptionCheck],
    today: date,
    figures: Figures,
    names: Names,
) -> list[Outcome]:
    """Mark covered failures as excepted, and append a note for each expired or unused exception.

    If several exceptions cover an outcome, the one with the latest end applies, or the first of those.
    """
    reaches = [_reach(exception, figures, names) for exception in exceptions]
    used = [False] * len(exceptions)
    needed = [False] * len(exceptions)
    result = []
    for outcome in outcomes:
        best: int | None = None
        if outcome.judgement.status == "fail":
            for number, exception in enumerate(exceptions):
                if not _covers(exception, reaches[number], outcome):
                    continue
                needed[number] = True
                if today > exception.table.until:
                    continue
                used[number] = True
                if best is None or exception.table.until > exceptions[best].table.until:
                    best = number
        result.append(outcome if best is None else _excepted(outcome, exceptions[best]))
    for number, exception in enumerate(exceptions):
        if today > exception.table.until:
            fails = "; what it covered fails again" if needed[number] else "; it covers no failure"
            result.append(
                _note(exception, number, f"expired on {exception.table.until.isoformat()}{fails}", "expired")
            )
        elif not used[number]:
            result.append(_note(exception, number, "covers nothing that fails", "unused"))
    return result


def _reach(exception: ExceptionCheck, figures: Figures, names: Names) -> frozenset[str] | None:
    """The attributes of this profile that an exception names; None if it names none."""
    if exception.attribute is None:
        return None
    attributes = {
        match.attribute
        for leaf in exception.leaves
        for match in matches(leaf, figures.tree, names, figures.path)
    }
    return frozenset({str(exception.attribute), *attributes})


def _covers(exception: ExceptionCheck, reach: frozenset[str] | None, outcome: Outcome) -> bool:
    judged, table = outcome.judgement, exception.table
    if table.check is not None and not (
        table.check == judged.check or fnmatchcase(judged.check, table.check)
    ):
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
    changed = outcome.judgement.model_copy(update={"status": "excepted", "excepted": excepted})
    return Outcome(changed, outcome.rule, outcome.stripped)


def _note(exception: ExceptionCheck, number: int, problem: str, kind: str) -> Outcome:
    table = exception.table
    words = {"check": table.check, "attribute": table.attribute, "target": table.target, "rule": table.rule}
    about = ", ".join(f"{key} {value}" for key, value in words.items() if value is not None)
    return Outcome(
        judgement(
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
    )
