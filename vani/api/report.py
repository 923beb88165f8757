"""Implements `vani report`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vani.api.arguments import PathLike
from vani.api.report_inputs import report_inputs
from vani.render.formats import REPORT, WITH_PLOTS

if TYPE_CHECKING:
    from vani.engine.executor import Progress
    from vani.engine.scheduler import SchedulerLike
    from vani.schema.advice import Advice
    from vani.schema.profile import Profile
    from vani.schema.system import System

@dataclass(frozen=True)
class Reported:
    """A report and its profile; a long profile lists only its costliest files."""

    text: str
    profile: Profile


def report(
    profile: PathLike | Profile,
    *,
    advice: PathLike | Advice | None = None,
    system: PathLike | System | None = None,
    store: PathLike | None = None,
    model: PathLike | None = None,
    contact: Sequence[str] = (),
    format: str = "html",
    scheduler: SchedulerLike = None,
    progress: Progress | None = None,
) -> str:
    """Write a profile and its advice as a report for people.

    Parameters
    ----------
    profile
        A profile, its path, or a trace, which is profiled first.
    advice
        Advice made from this profile; by default all rules are evaluated.
    system
        The machine, for the advice and for a profile made here.
    store
        The store, or the folder of stores, for plots over time; the user's cache directory by default.
    model
        A model from `vani model fit`, compared with the time of the run's writes.
    contact
        Contact lines at the end (`vani.site.contact_lines`).
    format
        `html`: a self-contained page of at most 1.5 MB; `markdown`: at most 60,000 characters, for a merge request;
        `txt`: for a terminal with 80 columns.

    Raises
    ------
    InputError
        A document or a trace cannot be read, the advice was made from another profile, or the format does not
        exist.
    """
    return reported(
        profile,
        advice=advice,
        system=system,
        store=store,
        model=model,
        contact=contact,
        format=format,
        scheduler=scheduler,
        progress=progress,
    ).text


def reported(
    profile: PathLike | Profile,
    *,
    advice: PathLike | Advice | None = None,
    system: PathLike | System | None = None,
    store: PathLike | None = None,
    model: PathLike | None = None,
    contact: Sequence[str] = (),
    format: str = "html",
    scheduler: SchedulerLike = None,
    progress: Progress | None = None,
) -> Reported:
    """Write a report like `report`, and return its profile too, which may have been made here."""
    REPORT.check(format)

    def rendered() -> Reported:
        inputs = report_inputs(
            profile,
            advice=advice,
            system=system,
            store=store,
            write_model=model,
            contact=contact,
            with_heat_map=format in WITH_PLOTS,
            scheduler=scheduler,
            progress=progress,
        )
        return Reported(REPORT.render(format, inputs), inputs.profile)

    return rendered()
