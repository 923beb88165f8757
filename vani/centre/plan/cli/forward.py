"""`vani plan forward`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import click

from vani import centre
from vani.centre.plan.cli.result import emit_plan, plan_options
from vani.centre.plan.forward import files_of_jobs
from vani.cli.options import FILE, system_option
from vani.cli.output_guard import check_outputs, system_files


class ForwardOptions(TypedDict):
    """Options passed on to the library unchanged."""

    io_nodes: int
    policy: Literal["mckp", "static", "process", "zero", "one", "oracle"]
    objective: Literal["sum", "max-min", "proportional"]
    floor: float
    direct: bool | None
    compare: bool
    any_number: bool
    rounding: Literal["half-up", "ceil"]
    nodes_per_io_node: float | None
    estimate: Literal["near", "nearest", "none"]
    system: str | None


def _choice(name: str, *words: str, help: str) -> Callable[[Any], Any]:
    return click.option(name, type=click.Choice(words), default=words[0], show_default=True, help=help)


_OPTIONS = (
    click.option("--io-nodes", type=int, required=True, metavar="N", help="Number of I/O nodes in the pool."),
    _choice(
        "--policy", "mckp", "static", "process", "zero", "one", "oracle",
        help="How I/O nodes are shared; mckp is optimal, oracle needs no pool.",
    ),
    _choice(
        "--objective", "sum", "max-min", "proportional",
        help="Objective of mckp: sum, the sum of bandwidths; max-min, the least share of its own best that a "
        "job gets, then "
        "the sum; proportional, the product of bandwidths.",
    ),
    click.option(
        "--floor", type=float, default=0.0, metavar="SHARE",
        help="Least share of its own best that each job gets.",
    ),
    click.option(
        "--direct/--no-direct", default=None,
        help="Whether jobs may bypass I/O nodes; by default as in --system, else yes.",
    ),
    click.option(
        "--any-number", is_flag=True,
        help="Allow numbers of I/O nodes that do not divide a job's compute nodes; neighbours still share one.",
    ),
    click.option("--compare", is_flag=True, help="Also compute all other policies, for comparison."),
    click.option("--current", type=FILE, metavar="FILE", help="Current plan, which the new plan changes."),
    click.option(
        "--replay", is_flag=True,
        help="Run the jobs as a queue, first come, first served: they start when nodes are free and end when "
        "their `bytes` are moved; I/O nodes are shared again at each change.",
    ),
    click.option(
        "--nodes", type=int, metavar="N",
        help="With --replay: compute nodes of the machine; by default as in --system.",
    ),
    click.option(
        "--poll", type=float, metavar="SECONDS",
        help="With --replay: running jobs see a new mapping at the next multiple of this many seconds (GekkoFWD: 10); "
        "at once by default.",
    ),
    _choice("--rounding", "half-up", "ceil", help="Rounding in the policies static and process."),
    click.option(
        "--nodes-per-io-node", type=float, metavar="R",
        help="Compute nodes per I/O node of the machine, for the policy static.",
    ),
    _choice("--estimate", "near", "nearest", "none", help="Measured patterns to use for a job without a curve."),
    system_option("The machine whose curves are used: a bundled name or a system.yaml.", of_site=False),
)  # fmt: skip


@click.command()
@click.argument("jobs", type=FILE)
@plan_options
@lambda command: reduce(lambda so_far, option: option(so_far), reversed(_OPTIONS), command)
def forward(
    jobs: Path,
    kind: str | None,
    output: Path | None,
    strict: bool,
    current: Path | None,
    replay: bool,
    nodes: int | None,
    poll: float | None,
    **options: Unpack[ForwardOptions],
) -> None:
    """Share the I/O nodes of a pool among the jobs of JOBS, a jobs.yaml.

    Each job gets a number of I/O nodes that divides its number of compute nodes (with --any-number, any number up to
    that), or 0 for direct access. The first line of the plan states what it leaves out.
    """
    _refuse_mixture(replay=replay, current=current, nodes=nodes, poll=poll)
    read = chain(files_of_jobs(jobs), [current], system_files(options["system"]))
    check_outputs([output], read)
    of_queue = partial(centre.plan_replay, nodes=nodes, poll=poll or 0.0)
    plan = of_queue if replay else partial(centre.plan_forward, current=current)
    emit_plan(plan(jobs, **options), kind, output, strict=strict)


def _refuse_mixture(*, replay: bool, current: Path | None, nodes: int | None, poll: float | None) -> None:
    if replay and current is not None:
        raise click.UsageError("--current cannot be used with --replay: a queue starts on an empty machine.")
    for name, given in (("--nodes", nodes), ("--poll", poll)):
        if given is not None and not replay:
            raise click.UsageError(f"{name} is for --replay.")
