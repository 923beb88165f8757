"""Implements `vani plot`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vani.api.arguments import JUDGED_FILES, PathLike
from vani.api.heat_map import heat_map_in
from vani.api.run import Run
from vani.api.source import profile_of, read_profile
from vani.errors import InputError
from vani.render.plots.catalogue import Missing, draw, plot_of
from vani.render.plots.drawing import Drawing
from vani.render.plots.image import FORMATS

if TYPE_CHECKING:
    from vani.engine.executor import Progress
    from vani.engine.scheduler import SchedulerLike
    from vani.schema.profile import Profile

def plot(
    kind: str,
    profile: PathLike | Profile,
    *,
    format: str = "svg",
    width_mm: float = 160,
    dpi: int = 300,
    dark: bool = False,
    store: PathLike | None = None,
    scheduler: SchedulerLike = None,
    progress: Progress | None = None,
) -> bytes:
    """Draw one plot of a profile as an image.

    Parameters
    ----------
    kind
        A name from `vani.render.plots.catalogue.kinds()`.
    profile
        A profile, its path, or a trace, which is profiled first.
    format
        `svg`, `png`, or `json` (the Vega-Lite specification).
    width_mm
        Width of the image in millimetres.
    dpi
        Pixels per inch of `png`.
    dark
        Draw for a dark background such as slides, instead of for paper.
    store
        The store, or the folder of stores, for plots over time; the user's cache directory by default.
    scheduler, progress
        As in `vani.profile`.

    Raises
    ------
    InputError
        The kind or format does not exist, or the profile cannot be read or lacks the figures.
    """
    FORMATS.check(format)
    drawn = drawing(kind, profile, store=store, scheduler=scheduler, progress=progress)
    return FORMATS.render(format, drawn, width_mm=width_mm, dpi=dpi, dark=dark)


def drawing(
    kind: str,
    profile: PathLike | Profile,
    *,
    store: PathLike | None = None,
    scheduler: SchedulerLike = None,
    progress: Progress | None = None,
) -> Drawing:
    """Draw one plot of a profile as a specification, which notebooks show; parameters and errors as in `plot`."""
    wanted = plot_of(kind)
    with Run([profile], store=store, scheduler=scheduler, progress=progress) as run:
        model = read_profile(profile_of(run, profile, files=JUDGED_FILES))
        takes_calls = wanted.needs_calls or wanted.uses_calls
        heat = heat_map_in(run, model, store=store) if takes_calls else None
    drawn = draw(kind, model, heat=heat)
    if isinstance(drawn, Missing):
        where = profile if isinstance(profile, (str, Path)) else ""
        raise InputError(f"the plot {kind} cannot be drawn: {drawn.why}", where=where)
    return drawn
