"""Plans of kind `job`: which I/O nodes one job uses from its beginning on."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from vani.centre.plan.schema.any_plan import Amount, Count, Left, Plan
from vani.centre.plan.schema.forward import Allotment, ForwardSettings
from vani.centre.plan.schema.path import JobPath
from vani.schema.model import Model


class StartedJob(Model):
    """The job, as the batch system calls it."""

    id: str = Field(description="job ID")
    array: str | None = Field(
        default=None, description="array job ID and index, joined by `_`; null if the job is not part of an array"
    )
    start: Amount | None = Field(default=None, description="start in seconds since 1970; null if unknown")
    name: str | None = Field(description="job name; null if not given")
    user: str | None = Field(description="user who submitted the job; null if not given")
    account: str | None = Field(default=None, description="account charged for the job; null if not given")
    qos: str | None = Field(default=None, description="quality of service; null if not given")
    partition: str | None = Field(default=None, description="partition or queue; null if not given")
    nodes: Count = Field(description="number of compute nodes")
    hosts: str | None = Field(description="node names as a Slurm host list; null if not given")


class JobLayout(Model):
    """The stripes and OSTs of the files that the job is going to create."""

    stripe_count: Count = Field(description="number of targets per file")
    stripe_size: Count | None = Field(description="stripe size in bytes; null leaves the size of each file's layout")
    before: Count | None = Field(description="stripe count in earlier runs; null if unknown")
    source: Literal["measured", "estimated", "unchanged"] = Field(
        description="reason for the stripe count: runs with it were faster, a model predicts so, or it is the "
        "previous one"
    )
    files: Count = Field(description="files of known name, which the placement library creates with this layout")
    osts: list[Count] = Field(description="OSTs chosen by the plan; empty if Lustre chooses")
    osts_reason: str = Field(description="reason why the plan did or did not choose OSTs")
    database: str | None = Field(description="database of the placement library; null if no file names are known")
    hints: str | None = Field(description="file with hints for ROMIO; null if the job does not use MPI-IO")


class ExpectedIo(Model):
    """I/O time that the plan expects: seconds of the slowest process in I/O calls."""

    seconds: Amount = Field(description="I/O time with the plan")
    low: Amount = Field(description="10th percentile of the I/O time with the plan")
    high: Amount = Field(description="90th percentile of the I/O time with the plan")
    before: Amount | None = Field(description="I/O time without the plan; null if unknown")
    bytes: Amount | None = Field(default=None, description="bytes read and written in this time; null if unknown")
    method: str = Field(description="basis of the estimate")


class JobPlan(Plan):
    """I/O nodes, stripes, OSTs and path of one job, next to all others that run."""

    kind: Literal["job"] = Field(default="job", description="kind of plan: one starting job")
    job: StartedJob = Field(description="job that is starting")
    pool: str | None = Field(
        default=None,
        description="pool from the settings whose I/O nodes the job shares; null uses the options of the command",
    )
    weight: float = Field(default=1.0, description="weight of the job's bandwidth in the sum that mckp maximizes")
    forward: ForwardSettings = Field(description="settings for sharing the pool")
    running: Count = Field(description="number of running jobs, including this one")
    access: Literal["direct", "own", "shared"] | None = Field(
        description="access to the file system: direct (no I/O nodes), own I/O nodes, or an I/O node shared by "
        "several jobs; null if not planned"
    )
    io_nodes: list[str] = Field(description="names of the job's I/O nodes, in the order of the map")
    allotment: Allotment | None = Field(
        description="I/O nodes assigned to the job and the expected gain; null if not planned"
    )
    map: str | None = Field(description="forwarding map; null if the job uses no I/O nodes, or its hosts are unknown")
    layout: JobLayout | None = Field(
        default=None, description="stripes and OSTs of the job's files; null if they stay as they are"
    )
    path: JobPath | None = Field(
        default=None, description="path from the job's I/O nodes to OSTs; null if not planned (see `unchanged`)"
    )
    io_s: ExpectedIo | None = Field(default=None, description="expected I/O time; null if unknown (see `unchanged`)")
    unchanged: list[Left] = Field(
        default_factory=list, description="items that stay as they are or are unknown, and why"
    )
