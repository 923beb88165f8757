"""Plans of kind `job`: which I/O nodes one job uses from its beginning on."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from vani.schema.model import Model
from vani.schema.plan.any_plan import Count, Plan
from vani.schema.plan.forward import Allotment, ForwardSettings

__all__ = ["JobPlan", "StartedJob"]


class StartedJob(Model):
    """The job, as the batch system calls it."""

    id: str = Field(description="its number")
    name: str | None = Field(description="what its user called it; null: not told")
    user: str | None = Field(description="whose it is; null: not told")
    account: str | None = Field(default=None, description="account that it is charged to; null: not told")
    qos: str | None = Field(default=None, description="quality of service; null: not told")
    partition: str | None = Field(default=None, description="partition or queue; null: not told")
    nodes: Count = Field(description="compute nodes")
    hosts: str | None = Field(description="their names, as Slurm writes lists; null: not told")


class JobPlan(Plan):
    """I/O nodes of one job, next to all others that run."""

    kind: Literal["job"] = Field(default="job", description="what is planned: one job that begins")
    job: StartedJob = Field(description="the job")
    pool: str | None = Field(
        default=None, description="pool of the settings whose I/O nodes it shares; null: that of the command's options"
    )
    weight: float = Field(
        default=1.0, description="what a byte per second of it counts in the sum that mckp makes large"
    )
    forward: ForwardSettings = Field(description="how the pool is shared")
    running: Count = Field(description="jobs that run, this one included")
    access: Literal["direct", "own", "shared"] | None = Field(
        description="how it reaches the file system: without I/O nodes, by those of its own, by one that several "
        "share; null: not planned"
    )
    io_nodes: list[str] = Field(description="names of its I/O nodes, in the order of the map")
    allotment: Allotment | None = Field(description="what it gets, and what that is worth; null: not planned")
    map: str | None = Field(
        description="the forwarding map; null: it uses no I/O nodes, or its hosts are not known"
    )
