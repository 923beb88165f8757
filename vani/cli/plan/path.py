"""`vani plan path`."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Literal, TypedDict, Unpack

import click

from vani import api
from vani.cli.options import FILE
from vani.cli.output_guard import check_outputs, files_of_jobs
from vani.cli.plan.options import max_age_option, snapshot_option
from vani.cli.plan.result import emit_plan, plan_options_in
from vani.render.plan import PATH_FORMATS

__all__ = ["path"]


class PathOptions(TypedDict):
    """Options that are passed on to the library as they were typed."""

    snapshot: Path
    capacity: Literal["binding", "eq1"]
    exact: bool
    pack: bool
    metadata_share: float | None
    max_age: float | None


_OPTIONS = (
    snapshot_option,
    click.option(
        "--capacity", type=click.Choice(["binding", "eq1"]), default="binding", show_default=True,
        help="Capacity of a node: the free part of bytes, operations and metadata operations, of which the scarcest "
        "binds; or AIOT's equation 1 as printed, which sees bytes alone.",
    ),
    click.option(
        "--exact", is_flag=True, help="Look for a maximum flow where Algorithm 1 leaves demand unmet."
    ),
    click.option(
        "--pack", is_flag=True,
        help="Keep a job on a node until that is full: each job on few nodes, and jobs apart, at the price of balance.",
    ),
    click.option(
        "--metadata-share", type=float, metavar="P",
        help="Share of a request split; by default the job's own share of metadata operations, at most 0.9.",
    ),
    max_age_option,
)  # fmt: skip


@click.command()
@click.argument("jobs", type=FILE)
@plan_options_in(PATH_FORMATS)
@lambda command: reduce(lambda so_far, option: option(so_far), reversed(_OPTIONS), command)
def path(jobs: Path, kind: str | None, output: Path | None, strict: bool, **options: Unpack[PathOptions]) -> None:
    """Give the I/O of each job of JOBS, a jobs.yaml, a path through the machine.

    Which forwarding nodes, storage nodes and targets carry how much of its demand, job after job; one forwarding node
    for each compute node; request split, prefetch chunk and striping that fit the path. The first line of the plan
    states what it left out.
    """
    check_outputs([output], [*files_of_jobs(jobs, all_profiles=True), options["snapshot"]])
    emit_plan(api.plan_path(jobs, **options), kind, output, strict=strict, formats=PATH_FORMATS)
