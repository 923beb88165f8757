"""`vani plan place`."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import click

from vani import api
from vani.cli.options import FILE
from vani.cli.output_guard import check_outputs, files_of_jobs
from vani.cli.plan.options import max_age_option, snapshot_option
from vani.cli.plan.result import emit_plan, plan_options_in
from vani.render.plan import PLACE_FORMATS

__all__ = ["place"]


class PlaceOptions(TypedDict):
    """Options that are passed on to the library as they were typed."""

    method: Literal["balanced", "tarazu", "lsa"]
    ceiling: float
    cpu_weight: float
    memory_weight: float
    turn: Literal["going-on", "random-start"]
    window: float
    seed: int
    seeds: int
    max_age: float | None


def _weights(ctx: click.Context, param: click.Parameter, value: str) -> dict[str, float]:
    """`past=0.5`."""
    name, _, number = value.partition("=")
    try:
        return {name: float(number)}
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is no weight; give past=0 to past=1", ctx=ctx, param=param
        ) from None


def _number(name: str, default: float, metavar: str, text: str) -> Callable[[Any], Any]:
    return click.option(
        name, type=type(default), default=default, show_default=True, metavar=metavar, help=text
    )


_OPTIONS = (
    snapshot_option,
    click.option(
        "--method", type=click.Choice(("balanced", "tarazu", "lsa")), default="balanced", show_default=True,
        help="How OSTs are chosen: the fullest OST as empty as possible, then the fullest server; Tarazu's algorithm 1 "
        "as printed; as Lustre itself does.",
    ),
    click.option(
        "--size-weight", callback=_weights, default="past=1", metavar="past=0..1",
        help="Weight of bytes already on an OST, relative to new ones.  [default: past=1]",
    ),
    _number("--ceiling", 0.95, "SHARE", "Share of an OST up to which it is filled."),
    _number("--cpu-weight", 0.5, "W", "Weight of a server's processors in its load (tarazu)."),
    _number("--memory-weight", 0.5, "W", "Weight of a server's memory in its load (tarazu)."),
    click.option(
        "--turn", type=click.Choice(("going-on", "random-start")), default="going-on", show_default=True,
        help="Where Lustre's turn of OSTs begins for a file: behind the one before, or at random.",
    ),
    _number(
        "--window", 0.17, "SHARE",
        "Difference of free space, as a share of the most, beyond which Lustre draws OSTs by free space.",
    ),
    _number("--seed", 0, "N", "Seed of Lustre's draws."),
    _number("--seeds", 50, "N", "How many draws give the range of Lustre's costs."),
    max_age_option,
)  # fmt: skip


@click.command()
@click.argument("jobs", type=FILE)
@plan_options_in(PLACE_FORMATS)
@lambda command: reduce(lambda so_far, option: option(so_far), reversed(_OPTIONS), command)
def place(
    jobs: Path,
    kind: str | None,
    output: Path | None,
    strict: bool,
    snapshot: Path,
    size_weight: dict[str, float],
    **options: Unpack[PlaceOptions],
) -> None:
    """Choose OSTs for the files that the jobs of JOBS, a jobs.yaml, are going to create.

    Every extent of every file gets distinct OSTs, none above the ceiling, none that is offline, degraded ones only if
    needed. `--format script` writes `lfs setstripe -o` lines, which can be undone.
    """
    check_outputs([output], chain(files_of_jobs(jobs), [snapshot]))
    plan = api.plan_place(jobs, snapshot, size_weight=size_weight, **options)
    emit_plan(plan, kind, output, strict=strict, formats=PLACE_FORMATS)
