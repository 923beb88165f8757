"""Applies all checks of a policy to a profile and combines them into one verdict."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Final, Literal

from vani.errors import InputError
from vani.gate import checks
from vani.gate.causes import causes_of, io_share
from vani.gate.changes import judge_changes
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
    checked: Sequence[Figures],
    runs: Sequence[Tree],
    baselines: Sequence[Source],
    rules: Sequence[checks.RulesAdvice],
    *,
    today: date,
    fail_on: Level | None,
    allow_empty: bool,
    version: str,
    tuned: TunedCheck | None = None,
) -> Check:
    """Apply all checks to the profiles of one or several runs of a program.

    Times are compared together; in everything else, the worst run counts.

    Parameters
    ----------
    runs
        Trees of the baselines' runs.
    rules
        The advice on each profile, if the policy has `[check.rules]`.
    tuned
        A proven setting that the run should use.

    Raises
    ------
    InputError
        Nothing could be judged, and `allow_empty` is false.
    """
    figures = checked[0]
    names = Names(policy.strip, aliases_of(figures.tree, [*runs, *(profile.tree for profile in checked[1:])]))
    # The built-in list needs a baseline. For a single app it does not repeat the workflow's figures.
    lone = all(len(profile.model.apps) == 1 for profile in checked)
    changes = [
        change
        for change in policy.changes
        if change.place is not None or (runs and not (lone and change.leaves[0].dotted.startswith("apps.")))
    ]
    compared, times = judge_changes(changes, checked, runs, names, policy.table.false_alarms)
    outcomes = compared + _worst(
        [outcome for budget in policy.budgets for outcome in checks.judge_budget(budget, profile, names)]
        for profile in checked
    )
    if policy.rules is not None:
        table = policy.rules
        each = zip(rules, checked, strict=False)
        outcomes += _worst(checks.judge_advice(table, advice, policy.strip, profile.model) for advice, profile in each)
    if tuned is not None:
        outcomes += _worst(judge_tuned(tuned, profile.model) for profile in checked)
    if not allow_empty and not any(outcome.judgement.status != "unknown" for outcome in outcomes):
        raise _empty(policy, outcomes)
    outcomes += _worst(checks.judge_completeness(profile.model, policy.strip) for profile in checked)
    outcomes += checks.judge_run_sizes(runs) if policy.changes else []
    outcomes = checks.apply_exceptions(outcomes, policy.exceptions, today, figures, names)
    judgements = sorted(_distinct([outcome.judgement for outcome in outcomes]), key=_order)
    least = fail_on or policy.table.fail_on
    failed = [judgement for judgement in judgements if judgement.status == "fail"]
    causes = causes_of(failed, figures, runs, names)
    # What follows from a cause has its remedy, whichever way it is shown.
    remedies = {name: cause.todo for cause in causes for name in cause.judgements}
    judgements = [
        judgement.model_copy(update={"todo": remedies.get(judgement.id, judgement.todo)}) for judgement in judgements
    ]
    sources = [Source(path=profile.path, sha256=profile.sha256) for profile in checked]
    bad = any(_LEVELS[judgement.level] <= _LEVELS[least] for judgement in failed)
    return Check(
        schema="vani.check/1",
        version=version,
        profile=sources[0],
        runs=sources if len(sources) > 1 else [],
        damage=next(filter(None, (damage(profile.model) for profile in checked)), None),
        policy=policy.source,
        baselines=list(baselines),
        tuned=None if tuned is None else tuned.source,
        fail_on=least,
        verdict=_word(failed, bad=bad),
        counts=_counts(judgements),
        times=times,
        judgements=judgements,
        causes=causes,
        storage=verdict_of(figures.model),
        io_share=io_share(figures.model) if failed else None,
    )


def _worst(of_runs: Iterable[Sequence[checks.Outcome]]) -> list[checks.Outcome]:
    """The worst outcome of several runs with each id; those of one run are unchanged."""
    listed = list(of_runs)
    if len(listed) == 1:
        return list(listed[0])
    worst: dict[str, checks.Outcome] = {}
    for outcome in (outcome for outcomes in listed for outcome in outcomes):
        known = worst.setdefault(outcome.judgement.id, outcome)
        if _STATUSES[outcome.judgement.status] < _STATUSES[known.judgement.status]:
            worst[outcome.judgement.id] = outcome
    return list(worst.values())


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
        **{level: failed[level] for level in _LEVELS},
        passed=status["pass"],
        excepted=status["excepted"],
        unknown=status["unknown"],
    )


def _empty(policy: PolicyChecks, outcomes: Sequence[checks.Outcome]) -> InputError:
    todo, path = "--allow-empty accepts that", policy.path
    if outcomes:
        many = f"the results of all {len(outcomes)} checks are unknown"
        which = "the result of the only check is unknown" if len(outcomes) == 1 else many
        problem = f"nothing to check: {which} about this profile ({outcomes[0].judgement.message})"
        return InputError(problem, where=path or "", todo=todo)
    what, first = "no vani.toml or .vani.yaml was found here or in parent folders, and no baseline", "write a policy"
    if path is not None:
        what = "it has no budgets, changes or rules, and there is no baseline"
        first = f"add {'[[check.budget]]' if path.suffix == '.toml' else 'a `budget` below `check:`'}"
    todo = f"{first}, or save a baseline with `vani check PROFILE --save`; {todo}"
    return InputError(f"nothing to check: {what}", where=path or "", todo=todo)
