"""rehearsal.yaml: what a batch system's hook would have done with jobs that ran; `vani plan rehearse` writes it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from vani.schema.document import Document
from vani.schema.model import Model

__all__ = ["Rehearsal", "RehearsedApplication", "RehearsedJob"]


class RehearsedJob(Model):
    """A completed job, and the settings the hook would have given it; unknown values are null."""

    job: str = Field(description="the batch system's number")
    name: str | None = Field(description="what its user called it")
    user: str | None = Field(description="whose it was")
    nodes: int | None = Field(description="compute nodes")
    started: float | None = Field(description="seconds since 1970")
    access: Literal["direct", "own", "shared"] | None = Field(
        default=None, description="how it would have reached the file system, as in a plan of kind `job`"
    )
    io_nodes: int | None = Field(default=None, description="I/O nodes that it would have had")
    usual_io_nodes: int | None = Field(default=None, description="I/O nodes that `static` gives it")
    bandwidth: float | None = Field(default=None, description="bytes per second expected with `io_nodes`")
    usual_bandwidth: float | None = Field(default=None, description="bytes per second expected with `usual_io_nodes`")
    io_s: float | None = Field(default=None, description="seconds of its slowest process in I/O calls, of its log")
    saved_s: float | None = Field(default=None, description="seconds of these that are expected to be saved")
    low_s: float | None = Field(default=None, description="the least, by the scatter of its curve")
    high_s: float | None = Field(default=None, description="the most")
    reason: str = Field(default="", description="why nothing can be said of it; empty where something is")


class RehearsedApplication(Model):
    """Jobs with one name; seconds are sums over jobs with a known saving."""

    name: str = Field(description="empty: jobs without a name")
    jobs: int = Field(description="jobs that ran")
    known: int = Field(description="jobs whose saving is known")
    io_s: float = Field(description="seconds of the slowest process in I/O calls")
    saved_s: float = Field(description="seconds that are expected to be saved")
    low_s: float = Field(description="the least")
    high_s: float = Field(description="the most")


class Rehearsal(Document):
    """All jobs of an accounting file, planned as the hook plans them."""

    schema_: Literal["vani.rehearsal/1"] = Field(
        alias="schema", default="vani.rehearsal/1", description="name and version of this schema"
    )
    jobs: list[RehearsedJob] = Field(description="by start time")
    applications: list[RehearsedApplication] = Field(description="by name, those that save most in front")
    reasons: dict[str, int] = Field(description="by reason, how many jobs nothing can be said of")
