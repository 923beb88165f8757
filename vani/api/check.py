"""Implements `vani check`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import vani
from vani.advisors.catalogue import Settings, find, pick, settings_of
from vani.advisors.judge import UNKNOWN_SYSTEM, judge
from vani.api.arguments import JUDGED_FILES, PathLike, system_of
from vani.api.gate_inputs import checks_of_policy, figures_of
from vani.api.run import Run
from vani.errors import InputError
from vani.gate import baselines as saved
from vani.gate.advice import RulesAdvice
from vani.gate.causes import FILES
from vani.gate.profile_tree import path_text, read_bytes
from vani.gate.tuned import TunedCheck
from vani.gate.verdict import columns_compared, verdict_on
from vani.schema.advice import ProfileRef, SystemRef
from vani.schema.check import Source
from vani.schema.tuned import Tuned

if TYPE_CHECKING:
    from vani.engine.executor import Progress
    from vani.engine.scheduler import SchedulerLike
    from vani.gate.policy_checks import PolicyChecks
    from vani.gate.profile_tree import Figures
    from vani.schema.check import Check, Level
    from vani.schema.profile import Profile
    from vani.schema.system import System

def check(
    profile: PathLike | Profile,
    *,
    policy: PathLike | None = None,
    search: bool = True,
    baselines: Sequence[PathLike] = (),
    tuned: PathLike | None = None,
    system: PathLike | System | None = None,
    default_system: PathLike | None = None,
    fail_on: Level | None = None,
    allow_empty: bool = False,
    update_baseline: bool = False,
    today: date | None = None,
    store: PathLike | None = None,
    scheduler: SchedulerLike = None,
    progress: Progress | None = None,
) -> Check:
    """Check a profile against a policy and a baseline's runs.

    Parameters
    ----------
    profile
        A profile, its path, or a trace, which is profiled first and lists all files.
    policy
        vani.toml or .vani.yaml; None with `search` takes the nearest one from the working directory upwards.
    baselines
        Baselines or profiles, folders or globs of them; replaces the policy's.
    tuned
        Result of `vani tune`: the run should use its proven setting and be as fast as the tuned runs.
    system
        The machine for the rules; replaces the policy's.
    default_system
        The machine if neither `system` nor the policy names one.
    fail_on
        The lowest level that makes the verdict `fail`; replaces the policy's.
    allow_empty
        Pass if there is nothing to check.
    update_baseline
        Replace the baseline with this profile after the check, even if it fails.
    today
        The date on which exceptions are judged; by default today in UTC.
    store, scheduler, progress
        As in `profile`, for a trace.

    Raises
    ------
    InputError
        A document cannot be used, or there is nothing to check.
    """
    checks = checks_of_policy(policy, search=search)
    target = None
    if update_baseline:
        target = saved.path_to_update(checks, [Path(baseline) for baseline in baselines])
    proven = None if tuned is None else _proven(Path(tuned))
    columns = columns_compared(checks)
    files = max(JUDGED_FILES if checks.rules else 1, saved.FILES if target else 1, FILES)
    # Checked before a trace is profiled: a pattern that matches no file should not cost minutes.
    places = saved.files_to_compare(
        checks, [str(baseline) for baseline in baselines], missing_ok=update_baseline
    )
    earlier = [saved.read_runs(place, columns | {*saved.FILE_COLUMNS}) for place in places]
    with Run([profile], store=store, scheduler=scheduler, progress=progress) as run:
        figures = figures_of(run, profile, columns, files, system=system)
    verdict = verdict_on(
        checks,
        figures,
        [run for baseline in earlier for run in baseline.runs],
        [baseline.source for baseline in earlier],
        _rules_advice(
            checks, figures, default_system if system is None and checks.table.system is None else system
        ),
        today=today or datetime.now(UTC).date(),
        fail_on=fail_on,
        allow_empty=allow_empty or update_baseline,
        version=vani.__version__,
        tuned=proven,
    )
    if target is not None:
        saved.write(saved.baseline_of([saved.run_of(figures)], checks.strip), target)
    return verdict


def _proven(path: Path) -> TunedCheck:
    content = read_bytes(path, todo="name the tuned.yaml of vani tune")
    return TunedCheck(Tuned.load(path), Source(path=path_text(path), sha256=sha256(content).hexdigest()))


def _rules_advice(
    checks: PolicyChecks, figures: Figures, system: PathLike | System | None
) -> RulesAdvice | None:
    """Evaluate the catalogue's rules if the policy limits their findings."""
    if checks.rules is None:
        system_of(system)  # Reports a misspelt name even if no check needs the machine.
        return None

    table = checks.rules.table
    place = f"{checks.rules.place.path}:{checks.rules.place.line}"
    try:
        if system is None and checks.table.system is not None:
            named = checks.folder / checks.table.system
            machine = system_of(named if named.is_file() else checks.table.system)
        else:
            machine = system_of(system)
    except InputError as error:
        # Errors inside a system file already name their lines; an unknown name is reported where the policy
        # uses it.
        where = error.where or ("" if system is not None else checks.where("system"))
        raise InputError(error.what, where=where, todo=error.todo) from None
    settings = settings_of(dict(checks.advise), checks.path or Path()) if checks.advise else Settings()
    try:
        forbidden = frozenset(rule.id for rule in pick(table.forbid)) if table.forbid else frozenset()
        levels = {find(name).id: level for name, level in table.levels.items()}
        pick(table.ignore)
    except InputError as error:
        raise InputError(error.what, where=place, todo=error.todo) from None
    try:
        advice = judge(
            figures.model,
            UNKNOWN_SYSTEM if machine is None else machine,
            profile_ref=ProfileRef(path=figures.path, sha256=figures.sha256),
            system_ref=SystemRef(name=None if machine is None else machine.name, sha256=""),
            select=settings.select,
            ignore=[*settings.ignore, *table.ignore],
            thresholds=settings.thresholds,
        )
    except InputError as error:
        # The table `[advise]` names an unknown rule or threshold.
        raise InputError(error.what, where=error.where or str(checks.path), todo=error.todo) from None
    return RulesAdvice(advice, forbidden, levels)
