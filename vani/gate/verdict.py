"""Applies all checks of a policy to a profile and combines them into one verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date
from typing import Final, Literal

from vani.errors import InputError
from vani.gate.causes import causes_of, io_share
from vani.gate.changes import judge_change
from vani.gate.checks import (
    Outcome,
    RulesAdvice,
    apply_exceptions,
    judge_advice,
    judge_budget,
    judge_completeness,
    judge_run_sizes,
)
from vani.gate.matching import Figures, Names, Tree, aliases_of, columns_of
from vani.gate.policy import PolicyChecks
from vani.gate.tuned import TunedCheck, judge_tuned
from vani.models.verdict import verdict_of
from vani.schema.check import Check, CheckCounts, Judgement, Level, Source
from vani.schema.damage import damage
from vani.schema.saved_profile import Column

_LEVELS: Final[dict[Level, int]] = {"error": 0, "warning": 1, "note": 2}
_STATUSES: Final = {"fail": 0, "excepted": 1, "unknown": 2, "pass": 3}


def columns_compared(policy: PolicyChecks) -> set[Column]:
    """Attributes of files that the checks read."""
    leaves = [leaf for budget in policy.budgets for leaf in budget.leaves]
    leaves += [leaf for change in policy.changes for leaf in change.leaves]
    leaves += [leaf for exception in policy.exceptions for leaf in exception.leaves]
    return columns_of(leaves)


def verdict_on(
    policy: PolicyChecks,
    figures: Figures,
    runs: Sequence[Tree],
    baselines: Sequence[Source],
    rules: RulesAdvice | None,
    *,
    today: date,
    fail_on: Level | None,
    allow_empty: bool,
    version: str,
    tuned: TunedCheck | None = None,
) -> Check:
    """Apply all checks to a profile.

    Parameters
    ----------
    runs
        Trees of the baselines' runs.
    rules
        The advice on the profile, if the policy has `[check.rules]`.
    tuned
        A proven setting that the run should use.

    Raises
    ------
    InputError
        Nothing could be judged, and `allow_empty` is false.
    """
    names = Names(policy.strip, aliases_of(figures.tree, runs))
    outcomes: list[Outcome] = []
    for budget in policy.budgets:
        outcomes += judge_budget(budget, figures, names)
    for change in policy.changes:
        # The built-in list needs a baseline. For a single app it does not repeat the workflow's figures.
        repeats = change.leaves[0].dotted.startswith("apps.") and len(figures.model.apps) == 1
        if change.place is not None or (runs and not repeats):
            outcomes += judge_change(change, figures, runs, names)
    if policy.rules is not None and rules is not None:
        outcomes += judge_advice(policy.rules, rules, policy.strip, figures.model)
    if tuned is not None:
        outcomes += judge_tuned(tuned, figures.model)
    if not allow_empty and not any(outcome.judgement.status != "unknown" for outcome in outcomes):
        raise _empty(policy, outcomes)
    outcomes += judge_completeness(figures.model, policy.strip)
    outcomes += judge_run_sizes(runs) if policy.changes else []
    outcomes = apply_exceptions(outcomes, policy.exceptions, today, figures, names)
    judgements = sorted(_distinct([outcome.judgement for outcome in outcomes]), key=_order)
    least = fail_on or policy.table.fail_on
    failed = [judgement for judgement in judgements if judgement.status == "fail"]
    bad = any(_LEVELS[judgement.level] <= _LEVELS[least] for judgement in failed)
    return Check(
        schema="vani.check/1",
        version=version,
        profile=Source(path=figures.path, sha256=figures.sha256),
        damage=damage(figures.model),
        policy=policy.source,
        baselines=list(baselines),
        tuned=None if tuned is None else tuned.source,
        fail_on=least,
        verdict=_word(failed, bad=bad),
        counts=_counts(judgements),
        judgements=judgements,
        causes=causes_of(failed, figures, runs, names),
        storage=verdict_of(figures.model),
        io_share=io_share(figures.model) if failed else None,
    )


def _word(failed: Sequence[Judgement], *, bad: bool) -> Literal["pass", "pass with warnings", "fail"]:
    if bad:
        return "fail"
    return "pass with warnings" if any(judgement.level != "note" for judgement in failed) else "pass"


def _order(judgement: Judgement) -> tuple[int, int, str]:
    return _STATUSES[judgement.status], _LEVELS[judgement.level], judgement.id


def _distinct(judgements: Sequence[Judgement]) -> list[Judgement]:
    """The judgements with unique ids, even if names in a profile are equal."""

    seen: Counter[str] = Counter()
    used = {judgement.id for judgement in judgements}
    result = []
    for judgement in sorted(judgements, key=lambda judgement: (judgement.id, judgement.message)):
        seen[judgement.id] += 1
        name, number = judgement.id, seen[judgement.id]
        while number > 1 and name in used:
            name = f"{judgement.id} #{number}"
            number += 1
        used.add(name)
        result.append(judgement if name == judgement.id else judgement.model_copy(update={"id": name}))
    return result


def _counts(judgements: Sequence[Judgement]) -> CheckCounts:
    failed = Counter(judgement.level for judgement in judgements if judgement.status == "fail")
    status = Counter(judgement.status for judgement in judgements)
    return CheckCounts(
        error=failed["error"],
        warning=failed["warning"],
        note=failed["note"],
        passed=status["pass"],
        excepted=status["excepted"],
        unknown=status["unknown"],
    )


def _empty(policy: PolicyChecks, outcomes: Sequence[Outcome]) -> InputError:
    todo = "--allow-empty accepts that"
    if outcomes:
        which = (
            "the result of the only check is unknown"
            if len(outcomes) == 1
            else f"the results of all {len(outcomes)} checks are unknown"
        )
        problem = f"nothing to check: {which} about this profile ({outcomes[0].judgement.message})"
        return InputError(problem, where=policy.path or "", todo=todo)
    if policy.path is None:
        return InputError(
            "nothing to check: no vani.toml or .vani.yaml was found here or in parent folders, and no baseline",
            todo=f"write a policy, or save a baseline with `vani check PROFILE --save`; {todo}",
        )
    budget = "[[check.budget]]" if policy.path.suffix == ".toml" else "a `budget` below `check:`"
    return InputError(
        "nothing to check: it has no budgets, changes or rules, and there is no baseline",
        where=policy.path,
        todo=f"add {budget}, or save a baseline with `vani check PROFILE --save`; {todo}",
    )
