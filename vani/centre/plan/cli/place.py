"""`vani plan place`."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import click

from vani import centre
from vani.centre.plan.cli.options import max_age_option, snapshot_option
from vani.centre.plan.cli.result import emit_plan, plan_options_in
from vani.centre.plan.forward import files_of_jobs
from vani.centre.plan.text import PLACE_FORMATS
from vani.cli.options import FILE
from vani.cli.output_guard import check_outputs


class PlaceOptions(TypedDict):
    """Options passed on to the library unchanged."""

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
    """Parse weights such as `past=0.5`."""
    name, _, number = value.partition("=")
    try:
        return {name: float(number)}
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not a weight; give past=0 to past=1", ctx=ctx, param=param
        ) from None


def _number(name: str, default: float, metavar: str, text: str) -> Callable[[Any], Any]:
    return click.option(
        name, type=type(default), default=default, show_default=True, metavar=metavar, help=text
    )


_OPTIONS = (
    snapshot_option,
    click.option(
        "--method", type=click.Choice(("balanced", "tarazu", "lsa")), default="balanced", show_default=True,
        help="How OSTs are chosen: balanced minimises the load of the fullest OST, then of the fullest server; "
        "tarazu is Tarazu's algorithm 1 "
        "as printed; lsa is Lustre's own allocator.",
    ),
    click.option(
        "--size-weight", callback=_weights, default="past=1", metavar="past=0..1",
        help="Weight of bytes already on an OST, relative to new ones.  [default: past=1]",
    ),
    _number("--ceiling", 0.95, "SHARE", "Fill OSTs up to this share."),
    _number("--cpu-weight", 0.5, "W", "Weight of a server's processors in its load (tarazu)."),
    _number("--memory-weight", 0.5, "W", "Weight of a server's memory in its load (tarazu)."),
    click.option(
        "--turn", type=click.Choice(("going-on", "random-start")), default="going-on", show_default=True,
        help="Where Lustre's round-robin starts for a file: after the previous file's OSTs, or at random.",
    ),
    _number(
        "--window", 0.17, "SHARE",
        "Difference in free space, as a share of the largest, above which Lustre draws OSTs by free space.",
    ),
    _number("--seed", 0, "N", "Seed of Lustre's draws."),
    _number("--seeds", 50, "N", "Number of draws for the range of Lustre's costs."),
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
    """Choose OSTs for the files that the jobs of JOBS, a jobs.yaml, will create.

    Every extent of every file gets distinct OSTs: none above the ceiling, none offline, and degraded OSTs only if
    needed. `--format script` writes `lfs setstripe -o` lines, which can be undone.
    """
    check_outputs([output], chain(files_of_jobs(jobs), [snapshot]))
    plan = centre.plan_place(jobs, snapshot, size_weight=size_weight, **options)
    emit_plan(plan, kind, output, strict=strict, formats=PLACE_FORMATS)
