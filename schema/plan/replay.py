"""Plans of kind `replay`: the progress of a queue of jobs when I/O nodes are shared again at each change."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vani.schema.model import Model
from vani.schema.plan.any_plan import Amount, Count, Plan
from vani.schema.plan.forward import ForwardSettings, Policy

__all__ = ["JobPeriod", "QueueOutcome", "QueuedJob", "ReplayPlan"]


class JobPeriod(Model):
    """Part of a job's life with one number of I/O nodes."""

    start_s: Amount = Field(description="seconds after the first job was submitted")
    seconds: Amount = Field(description="its duration, including the time of a change")
    io_nodes: Count = Field(description="I/O nodes of the job alone; 0: direct access, or the shared one")
    shared: bool = Field(description="true where it uses the I/O node that several jobs share")
    bytes: Amount = Field(description="bytes moved")


class QueuedJob(Model):
    """The outcome of one job."""

    name: str = Field(description="of the job")
    nodes: Count = Field(description="its compute nodes")
    bytes: Amount = Field(description="bytes read and written")
    submit_s: Amount = Field(description="when it was submitted, seconds")
    start_s: Amount = Field(description="when it begins")
    end_s: Amount = Field(description="when it ends")
    bandwidth: Amount = Field(description="bytes / seconds from its beginning to its end")
    source: Literal["measured", "estimated"] = Field(
        description="source of its bandwidths: its own curve, or curves near its pattern"
    )
    periods: list[JobPeriod] = Field(description="its numbers of I/O nodes, in sequence")


class QueueOutcome(Model):
    """The queue under one policy."""

    policy: Policy = Field(description="how I/O nodes are shared")
    bandwidth: Amount | None = Field(
        description="sum over the jobs of bytes / runtime (Bez et al., equation 2), bytes per second; null: it cannot "
        "serve all jobs"
    )
    makespan_s: Amount | None = Field(description="from the first submission to the last end")
    waited_s: Amount | None = Field(description="mean time from a job's submission to its beginning")
    io_nodes: Count | None = Field(description="the most I/O nodes assigned at the same time")
    over: Count | None = Field(description="how many of these the pool does not have")
    late_s: Amount | None = Field(
        description="seconds in which more I/O nodes than the pool has are in use, since clients have not yet seen a "
        "new mapping"
    )
    solved: Count | None = Field(description="how often the set of running jobs changed")
    changes: Count | None = Field(description="how often the number of a running job changed")
    reason: str | None = Field(description="why it cannot serve all jobs; null: it can")


class ReplayPlan(Plan):
    """The progress of the jobs of a queue."""

    kind: Literal["replay"] = Field(
        default="replay", description="what is planned: I/O nodes for a queue of jobs"
    )
    forward: ForwardSettings = Field(
        description="settings of the request; nodes_per_io_node is the machine's where none was given"
    )
    nodes: Annotated[int, Field(ge=1)] = Field(description="compute nodes of the machine")
    poll_s: Amount = Field(
        description="running clients see a new mapping at the next multiple of this many seconds; 0: at once"
    )
    before: QueueOutcome = Field(description="static, which never gives a running job another number")
    after: QueueOutcome = Field(description="this plan")
    jobs: list[QueuedJob] = Field(description="by start time")
    compared: list[QueueOutcome] = Field(description="all policies side by side, if requested")
