"""What `vani report` does, for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from vani.api.given import PathLike
from vani.api.report_inputs import report_inputs

if TYPE_CHECKING:
    from vani.engine.run import Progress
    from vani.engine.scheduler import SchedulerLike
    from vani.render.report.prepared import Inputs
    from vani.schema.advice import Advice
    from vani.schema.profile import Profile
    from vani.schema.system import System

__all__ = ["report", "written_report"]


def report(
    profile: PathLike | Profile,
    *,
    advice: PathLike | Advice | None = None,
    system: PathLike | System | None = None,
    store: PathLike | None = None,
    format: Literal["html", "markdown", "txt"] = "html",
    scheduler: SchedulerLike = None,
    progress: Progress | None = None,
) -> str:
    """Write what a profile and its advice say, for people.

    Parameters
    ----------
    profile
        A profile, the path of one, or a directory that a tracer left, which is profiled first.
    advice
        Advice that was made from this profile; by default all rules are asked.
    system
        The machine, for the advice (and the profile, where it is made here).
    store
        The store, or the folder of stores, for what happened when; the user's cache directory by default.
    format
        `html`: one page that needs no network and has at most 2 MB; `markdown`: for a merge request, at most 60,000
        letters; `txt`: for a terminal of 80 columns.

    Raises
    ------
    InputError
        A document that cannot be read, or advice that was made from another profile.
    """
    found = report_inputs(
        profile,
        advice=advice,
        system=system,
        store=store,
        with_heat_map=format == "html",
        scheduler=scheduler,
        progress=progress,
    )
    return written_report(found, format)


def written_report(inputs: Inputs, format: Literal["html", "markdown", "txt"]) -> str:
    """The report as `report` gives it."""
    if format == "markdown":
        from vani.render.report.markdown import markdown  # noqa: PLC0415

        return markdown(inputs)
    if format == "txt":
        from vani.render.report.text import text  # noqa: PLC0415

        return text(inputs)
    from vani.render.report.page import page  # noqa: PLC0415

    return page(inputs)
