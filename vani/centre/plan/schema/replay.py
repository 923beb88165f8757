"""Plans of kind `replay`: the progress of a queue of jobs when I/O nodes are shared again at each change."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vani.centre.plan.schema.any_plan import Amount, Count, Plan
from vani.centre.plan.schema.forward import ForwardSettings, Policy
from vani.schema.model import Model


class JobPeriod(Model):
    """Part of a job's life with one number of I/O nodes."""

    start_s: Amount = Field(description="seconds after the first job was submitted")
    seconds: Amount = Field(description="duration, including the time of a change")
    io_nodes: Count = Field(
        description="number of I/O nodes for this job alone; 0 is direct access or the shared I/O node"
    )
    shared: bool = Field(description="true if the job uses the I/O node shared by several jobs")
    bytes: Amount = Field(description="bytes moved")


class QueuedJob(Model):
    """The outcome of one job."""

    name: str = Field(description="name of the job")
    nodes: Count = Field(description="number of compute nodes")
    bytes: Amount = Field(description="bytes read and written")
    submit_s: Amount = Field(description="submission time in seconds")
    start_s: Amount = Field(description="start time in seconds")
    end_s: Amount = Field(description="end time in seconds")
    bandwidth: Amount = Field(description="bytes / seconds from start to end")
    source: Literal["measured", "estimated"] = Field(
        description="source of the bandwidths: the job's own curve, or curves of similar patterns"
    )
    periods: list[JobPeriod] = Field(description="periods with a constant number of I/O nodes, in sequence")


class QueueOutcome(Model):
    """The queue under one policy."""

    policy: Policy = Field(description="policy by which the jobs share the I/O nodes")
    bandwidth: Amount | None = Field(
        description="sum over the jobs of bytes / run time (Bez et al., equation 2), bytes per second; null if not "
        "all jobs can be served"
    )
    makespan_s: Amount | None = Field(description="seconds from the first submission to the last end")
    waited_s: Amount | None = Field(description="mean seconds from a job's submission to its start")
    io_nodes: Count | None = Field(description="maximum number of I/O nodes assigned at the same time")
    over: Count | None = Field(description="number of assigned I/O nodes that exceed the pool")
    late_s: Amount | None = Field(
        description="seconds during which more I/O nodes than the pool has are in use because clients have not yet "
        "seen a new mapping"
    )
    solved: Count | None = Field(description="number of times the set of running jobs changed")
    changes: Count | None = Field(description="number of times the I/O nodes of a running job changed")
    reason: str | None = Field(description="reason why not all jobs can be served; null if they can")


class ReplayPlan(Plan):
    """The progress of the jobs of a queue."""

    kind: Literal["replay"] = Field(default="replay", description="kind of plan: I/O nodes for a queue of jobs")
    forward: ForwardSettings = Field(
        description="settings of the request; nodes_per_io_node is the machine's if none was given"
    )
    nodes: Annotated[int, Field(ge=1)] = Field(description="number of compute nodes of the machine")
    poll_s: Amount = Field(
        description="interval in seconds at which running clients read a new mapping; 0 is immediately"
    )
    before: QueueOutcome = Field(description="outcome of `static`, which never changes the number of a running job")
    after: QueueOutcome = Field(description="outcome of this plan")
    jobs: list[QueuedJob] = Field(description="jobs by start time")
    compared: list[QueueOutcome] = Field(description="outcomes of all policies, if requested")
