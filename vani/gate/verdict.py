"""All checks of a policy held against a profile, and one verdict of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date
from typing import Final

from vani.errors import InputError
from vani.gate.advice import AskedRules, judge_advice
from vani.gate.asked import Asked
from vani.gate.budgets import judge_budget
from vani.gate.causes import causes_of, io_share
from vani.gate.changes import judge_change
from vani.gate.completeness import judge_alikeness, judge_completeness
from vani.gate.entities import Names, aliases_of
from vani.gate.exceptions import excuse
from vani.gate.matching import columns_of
from vani.gate.outcome import Outcome
from vani.gate.profile_tree import Figures, Tree
from vani.schema.check import Check, CheckCounts, Judgement, Level, Source
from vani.schema.columns_of_files import Column
from vani.schema.damage import damage

__all__ = ["columns_asked", "verdict_on"]

_LEVELS: Final[dict[Level, int]] = {"error": 0, "warning": 1, "note": 2}
_STATUSES: Final = {"fail": 0, "excepted": 1, "unknown": 2, "pass": 3}


def columns_asked(asked: Asked) -> set[Column]:
    """Attributes of files that the checks look at."""
    leaves = [leaf for budget in asked.budgets for leaf in budget.leaves]
    leaves += [leaf for change in asked.changes for leaf in change.leaves]
    leaves += [leaf for one in asked.excuses for leaf in one.leaves]
    return columns_of(leaves)


def verdict_on(
    asked: Asked,
    figures: Figures,
    runs: Sequence[Tree],
    baselines: Sequence[Source],
    rules: AskedRules | None,
    *,
    today: date,
    fail_on: Level | None,
    allow_empty: bool,
    version: str,
) -> Check:
    """Hold everything that is asked against a profile.

    Parameters
    ----------
    runs
        Trees of the baselines' runs.
    rules
        What the rules said, where the policy asks for that.

    Raises
    ------
    InputError
        Nothing could be judged, and that is not allowed.
    """
    names = Names(asked.strip, aliases_of(figures.tree, runs))
    outcomes: list[Outcome] = []
    for budget in asked.budgets:
        outcomes += judge_budget(budget, figures, names)
    for change in asked.changes:
        # The built-in list asks for nothing where there is no baseline, nor of a single app what the workflow says.
        repeats = change.leaves[0].dotted.startswith("apps.") and len(figures.model.apps) == 1
        if change.place is not None or (runs and not repeats):
            outcomes += judge_change(change, figures, runs, names)
    if asked.rules is not None and rules is not None:
        outcomes += judge_advice(asked.rules, rules, asked.strip, figures.model)
    if not allow_empty and not any(one.judgement.status != "unknown" for one in outcomes):
        raise _empty(asked, outcomes)
    outcomes += judge_completeness(figures.model, asked.strip)
    outcomes += judge_alikeness(runs) if asked.changes else []
    outcomes = excuse(outcomes, asked.excuses, today, figures, names)
    judgements = sorted(_distinct([one.judgement for one in outcomes]), key=_order)
    least = fail_on or asked.table.fail_on
    failed = [one for one in judgements if one.status == "fail"]
    bad = any(_LEVELS[one.level] <= _LEVELS[least] for one in failed)
    return Check(
        schema="vani.check/1",
        version=version,
        profile=Source(path=figures.path, sha256=figures.sha256),
        damage=damage(figures.model),
        policy=asked.source,
        baselines=list(baselines),
        fail_on=least,
        verdict="fail" if bad else "pass",
        counts=_counts(judgements),
        judgements=judgements,
        causes=causes_of(failed, figures, runs, names),
        io_share=io_share(figures.model) if failed else None,
    )


def _order(one: Judgement) -> tuple[int, int, str]:
    return _STATUSES[one.status], _LEVELS[one.level], one.id


def _distinct(judgements: Sequence[Judgement]) -> list[Judgement]:
    """The judgements with ids of which no two are equal, whatever the names in a profile are."""
    seen: Counter[str] = Counter()
    used = {one.id for one in judgements}
    result = []
    for one in sorted(judgements, key=lambda one: (one.id, one.message)):
        seen[one.id] += 1
        name, number = one.id, seen[one.id]
        while number > 1 and name in used:
            name = f"{one.id} #{number}"
            number += 1
        used.add(name)
        result.append(one if name == one.id else one.model_copy(update={"id": name}))
    return result


def _counts(judgements: Sequence[Judgement]) -> CheckCounts:
    failed = Counter(one.level for one in judgements if one.status == "fail")
    status = Counter(one.status for one in judgements)
    return CheckCounts(
        error=failed["error"],
        warning=failed["warning"],
        note=failed["note"],
        passed=status["pass"],
        excepted=status["excepted"],
        unknown=status["unknown"],
    )


def _empty(asked: Asked, outcomes: Sequence[Outcome]) -> InputError:
    todo = "--allow-empty accepts that"
    if outcomes:
        which = (
            "the only check says nothing"
            if len(outcomes) == 1
            else f"none of {len(outcomes)} checks says anything"
        )
        what = f"nothing to check: {which} about this profile ({outcomes[0].judgement.message})"
        return InputError(what, where=asked.path or "", todo=todo)
    if asked.path is None:
        return InputError(
            "nothing to check: no vani.toml or .vani.yaml was found here or above, and no baseline",
            todo=f"write a policy, or save a baseline with `vani baseline save PROFILE`; {todo}",
        )
    budget = "[[check.budget]]" if asked.path.suffix == ".toml" else "a `budget` below `check:`"
    return InputError(
        "nothing to check: it has no budgets, changes or rules, and there is no baseline",
        where=asked.path,
        todo=f"add {budget}, or save a baseline with `vani baseline save PROFILE`; {todo}",
    )
