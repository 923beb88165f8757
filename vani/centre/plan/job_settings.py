"""Settings of the hook and of the commands around it: `vani plan job`, `rehearse`, `watch` and `learn`.

A prolog loads them before it plans, so this module imports no document.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from vani.schema.settings import Option, Settings


def _seconds(text: object) -> float:
    """A number of seconds, such as `2` or `2s`."""
    try:
        seconds = float(text.strip().removesuffix("s") if isinstance(text, str) else text)  # type: ignore[arg-type]
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= 1e9:
        raise ValueError("is not a number of seconds above 0")
    return seconds


File = Annotated[Path | None, Option(metavar="FILE")]
Folder = Annotated[Path | None, Option(metavar="DIR")]


class SharingRules(Settings):
    """How I/O nodes are shared among running jobs; see `vani.centre.plan_forward`."""

    settings: File = Field(None, description="A sharing.yaml with pools, reservations and weights by QOS.")
    known: Folder = Field(None, description="Folder of jobs.yaml files or profiles, by job name.")
    snapshot: File = Field(None, description="The machine's state, whose I/O nodes are the pool.")
    hosts_file: File = Field(None, description="GekkoFS hosts file, which lists and numbers the pool.")
    io_nodes: Annotated[int | None, Field(ge=0, le=100_000)] = Field(
        None, description="Number of I/O nodes in the pool; at most that of the snapshot."
    )
    place_library: Annotated[str | None, Option(metavar="PATH")] = Field(
        None, description="The placement library's path on compute nodes: new files get the layout of the plan."
    )
    policy: Literal["mckp", "static"] = Field("mckp", description="How I/O nodes are shared; mckp is optimal.")
    objective: Literal["sum", "max-min", "proportional"] = Field(
        "sum", description="Objective of mckp, as in `vani plan forward`."
    )
    floor: Annotated[float, Field(ge=0, le=1), Option(metavar="SHARE")] = Field(
        0.0, description="Least share of its own best that each job gets."
    )
    direct: Annotated[bool, Option(("--direct/--no-direct",))] = Field(
        True, description="Whether jobs may bypass I/O nodes."
    )
    nodes_per_io_node: Annotated[float | None, Field(gt=0, le=1e9), Option(metavar="R")] = Field(
        None, description="Compute nodes per I/O node, for jobs without known figures."
    )
    estimate: Literal["near", "nearest", "none"] = Field(
        "near", description="Measured patterns to use for a job without a curve."
    )
    expire_s: Annotated[float, BeforeValidator(_seconds), Option(("--expire",), "SECONDS")] = Field(
        7 * 86400.0, description="Forget a job this long after its start, if its end was not reported."
    )


class _OfState(SharingRules):
    state: Annotated[Path, Option(metavar="DIR")] = Field(description="Folder of the running jobs and plans.")


class JobSettings(_OfState):
    """Options of `vani plan job`."""

    end: bool = Field(False, description="The job ended: free its I/O nodes (for the epilog).")
    budget_s: Annotated[float, BeforeValidator(_seconds), Option(("--budget",), "SECONDS")] = Field(
        2.0, description="Exit within this time, start-up included, with or without a plan."
    )
    log: File = Field(None, description="Also write the result to this file.")
    strict: bool = Field(False, description="Exit with 2 if there is no plan, for tests.")
    check: bool = Field(
        False, description="Plan nothing; check on this node that jobs can be planned. Exit status 0 or 2."
    )
    max_age_s: Annotated[float, BeforeValidator(_seconds), Option(("--max-age",), "SECONDS")] = Field(
        300.0, description="With --check: reject an older snapshot."
    )
    task_prolog: File = Field(None, description="With --check: run this script for a job that has a plan.")


class WatchSettings(_OfState):
    """Options of `vani plan watch`."""

    trace: Annotated[str | None, Option(metavar="PATH")] = Field(
        None, description="Trace of a job, which may still grow; %j is the job's number."
    )
    interval: Annotated[float, Field(ge=1), Option(metavar="SECONDS")] = Field(60.0, description="Time between checks.")
    once: bool = Field(False, description="Check once and exit.")
    apply: bool = Field(False, description="Plan again whenever that is suggested.")
    log: File = Field(None, description="Write each line to this file, too.")


class LearnSettings(Settings):
    """Which runs of a history are used."""

    days: Annotated[float, Field(gt=0, le=100_000), Option(metavar="N")] = Field(
        90.0, description="Skip applications without a run in the last N days."
    )
    processes_per_node: Annotated[int | None, Field(ge=1, le=100_000)] = Field(
        None, description="Processes per node of runs whose number of nodes is unknown."
    )
