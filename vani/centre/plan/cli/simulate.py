"""`vani plan simulate`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypedDict, Unpack

import click

from vani import centre
from vani.centre.plan.cli.result import emit_plan, plan_options
from vani.cli.options import FILE
from vani.cli.output_guard import check_outputs


class SimulateOptions(TypedDict):
    """Options passed on to the library unchanged."""

    tolerance: float | None
    alone: bool


@click.command()
@click.argument("scenario", type=FILE)
@plan_options
@click.option(
    "--tolerance",
    type=float,
    metavar="SHARE",
    help="Treat flows as one event if they end within this share of the shortest flow; by default 0, or 0.005 "
    "above 2,000 flows.",
)
@click.option("--alone", is_flag=True, help="Also simulate each job alone, for its slowdown.")
@click.option(
    "--plot", type=FILE, metavar="FILE", help="Also draw the last variant; the name ends in .svg, .png or .json."
)
@click.option(
    "--plot-of",
    "what",
    type=click.Choice(["rates", "stages"]),
    default="rates",
    show_default=True,
    help="Bytes per second of jobs, or how busy stages are, over time.",
)
def simulate(
    scenario: Path,
    kind: str | None,
    output: Path | None,
    strict: bool,
    plot: Path | None,
    what: Literal["rates", "stages"],
    **options: Unpack[SimulateOptions],
) -> None:
    """Simulate the jobs of SCENARIO, a scenario.yaml, on a machine that they share.

    Bytes flow through processes, nodes, I/O nodes, servers and targets at max-min fair rates. Each variant of
    the scenario is simulated with each seed; the first and the last are compared.
    """
    from vani.atomic import write_bytes  # noqa: PLC0415
    from vani.centre.plan.text.simulate import drawn  # noqa: PLC0415
    from vani.render.formats import IMAGE  # noqa: PLC0415

    image = IMAGE.needed_for(plot) if plot is not None else None
    check_outputs([output, *([plot] if plot is not None else [])], _read(scenario))
    plan = centre.plan_simulate(scenario, **options)
    if plot is not None and image is not None:
        write_bytes(plot, IMAGE.render(image, drawn(plan, what), width_mm=160))
    emit_plan(plan, kind, output, strict=strict)


def _read(scenario: Path) -> Iterator[Path]:
    from vani.centre.plan.simulate.simulate import files_of_scenario  # noqa: PLC0415 - only where an output exists

    yield from files_of_scenario(scenario)
