"""Inputs of a report, collected in one run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import vani
from vani.advisors.advise import advise_document, judged_part
from vani.advisors.catalogue import rules
from vani.api.arguments import JUDGED_FILES, PathLike, system_of
from vani.api.heat_map import heat_map_in
from vani.api.run import Run
from vani.api.source import profile_of
from vani.centre.write_time.api.write_time import profile_write_time
from vani.errors import InputError, VaniError
from vani.render.report.report_model import Inputs
from vani.schema.advice import Advice
from vani.schema.document import dumps
from vani.schema.profile import Profile
from vani.schema.saved_profile import SavedProfile

if TYPE_CHECKING:
    from vani.engine.executor import Progress
    from vani.engine.scheduler import SchedulerLike
    from vani.schema.saved_profile import FileSummary, ProfilePart
    from vani.schema.system import System

def report_inputs(
    profile: PathLike | Profile,
    *,
    advice: PathLike | Advice | None = None,
    system: PathLike | System | None = None,
    store: PathLike | None = None,
    write_model: PathLike | None = None,
    contact: Sequence[str] = (),
    with_heat_map: bool = True,
    scheduler: SchedulerLike = None,
    progress: Progress | None = None,
) -> Inputs:
    """Collect the profile, its advice and its calls over time for `report`.

    Parameters are those of `report`, whose `model` is `write_model` here. Formats without plots set `with_heat_map`
    to False, so that the calls are not read.

    Raises
    ------
    InputError
        A document cannot be read, or the advice was made from another profile.
    """
    with Run([profile], store=store, scheduler=scheduler, progress=progress) as run:
        # Checked before a trace is profiled: a faulty document should not cost minutes.
        given = _given(advice)
        # More files than a profile lists by default, because the report groups data sets of many files into
        # one row.
        source = _read(profile_of(run, profile, system=system, files=JUDGED_FILES))
        model, files, part = _model(source)
        judged = _judged(source, system, part) if given is None else given
        if given is not None:
            _check_profile_of(given, advice, source)
        return Inputs(
            profile=model,
            files=files,
            # The advice contains the digest of its profile, so that a long one need not be serialised again.
            profile_sha256=judged.profile.sha256,
            advice=judged,
            heat=heat_map_in(run, model, store=store) if with_heat_map else "",
            rule_names=_rule_names(),
            version=vani.__version__,
            rule_findings=rule_findings(),
            prediction=None if write_model is None else profile_write_time(model, write_model),
            users=_users(model),
            contact=tuple(contact),
            advice_file=Path(advice).name if isinstance(advice, (str, Path)) else None,
        )


def _given(advice: PathLike | Advice | None) -> Advice | None:
    return Advice.load(advice) if isinstance(advice, (str, Path)) else advice


def _read(source: PathLike | Profile) -> SavedProfile | Profile:
    """The profile, or the content of its file, which is read only once because it may be a pipe."""
    return SavedProfile.read(source) if isinstance(source, (str, Path)) else source


def _model(
    source: SavedProfile | Profile,
) -> tuple[Profile, list[FileSummary] | None, ProfilePart | None]:
    """The profile; for a long one in a file, the judged part and the columns of all its files that tables show."""
    if isinstance(source, Profile):
        return source, None, None
    part = judged_part(source, JUDGED_FILES)
    return part.profile, None if part.judged is None else source.file_summaries(), part


def _judged(
    source: SavedProfile | Profile, system: PathLike | System | None, part: ProfilePart | None
) -> Advice:
    """The advice. It names a profile that was read from a file, with the digest of that file."""
    return advise_document(source, system_of(system), files=JUDGED_FILES, part=part)


def _check_profile_of(advice: Advice, given: PathLike | Advice | None, source: SavedProfile | Profile) -> None:
    """Raise InputError if the advice is about another profile."""
    if advice.profile.sha256 != _digest(source):
        raise InputError(
            "was made from another profile (its sha256 differs)",
            where=given if isinstance(given, (str, Path)) else "the advice",
            todo="run `vani advise` on this profile, or leave --advice out",
        )


def _digest(source: SavedProfile | Profile) -> str:
    """Digest of a profile's file, or of the YAML that the profile would be written as."""
    import hashlib  # noqa: PLC0415

    if isinstance(source, Profile):
        return hashlib.sha256(dumps(source).encode()).hexdigest()
    return source.sha256


def _users(profile: Profile) -> tuple[str, ...]:
    """Users who ran the traces, if Recorder put them into the folder names."""
    from vani.readers.programs import app_of_folder  # noqa: PLC0415

    users = (app_of_folder(Path(trace.path).name).user for trace in profile.traces)
    return tuple(dict.fromkeys(filter(None, users)))


def _rule_names() -> dict[str, str]:
    return {rule.id: rule.name for rule in rules()}


def rule_findings() -> dict[str, str]:
    """The finding of each rule in one sentence, by the rule's id."""
    findings = {}
    for rule in rules():
        # A plug-in's rule may have no docstring in this form; its name is used instead.
        with suppress(VaniError):
            findings[rule.id] = rule.page().finding
    return findings
