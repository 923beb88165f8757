"""`vani plot`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vani.cli.output import progress_bar, quiet_option, shows_progress
from vani.cli.places import check_places
from vani.cli.where import scheduler_files, where_options
from vani.errors import InputError

if TYPE_CHECKING:
    from vani.engine.scheduler import Scheduler

__all__ = ["plot"]

_MARKS = {(True, False): " *", (False, True): " +", (False, False): ""}


def _list(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    del param
    if not value or ctx.resilient_parsing:
        return
    from vani.render.plots.catalogue import kinds  # noqa: PLC0415 - `vani --help` pays for nothing

    for one in kinds().values():
        click.echo(f"{one.kind:<16} {one.about}{_MARKS[one.needs_calls, one.uses_calls]}")
    click.echo(
        "\n* needs the decoded calls: the trace, or the store that was made of it; + shows more with them"
    )
    ctx.exit()


@click.command()
@click.argument("kind")
@click.argument("profile", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    required=True,
    help="Write here; the name ends in .svg, .png or .json (the Vega-Lite specification).",
)
@click.option(
    "--store",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where the decoded calls lie, for plots over time; the user's cache by default.",
)
@click.option(
    "--width",
    type=click.FloatRange(40, 1000),
    default=160,
    show_default=True,
    metavar="MM",
    help="Width of the image on paper.",
)
@click.option(
    "--dpi",
    type=click.IntRange(50, 1200),
    default=300,
    show_default=True,
    metavar="N",
    help="Pixels per inch of a .png.",
)
@click.option("--dark", is_flag=True, help="For a dark ground, as of slides; else for paper.")
@click.option(
    "--list", is_flag=True, is_eager=True, expose_value=False, callback=_list, help="List the kinds of plots."
)
@where_options
@quiet_option
def plot(
    kind: str,
    profile: Path,
    output: Path,
    store: Path | None,
    width: float,
    dpi: int,
    dark: bool,
    scheduler: Scheduler,
    quiet: bool,
) -> None:
    """Draw one plot of PROFILE, as for a paper.

    `vani plot --list` names the kinds. Plots over time need the calls: they are found in the store that
    `vani profile` keeps, or decoded again from the trace.
    """
    from vani import api  # noqa: PLC0415 - `vani --help` pays for no library
    from vani.render.plots.catalogue import Missing, draw, plot_of  # noqa: PLC0415
    from vani.render.plots.image import check_suffix, image  # noqa: PLC0415
    from vani.schema.profile import Profile  # noqa: PLC0415

    wanted = plot_of(kind)
    suffix = check_suffix(output)
    check_places([output], [profile, *scheduler_files(scheduler)])
    if profile.is_dir():
        raise InputError(
            "is a directory, not a profile", where=profile, todo="make one of the trace with `vani profile`"
        )
    loaded = Profile.load(profile)
    heat = None
    if wanted.needs_calls or wanted.uses_calls:
        with progress_bar(show=shows_progress(quiet=quiet)) as progress:
            heat = api.heat_map(loaded, store=store, scheduler=scheduler, progress=progress)
    found = draw(kind, loaded, heat=heat)
    if isinstance(found, Missing):
        raise InputError(f"the plot {kind} cannot be drawn: {found.why}", where=profile)
    content = image(found, suffix, width_mm=width, dpi=dpi, dark=dark)
    from vani.atomic import write_bytes  # noqa: PLC0415

    write_bytes(output, content)
