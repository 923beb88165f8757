"""`vani plot`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
from pydantic import Field

from vani.api.arguments import JUDGED_FILES, PathLike
from vani.api.heat_map import heat_map_in
from vani.api.run import Run
from vani.api.source import profile_of, read_profile
from vani.atomic import write_bytes
from vani.cli.options import output_option, quiet_option, settings_options, source_argument
from vani.cli.output_guard import check_outputs
from vani.cli.scheduler_options import decoding_options, scheduler_files
from vani.cli.work import working
from vani.errors import InputError
from vani.render.formats import IMAGE
from vani.render.plots.catalogue import draw, kinds, plot_of
from vani.render.plots.drawing import Drawing, Missing
from vani.schema.settings import Option, Settings

if TYPE_CHECKING:
    from vani.engine.executor import Progress
    from vani.engine.scheduler import Scheduler, SchedulerLike
    from vani.schema.profile import Profile

_MARKS = {(True, False): " *", (False, True): " +", (False, False): ""}


class PlotSettings(Settings):
    """The form of an image."""

    width_mm: Annotated[float, Field(ge=40, le=1000), Option(("--width",), "MM")] = Field(
        160, description="Width of the image on paper."
    )
    dpi: Annotated[int, Field(ge=50, le=1200)] = Field(300, description="Pixels per inch of a .png.")
    dark: bool = Field(False, description="Colours for a dark background, such as slides.")


def plot(
    kind: str,
    profile: PathLike | Profile,
    settings: PlotSettings | None = None,
    *,
    format: str = "svg",
    store: PathLike | None = None,
    scheduler: SchedulerLike = None,
    progress: Progress | None = None,
    **fields: Any,
) -> bytes:
    """Draw one plot of a profile as an image.

    Parameters
    ----------
    kind
        A name from `vani.render.plots.catalogue.kinds()`.
    profile
        A profile, its path, or a trace, which is profiled first.
    settings, fields
        The form of the image, or single fields of `PlotSettings`.
    format
        `svg`, `png`, or `json` (the Vega-Lite specification).
    store
        The store, or the folder of stores, for plots over time; the user's cache directory by default.
    scheduler, progress
        As in `vani.profile`.

    Raises
    ------
    InputError
        The kind or format does not exist, or the profile cannot be read or lacks the figures.
    """
    settings = PlotSettings.of(settings, **fields)
    IMAGE.check(format)
    drawn = drawing(kind, profile, store=store, scheduler=scheduler, progress=progress)
    return IMAGE.render(format, drawn, **settings.model_dump())


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


def _list(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    del param
    if not value or ctx.resilient_parsing:
        return
    for kind in kinds().values():
        click.echo(f"{kind.kind:<16} {kind.about}{_MARKS[kind.needs_calls, kind.uses_calls]}")
    click.echo("\n* needs the decoded calls: the trace, or its store; + shows more with them")
    ctx.exit()


@click.command("plot")
@click.argument("kind")
@source_argument()
@output_option(
    "Write here; the name ends in .svg, .png or .json (the Vega-Lite specification).", required=True
)
@settings_options(PlotSettings)
@click.option(
    "--list", is_flag=True, is_eager=True, expose_value=False, callback=_list, help="List the kinds of plots."
)
@decoding_options
@quiet_option
def command(
    kind: str,
    profile: Path,
    output: Path,
    settings: PlotSettings,
    store: Path | None,
    scheduler: Scheduler,
    quiet: bool,
) -> None:
    """Draw a plot of a profile, ready for a paper.

    `vani plot --list` names the kinds. Plots over time need the calls, from the store of `vani
    profile` or decoded again from the trace. A trace, which is a folder or a file, is profiled first.
    """
    format, wanted = IMAGE.needed_for(output), plot_of(kind)
    with working(profile, quiet=quiet, with_calls=wanted.needs_calls or wanted.uses_calls) as progress:
        check_outputs([output], [profile, *scheduler_files(scheduler)])
        content = plot(kind, profile, settings, format=format, store=store, scheduler=scheduler, progress=progress)
    write_bytes(output, content)
