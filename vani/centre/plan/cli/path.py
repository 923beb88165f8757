"""`vani plan path`."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Literal, TypedDict, Unpack

import click

from vani import centre
from vani.centre.plan.cli.options import max_age_option, snapshot_option
from vani.centre.plan.cli.result import emit_plan, plan_options_in
from vani.centre.plan.forward import files_of_jobs
from vani.centre.plan.text import PATH_FORMATS
from vani.cli.options import FILE
from vani.cli.output_guard import check_outputs


class PathOptions(TypedDict):
    """Options passed on to the library unchanged."""

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
        help="Capacity of a node: binding, the scarcest of its free bytes, operations and metadata operations per "
        "second; eq1, AIOT's equation 1 as printed, which counts bytes only.",
    ),
    click.option(
        "--exact", is_flag=True, help="Compute a maximum flow where Algorithm 1 leaves demand unmet."
    ),
    click.option(
        "--pack", is_flag=True,
        help="Fill one node before the next: jobs use few nodes and stay apart, but load is less balanced.",
    ),
    click.option(
        "--metadata-share", type=float, metavar="P",
        help="Metadata share of a request split; by default the job's own, at most 0.9.",
    ),
    max_age_option,
)  # fmt: skip


@click.command()
@click.argument("jobs", type=FILE)
@plan_options_in(PATH_FORMATS)
@lambda command: reduce(lambda so_far, option: option(so_far), reversed(_OPTIONS), command)
def path(jobs: Path, kind: str | None, output: Path | None, strict: bool, **options: Unpack[PathOptions]) -> None:
    """Assign the I/O of each job in JOBS, a jobs.yaml, a path through the machine.

    The plan states how much of a job's demand each forwarding node, storage node and target carries, the forwarding
    node of each compute node, and the request split, prefetch chunk and striping that fit the path. The first line
    of the plan states what it leaves out.
    """
    check_outputs([output], [*files_of_jobs(jobs, all_profiles=True), options["snapshot"]])
    emit_plan(centre.plan_path(jobs, **options), kind, output, strict=strict, formats=PATH_FORMATS)
