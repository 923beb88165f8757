"""What a report is written from, gathered in one run."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import vani
from vani.api.advise import JUDGED_FILES, advise
from vani.api.given import PathLike
from vani.api.heat_map import heat_map_in
from vani.api.run import Run
from vani.api.source import profile_of, read_profile
from vani.errors import InputError, VaniError

if TYPE_CHECKING:
    from vani.engine.run import Progress
    from vani.engine.scheduler import SchedulerLike
    from vani.render.report.prepared import Inputs
    from vani.schema.advice import Advice
    from vani.schema.profile import Profile
    from vani.schema.system import System

__all__ = ["report_inputs"]


def report_inputs(
    profile: PathLike | Profile,
    *,
    advice: PathLike | Advice | None = None,
    system: PathLike | System | None = None,
    store: PathLike | None = None,
    with_heat_map: bool = True,
    scheduler: SchedulerLike = None,
    progress: Progress | None = None,
) -> Inputs:
    """What `report` writes from: the profile, its advice and what happened when.

    Parameters are those of `report`; without `with_heat_map` the calls are not looked at, for formats without plots.

    Raises
    ------
    InputError
        A document that cannot be read, or advice that was made from another profile.
    """
    from vani.render.report.prepared import Inputs  # noqa: PLC0415 - loads pydantic

    with Run([profile], store=store, scheduler=scheduler, progress=progress) as run:
        # More files than a profile lists by default: the report shows datasets of many files as one row.
        source = profile_of(run, profile, system=system, files=JUDGED_FILES)
        model = read_profile(source)
        judged = _advice(advice, source, system)
        return Inputs(
            profile=model,
            # The advice names the profile that it was made from: a long one is not written again for its digest.
            profile_sha256=judged.profile.sha256,
            advice=judged,
            heat=heat_map_in(run, model, store=store) if with_heat_map else "",
            rule_names=_rule_names(),
            version=vani.__version__,
            rule_findings=_rule_findings(),
        )


def _digest(source: PathLike | Profile) -> str:
    """The digest of a profile's file, or of the YAML that it is written as."""
    import hashlib  # noqa: PLC0415

    from vani.schema.document import dumps  # noqa: PLC0415

    content = Path(source).read_bytes() if isinstance(source, (str, Path)) else dumps(source).encode()
    return hashlib.sha256(content).hexdigest()


def _advice(
    given: PathLike | Advice | None, source: PathLike | Profile, system: PathLike | System | None
) -> Advice:
    """The advice that was given for this profile, or what the rules say about it."""
    from vani.schema.advice import Advice as Model  # noqa: PLC0415

    if given is None:
        # Judged as a file, a profile has a name and its own digest in the advice.
        return advise(source, system=system)
    found = Model.load(given) if isinstance(given, (str, Path)) else given
    if found.profile.sha256 != _digest(source):
        raise InputError(
            "was made from another profile (its sha256 differs)",
            where=given if isinstance(given, (str, Path)) else "the advice",
            todo="run `vani advise` on this profile, or leave --advice out",
        )
    return found


def _rule_names() -> dict[str, str]:
    from vani.advisors.catalogue import rules  # noqa: PLC0415

    return {rule.id: rule.name for rule in rules()}


def _rule_findings() -> dict[str, str]:
    from vani.advisors.catalogue import rules  # noqa: PLC0415

    found = {}
    for rule in rules():
        # A rule of another distribution may have no docstring in this form: its name has to do.
        with suppress(VaniError):
            found[rule.id] = rule.page().finding
    return found
