"""`vani plot`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from vani import api
from vani.cli.options import output_option, quiet_option, source_argument
from vani.cli.output_guard import check_outputs
from vani.cli.scheduler_options import decoding_options, scheduler_files
from vani.cli.work import working

if TYPE_CHECKING:
    from vani.engine.scheduler import Scheduler

_MARKS = {(True, False): " *", (False, True): " +", (False, False): ""}


def _list(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    del param
    if not value or ctx.resilient_parsing:
        return
    from vani.render.plots.catalogue import kinds  # noqa: PLC0415 - `vani --help` pays for nothing

    for kind in kinds().values():
        click.echo(f"{kind.kind:<16} {kind.about}{_MARKS[kind.needs_calls, kind.uses_calls]}")
    click.echo(
        "\n* needs the decoded calls: the trace, or its store; + shows more with them"
    )
    ctx.exit()


class PlotOptions(TypedDict):
    """Options passed on to the library unchanged."""

    width_mm: float
    dpi: int
    dark: bool
    store: Path | None
    scheduler: Scheduler


@click.command()
@click.argument("kind")
@source_argument()
@output_option(
    "Write here; the name ends in .svg, .png or .json (the Vega-Lite specification).", required=True
)
@click.option(
    "--width",
    "width_mm",
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
@click.option("--dark", is_flag=True, help="Colours for a dark background, such as slides.")
@click.option(
    "--list", is_flag=True, is_eager=True, expose_value=False, callback=_list, help="List the kinds of plots."
)
@decoding_options
@quiet_option
def plot(kind: str, profile: Path, output: Path, quiet: bool, **options: Unpack[PlotOptions]) -> None:
    """Draw a plot of a profile, ready for a paper.

    `vani plot --list` names the kinds. Plots over time need the calls, from the store of `vani
    profile` or decoded again from the trace. A trace, which is a folder or a file, is profiled first.
    """
    from vani.atomic import write_bytes  # noqa: PLC0415
    from vani.render.plots.image import FORMATS  # noqa: PLC0415

    format = FORMATS.needed_for(output)
    with working(profile, quiet=quiet, with_calls=_takes_calls(kind)) as progress:
        check_outputs([output], [profile, *scheduler_files(options["scheduler"])])
        content = api.plot(kind, profile, format=format, **options, progress=progress)
    write_bytes(output, content)


def _takes_calls(kind: str) -> bool:
    from vani.render.plots.catalogue import plot_of  # noqa: PLC0415

    wanted = plot_of(kind)
    return wanted.needs_calls or wanted.uses_calls
