"""Implements `vani plan path`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Literal

import vani
from vani.api.arguments import PathLike
from vani.centre.plan.api.inputs import loaded, plan_input, refuse_old
from vani.centre.plan.path import path
from vani.centre.plan.schema import PathPlan, PathSettings
from vani.centre.plan.schema.jobs import Jobs
from vani.centre.plan.schema.snapshot import Snapshot
from vani.errors import InputError
from vani.schema.profile import Profile


def plan_path(
    jobs: PathLike | Jobs,
    snapshot: PathLike | Snapshot,
    *,
    capacity: Literal["binding", "eq1"] = "binding",
    exact: bool = False,
    pack: bool = False,
    metadata_share: float | None = None,
    max_age: float | None = None,
    now: datetime | None = None,
) -> PathPlan:
    """Give each job's I/O a path through forwarding nodes, storage nodes and targets.

    Parameters
    ----------
    jobs, snapshot
        A jobs.yaml and a snapshot.yaml, or the documents themselves.
    capacity
        Capacity of a node: the free share of its most loaded dimension, or AIOT's equation 1 as printed.
    exact
        Compute a maximum flow if Algorithm 1 leaves demand unmet.
    pack
        Fill one node with a job before using the next.
    metadata_share
        P of the request split; None takes the job's own share of metadata operations.
    max_age, now
        Maximum age of the snapshot in seconds at the time `now`; None: any age, the current time.

    Raises
    ------
    InputError
        A document cannot be used, or a figure is invalid.
    """
    if metadata_share is not None and not 0 <= metadata_share <= 1:
        raise InputError(f"is {metadata_share:g}", where="--metadata-share", todo="give a share, 0 to 1")
    given_jobs = loaded("jobs", jobs, Jobs)
    state = loaded("snapshot", snapshot, Snapshot)
    if state.document is snapshot:
        state.document.refuse_contradictions(state.where)
    refuse_old(state.document, max_age, now, state.where)
    profiles, files = profiles_by_job(given_jobs.document, given_jobs.folder)
    return path(
        given_jobs.document,
        state.document,
        PathSettings(capacity=capacity, exact=exact, pack=pack, metadata_share=metadata_share),
        profiles=profiles,
        inputs=[
            given_jobs.source,
            state.source,
            *(plan_input("profile", file) for file in files),
        ],
        where=given_jobs.where,
        where_snapshot=state.where,
        version=vani.__version__,
    )


def profiles_by_job(jobs: Jobs, folder: Path) -> tuple[dict[str, Profile], list[Path]]:
    """Profiles by job name, and their files, each once; relative paths start in the folder of the jobs."""
    files = {job.name: folder / job.profile for job in jobs.jobs if job.profile is not None}
    read = {file: Profile.load(file) for file in dict.fromkeys(files.values())}
    return {name: read[file] for name, file in files.items()}, list(read)
