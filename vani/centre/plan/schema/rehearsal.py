"""rehearsal.yaml: what a batch system's hook would have done with jobs that ran; `vani plan rehearse` writes it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from vani.schema.document import Document
from vani.schema.model import Model


class RehearsedJob(Model):
    """A completed job, and the settings the hook would have given it; unknown values are null."""

    job: str = Field(description="job ID of the batch system")
    name: str | None = Field(description="job name given by the user")
    user: str | None = Field(description="owner of the job")
    nodes: int | None = Field(description="number of compute nodes")
    started: float | None = Field(description="start in seconds since 1970")
    access: Literal["direct", "own", "shared"] | None = Field(
        default=None, description="access to the file system that the job would have had, as in a plan of kind `job`"
    )
    io_nodes: int | None = Field(default=None, description="number of I/O nodes that the job would have had")
    usual_io_nodes: int | None = Field(default=None, description="number of I/O nodes under the `static` policy")
    bandwidth: float | None = Field(default=None, description="expected bandwidth with `io_nodes`, bytes per second")
    usual_bandwidth: float | None = Field(
        default=None, description="expected bandwidth with `usual_io_nodes`, bytes per second"
    )
    io_s: float | None = Field(
        default=None, description="seconds of the slowest process in I/O calls, from the job's log"
    )
    saved_s: float | None = Field(default=None, description="expected saving in seconds of `io_s`")
    low_s: float | None = Field(
        default=None, description="lower end of the saving, from the scatter of the job's curve"
    )
    high_s: float | None = Field(
        default=None, description="upper end of the saving, from the scatter of the job's curve"
    )
    reason: str = Field(default="", description="reason why no saving can be given; empty if it can")


class RehearsedApplication(Model):
    """Jobs with one name; seconds are sums over jobs with a known saving."""

    name: str = Field(description="application name; empty for jobs without a name")
    jobs: int = Field(description="number of jobs that ran")
    known: int = Field(description="number of jobs whose saving is known")
    io_s: float = Field(description="seconds of the slowest processes in I/O calls, summed over jobs")
    saved_s: float = Field(description="expected saving in seconds")
    low_s: float = Field(description="lower end of the saving")
    high_s: float = Field(description="upper end of the saving")


class Rehearsal(Document):
    """All jobs of an accounting file, planned as the hook plans them."""

    schema_: Literal["vani.rehearsal/1"] = Field(
        alias="schema", default="vani.rehearsal/1", description="name and version of this schema"
    )
    jobs: list[RehearsedJob] = Field(description="jobs by start time")
    applications: list[RehearsedApplication] = Field(description="applications by name, largest saving first")
    reasons: dict[str, int] = Field(description="number of jobs without a saving, by reason")
