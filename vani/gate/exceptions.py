"""Exceptions: what the policy lets pass for a while, and notes about those that are over or not needed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from vani.gate.asked import Excuse
from vani.gate.entities import Names
from vani.gate.matching import matches
from vani.gate.outcome import Outcome, judgement
from vani.gate.pattern import fits
from vani.gate.profile_tree import Figures
from vani.schema.check import Excepted

__all__ = ["excuse"]


def excuse(
    outcomes: Sequence[Outcome], excuses: Sequence[Excuse], today: date, figures: Figures, names: Names
) -> list[Outcome]:
    """The outcomes, of which those that fail and are covered are excepted; then a note for each useless exception.

    Of several that cover an outcome, the one that holds longest counts, of those the first.
    """
    reaches = [_reach(one, figures, names) for one in excuses]
    used = [False] * len(excuses)
    needed = [False] * len(excuses)
    result = []
    for outcome in outcomes:
        best: int | None = None
        if outcome.judgement.status == "fail":
            for number, one in enumerate(excuses):
                if not _covers(one, reaches[number], outcome):
                    continue
                needed[number] = True
                if today > one.table.until:
                    continue
                used[number] = True
                if best is None or one.table.until > excuses[best].table.until:
                    best = number
        result.append(outcome if best is None else _excepted(outcome, excuses[best]))
    for number, one in enumerate(excuses):
        if today > one.table.until:
            fails = "; what it covered fails again" if needed[number] else "; nothing fails that it covered"
            result.append(_note(one, number, f"expired on {one.table.until.isoformat()}{fails}", "expired"))
        elif not used[number]:
            result.append(_note(one, number, "covers nothing that fails", "unused"))
    return result


def _reach(one: Excuse, figures: Figures, names: Names) -> frozenset[str] | None:
    """The attributes that it names, in this profile; None: it names none."""
    if one.attribute is None:
        return None
    found = {
        match.attribute for leaf in one.leaves for match in matches(leaf, figures.tree, names, figures.path)
    }
    return frozenset({str(one.attribute), *found})


def _covers(one: Excuse, reach: frozenset[str] | None, outcome: Outcome) -> bool:
    found, table = outcome.judgement, one.table
    if table.check is not None and not (table.check == found.check or fits(table.check, found.check)):
        return False
    if reach is not None and found.attribute not in reach:
        return False
    if table.target is not None:
        targets = [name for name in (found.target, outcome.stripped) if name is not None]
        if not any(name == table.target or fits(table.target, name) for name in targets):
            return False
    return table.rule is None or table.rule.lower() in map(str.lower, outcome.rule)


def _excepted(outcome: Outcome, one: Excuse) -> Outcome:
    excepted = Excepted(until=one.table.until.isoformat(), reason=one.table.reason)
    changed = outcome.judgement.model_copy(update={"status": "excepted", "excepted": excepted})
    return Outcome(changed, outcome.rule, outcome.stripped)


def _note(one: Excuse, number: int, what: str, kind: str) -> Outcome:
    table = one.table
    words = {"check": table.check, "attribute": table.attribute, "target": table.target, "rule": table.rule}
    about = ", ".join(f"{key} {value}" for key, value in words.items() if value is not None)
    return Outcome(
        judgement(
            "exceptions",
            "exception",
            "fail",
            "note",
            f"the exception for {about} {what}",
            against=f"{number + 1} {about} {kind}",
            value=kind,
            reason=table.reason,
            todo="delete it, or give it a later date" if kind == "expired" else "delete it",
            place=one.place,
        )
    )
