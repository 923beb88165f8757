"""Implements `vani advise`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vani.advisors.advise import advise_document, judged_part
from vani.advisors.catalogue import Settings, pick, read_settings
from vani.api.arguments import JUDGED_FILES, PathLike, system_of
from vani.api.benchmark import advise_result, is_result_alone, output_in_folder, with_agreement
from vani.api.run import Run
from vani.api.source import is_trace, profile_of
from vani.api.subject import subject_of
from vani.schema.saved_profile import SavedProfile

if TYPE_CHECKING:
    from vani.engine.executor import Progress
    from vani.engine.scheduler import SchedulerLike
    from vani.schema.advice import Advice
    from vani.schema.profile import Profile
    from vani.schema.system import System

def advise(
    profile: PathLike | Profile,
    *,
    system: PathLike | System | None = None,
    select: Sequence[str] | None = None,
    ignore: Sequence[str] | None = None,
    thresholds: Mapping[str, Mapping[str, int | float | str]] | None = None,
    config: PathLike | None = None,
    site: Mapping[str, Mapping[str, Any]] | None = None,
    files: int | None = JUDGED_FILES,
    store: PathLike | None = None,
    scheduler: SchedulerLike = None,
    progress: Progress | None = None,
    db: PathLike | None = None,
    ior_output: PathLike | None = None,
) -> Advice:
    """Judge a profile by every rule of the catalogue, or an IO500, IOR or mdtest result by its own figures.

    Parameters
    ----------
    profile
        A profile, its path, or a trace, which is profiled first. It can also be the folder of an IO500 result or
        the output of IOR or mdtest; then only `system` is used.
    system
        The machine: a system.yaml, the name of a bundled machine, or the model.
    select, ignore
        Ids of rules to run and to skip, or prefixes of ids such as `LUS`.
    thresholds
        Thresholds by rule (id or name), then by threshold name. They override those in `config`.
    config
        A TOML file whose table `[advise]` has thresholds, `select` and `ignore` (see `vani.advisors.catalogue`);
        `select` replaces the file's; `ignore` adds to it.
    site
        The site's thresholds (`vani.site.thresholds`), which `config` overrides.
    files
        Number of listed files to judge, those with the most I/O time first; None judges all.
    store, scheduler, progress
        As in `profile`, for a trace.
    db
        A history. Settings that `vani tune` measured for this application on this machine show the measured gain
        instead of an estimate.
    ior_output
        Output of the traced IOR or mdtest run; by default the one in the trace's folder.

    Raises
    ------
    InputError
        A document or a trace cannot be read, or a rule or threshold does not exist.
    """
    if db is not None:
        from vani.api.measured import advice_with_history, check_history  # noqa: PLC0415 - an extra

        # Checked before a trace is profiled: a misspelt path should not cost minutes.
        check_history(db)
    if isinstance(profile, (str, Path)):
        if is_result_alone(Path(profile)):
            return advise_result(profile, system=system)
        ior_output = ior_output or output_in_folder(Path(profile))
    source = profile
    settings = Settings() if config is None else read_settings(Path(config))
    merged: dict[str, dict[str, Any]] = {}
    for table in (site or {}, settings.thresholds, thresholds or {}):
        for key, values in table.items():
            merged[key] = merged.get(key, {}) | dict(values)
    chosen = settings.select if select is None else select
    passed_over = [*settings.ignore, *(ignore or ())]
    if isinstance(source, (str, Path)) and is_trace(source):
        # Checked before a trace is profiled: a misspelt rule should not cost minutes.
        pick(chosen, passed_over)
        with Run([source], store=store, scheduler=scheduler, progress=progress) as run:
            source = profile_of(run, source, system=system, files=files)
    machine = system_of(system)
    document = SavedProfile.read(source) if isinstance(source, (str, Path)) else source
    part = judged_part(document, files)
    advice = advise_document(
        document, machine, select=chosen, ignore=passed_over, thresholds=merged, files=files, part=part
    )
    if ior_output is not None:
        advice = with_agreement(advice, part.profile, Path(ior_output))
    return advice if db is None else advice_with_history(advice, subject_of(part.profile, machine), db)
