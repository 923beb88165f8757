"""Plans of kind `job`: which I/O nodes one job uses from its beginning on."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from vani.schema.model import Model
from vani.schema.plan.any_plan import Amount, Count, Left, Plan
from vani.schema.plan.forward import Allotment, ForwardSettings
from vani.schema.plan.path import JobPath

__all__ = ["ExpectedIo", "JobLayout", "JobPlan", "StartedJob"]


class StartedJob(Model):
    """The job, as the batch system calls it."""

    id: str = Field(description="its number")
    array: str | None = Field(
        default=None, description="number of its array, `_` and its index there; null: it is in none"
    )
    start: Amount | None = Field(default=None, description="start, in seconds since 1970; null: not known")
    name: str | None = Field(description="name given by its user; null: not given")
    user: str | None = Field(description="user who submitted it; null: not given")
    account: str | None = Field(default=None, description="account that it is charged to; null: not given")
    qos: str | None = Field(default=None, description="quality of service; null: not given")
    partition: str | None = Field(default=None, description="partition or queue; null: not given")
    nodes: Count = Field(description="compute nodes")
    hosts: str | None = Field(description="their names, as Slurm writes lists; null: not given")


class JobLayout(Model):
    """The stripes and OSTs of the files that the job is going to create."""

    stripe_count: Count = Field(description="targets of each file")
    stripe_size: Count | None = Field(description="bytes; null: as each file's layout says")
    before: Count | None = Field(description="stripe count in earlier runs; null: not known")
    source: Literal["measured", "estimated", "unchanged"] = Field(
        description="why this count: runs with it were faster, a model expects so, or it is the former one"
    )
    files: Count = Field(description="files of known name; the placement library creates them with this layout")
    osts: list[Count] = Field(description="OSTs that the plan chose; empty: Lustre chooses")
    osts_reason: str = Field(description="why the plan chose OSTs, or did not")
    database: str | None = Field(description="of the placement library; null: no names of files are known")
    hints: str | None = Field(description="file of hints for ROMIO; null: the job does not use MPI-IO")


class ExpectedIo(Model):
    """I/O time that the plan expects: seconds of the slowest process in I/O calls."""

    seconds: Amount = Field(description="with the plan")
    low: Amount = Field(description="one in ten runs is expected to take less")
    high: Amount = Field(description="one in ten runs is expected to take more")
    before: Amount | None = Field(description="without the plan; null: not known")
    bytes: Amount | None = Field(default=None, description="that it reads and writes in this time; null: not known")
    method: str = Field(description="what it rests on")


class JobPlan(Plan):
    """I/O nodes, stripes, OSTs and path of one job, next to all others that run."""

    kind: Literal["job"] = Field(default="job", description="what is planned: one starting job")
    job: StartedJob = Field(description="the job")
    pool: str | None = Field(
        default=None, description="pool of the settings whose I/O nodes it shares; null: the command's's options"
    )
    weight: float = Field(
        default=1.0, description="weight of its bytes per second in the sum that mckp maximizes"
    )
    forward: ForwardSettings = Field(description="how the pool is shared")
    running: Count = Field(description="jobs that run, this one included")
    access: Literal["direct", "own", "shared"] | None = Field(
        description="access to the file system: direct (no I/O nodes), own I/O nodes, or one shared by several "
        "jobs; null: not planned"
    )
    io_nodes: list[str] = Field(description="names of its I/O nodes, in the order of the map")
    allotment: Allotment | None = Field(description="what it gets, and the expected gain; null: not planned")
    map: str | None = Field(
        description="the forwarding map; null: it uses no I/O nodes, or its hosts are not known"
    )
    layout: JobLayout | None = Field(default=None, description="stripes and OSTs of its files; null: as they are")
    path: JobPath | None = Field(
        default=None, description="from its I/O nodes to OSTs; null: not planned, see `unchanged`"
    )
    io_s: ExpectedIo | None = Field(default=None, description="I/O time; null: not known, see `unchanged`")
    unchanged: list[Left] = Field(default_factory=list, description="what stays as it is or is not known, and why")
