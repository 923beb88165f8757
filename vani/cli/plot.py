"""`vani plot`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
from pydantic import Field

from vani.atomic import write_bytes
from vani.cli.options import output_option, quiet_option, settings_options, source_argument
from vani.cli.output import check_outputs, working
from vani.cli.profile import profile_of
from vani.cli.sources import JUDGED_FILES, Decoding, Resources, scheduler_files
from vani.errors import InputError
from vani.render.formats import IMAGE
from vani.render.plots.catalogue import draw, kinds, plot_of
from vani.render.plots.drawing import Drawing, Missing, Style
from vani.schema.profile import Profile
from vani.schema.settings import Option, PathLike

if TYPE_CHECKING:
    from vani.engine.executor import Progress
    from vani.schema.timeline import HeatMap, Source
    from vani.store.read import Store

_MARKS: Mapping[Source | None, str] = {"bins": " *", "data": " **", "calls": " ***", None: ""}


class PlotSettings(Decoding):
    """The form of an image, and the store for plots over time."""

    width_mm: Annotated[float, Field(ge=40, le=1000), Option(("--width",), "MM")] = Field(
        default=160, description="Width of the image on paper."
    )
    dpi: Annotated[int, Field(ge=50, le=1200)] = Field(default=300, description="Pixels per inch of a .png.")
    style: Annotated[Style, Option(metavar="paper|screen|dark")] = Field(
        default="paper", description="Black on white, the colours of the report, or those for a dark background."
    )


def plot(
    kind: str,
    profile: PathLike | Profile,
    settings: PlotSettings | None = None,
    *,
    format: str = "svg",
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
        The settings, or single fields of `PlotSettings`.
    format
        `svg`, `png`, `pdf`, or `json` (the Vega-Lite specification).
    progress
        As in `vani.profile`.

    Raises
    ------
    InputError
        The kind or format does not exist, or the profile cannot be read or lacks the figures.
    """
    settings = PlotSettings.of(settings, **fields)
    IMAGE.check(format)
    drawn = drawing(kind, profile, settings, progress=progress)
    return IMAGE.render(format, drawn, width_mm=settings.width_mm, dpi=settings.dpi, style=settings.style)


def drawing(
    kind: str,
    profile: PathLike | Profile,
    settings: Decoding | None = None,
    *,
    progress: Progress | None = None,
    **fields: Any,
) -> Drawing:
    """Draw one plot of a profile as a specification, which notebooks show; parameters and errors as in `plot`."""
    wanted = plot_of(kind)
    with Resources([profile], Decoding.of(settings, **fields), progress) as resources:
        model = Profile.of(profile_of(resources, profile, files=JUDGED_FILES))
        heat = heat_map_of(resources, model) if wanted.over_time else None
    drawn = draw(kind, model, heat=heat)
    if isinstance(drawn, Missing):
        where = profile if isinstance(profile, (str, Path)) else ""
        raise InputError(f"the plot {kind} cannot be drawn: {drawn.why}", where=where)
    return drawn


def heat_map(
    profile: PathLike | Profile,
    settings: Decoding | None = None,
    *,
    decode: bool = True,
    progress: Progress | None = None,
    **fields: Any,
) -> HeatMap | str:
    """Count the calls of a profile's traces over time and processes.

    Parameters
    ----------
    profile
        A profile, its path, or a trace, which is profiled first.
    settings, fields
        The store, or the folder of stores, that the profile was made from (by default the user's cache directory), and
        the scheduler.
    decode
        Decode the trace again if it has no store and is still at the profile's path.

    Returns
    -------
    HeatMap or str
        The data, or the reason why there is none: traces and stores are gone, or contain other calls.

    Raises
    ------
    InputError
        The profile cannot be read, or the store is not a folder.
    """
    with Resources([profile], Decoding.of(settings, **fields), progress) as resources:
        return heat_map_of(resources, Profile.of(profile_of(resources, profile, files=1)), decode=decode)


def heat_map_of(resources: Resources, profile: Profile, *, decode: bool = True) -> HeatMap | str:
    """Run `heat_map` as part of a longer call, which may have the stores already."""
    from vani.analyzers.heat_map import heat_map as laid_out  # noqa: PLC0415 - loads Arrow
    from vani.store.stores import while_stores_vanish  # noqa: PLC0415

    store = resources.settings.store
    if store is not None and not store.is_dir():
        raise InputError("no such folder", where=store, todo="name a store, or the folder of stores")
    # A quick profile must not decode the trace.
    is_quick = profile.workflow.runtime_s is None
    executor = resources.executor

    def from_stores(stores: list[Store]) -> HeatMap | str:
        why = resources.stores.of_profile(profile, executor, stores, decode=decode and not is_quick, is_quick=is_quick)
        return why if why is not None else laid_out(stores, [t.app for t in profile.traces], executor)

    heat = while_stores_vanish(from_stores)
    if isinstance(heat, str):
        return heat
    moved = profile.workflow.io.bytes
    if heat.source != "calls":
        return heat.with_note((moved.read or 0) + (moved.written or 0))
    if (sum(map(sum, heat.read)), sum(map(sum, heat.written))) != (moved.read or 0, moved.written or 0):
        return "the decoded calls and the profile differ in bytes; profile the trace again"
    return heat


def _list(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    del param
    if not value or ctx.resilient_parsing:
        return
    for kind in kinds().values():
        mark = " +" if kind.uses else _MARKS[kind.needs]
        click.echo(f"{kind.kind:<16} {kind.about}{mark}")
    click.echo(
        "\n* needs times: a trace of calls, or a Darshan log with a heat map or DXT; ** a trace, or DXT"
        "\n+ shows more with them"
    )
    ctx.exit()


@click.command("plot")
@click.argument("kind")
@source_argument()
@output_option(
    "Write here; the name ends in .svg, .png, .pdf or .json (the Vega-Lite specification).", required=True
)
@settings_options(PlotSettings)
@click.option(
    "--list", is_flag=True, is_eager=True, expose_value=False, callback=_list, help="List the kinds of plots."
)
@quiet_option
def command(kind: str, profile: Path, output: Path, settings: PlotSettings, quiet: bool) -> None:
    """Draw a plot of a profile, ready for a paper.

    `vani plot --list` names the kinds. Plots over time need the calls, from the store of `vani
    profile` or decoded again from the trace. A trace, which is a folder or a file, is profiled first.
    """
    format, wanted = IMAGE.needed_for(output), plot_of(kind)
    with working(profile, quiet=quiet, with_calls=wanted.over_time) as progress:
        check_outputs([output], [profile, *scheduler_files(settings.scheduler)])
        content = plot(kind, profile, settings, format=format, progress=progress)
    write_bytes(output, content)
